// SPDX-License-Identifier: Apache-2.0
// CUDA's return codes as exceptions.
#pragma once

#include <cuda_runtime_api.h>

#include <source_location>

namespace baton {

/// Throws SystemError with CUDA's own text and the caller's line unless `code` is cudaSuccess.
void cuda(cudaError_t code, std::source_location where = std::source_location::current());

/// Throws the same if the last kernel could not be launched.
inline void cuda_launched(std::source_location where = std::source_location::current()) {
  cuda(cudaGetLastError(), where);
}

}  // namespace baton
