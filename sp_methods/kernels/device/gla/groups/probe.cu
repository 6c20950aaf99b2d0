// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include "collectives/executors/cuda/error.cuh"
#include "sp_methods/kernels/device/gla/groups/probe.cuh"

namespace baton {
namespace {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
__global__ __launch_bounds__(128) void probe_kernel() {}
#else
__global__ __launch_bounds__(32) void probe_kernel() {}
#endif

}  // namespace

bool has_warp_groups() {
  static const bool found = [] {
    cudaFuncAttributes attributes{};
    cuda(cudaFuncGetAttributes(&attributes, probe_kernel));
    return attributes.binaryVersion == 90 && attributes.maxThreadsPerBlock >= 128;
  }();
  return found;
}

}  // namespace baton
