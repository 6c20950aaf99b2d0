// SPDX-License-Identifier: Apache-2.0
// CUDA's return codes as exceptions.
#pragma once

#include <cuda_runtime_api.h>

#include <source_location>
#include <string>

#include "collectives/schedule/errors.hpp"

namespace baton {

/// Throws SystemError with CUDA's own text and the caller's line unless `code` is cudaSuccess.
inline void cuda(cudaError_t code, std::source_location where = std::source_location::current()) {
  if (code == cudaSuccess) return;
  throw SystemError("CUDA error " + std::to_string(code) + ": " + cudaGetErrorString(code) + " (" +
                    where.file_name() + ":" + std::to_string(where.line()) + ")");
}

/// Throws SystemError with CUDA's own text and the caller's line if the last kernel could not be
/// launched.
inline void cuda_launched(std::source_location where = std::source_location::current()) {
  cuda(cudaGetLastError(), where);
}

}  // namespace baton
