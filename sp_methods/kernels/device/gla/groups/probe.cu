// SPDX-License-Identifier: Apache-2.0
// Whether the kernels on warp groups can run: the device has compute capability 9.0, and of this
// program it runs what was compiled for 90a.
//
//   a kernel that takes 128 threads where it is compiled for 90a, and 32 elsewhere
#include "sp_methods/kernels/device/gla/layer.cuh"

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
