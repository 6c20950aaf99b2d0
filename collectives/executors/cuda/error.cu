// SPDX-License-Identifier: Apache-2.0
// Text of CUDA's errors.
#include <string>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/schedule/errors.hpp"

namespace baton {

void cuda(cudaError_t code, std::source_location where) {
  if (code == cudaSuccess) return;
  throw SystemError("CUDA error " + std::to_string(code) + ": " + cudaGetErrorString(code) + " (" +
                    where.file_name() + ":" + std::to_string(where.line()) + ")");
}

}  // namespace baton
