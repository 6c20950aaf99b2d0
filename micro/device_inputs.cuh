// SPDX-License-Identifier: Apache-2.0
// Random tensors made on the device, for times.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace baton {

__device__ inline unsigned mixed(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352dU;
  x = (x ^ (x >> 15)) * 0x846ca68bU;
  return x ^ (x >> 16);
}

/// Normal numbers, or gates where strength is not 0: log sigmoid of normal numbers times it.
__global__ static void fill_kernel(__nv_bfloat16* x, std::int64_t count, unsigned seed, float strength) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += stride) {
    const unsigned a = mixed(static_cast<unsigned>(i) ^ seed), b = mixed(a + 0x9e3779b9U);
    const float u = (static_cast<float>(a >> 8) + 0.5F) / 16777216.0F,
                w = static_cast<float>(b >> 8) / 16777216.0F;
    const float normal = sqrtf(-2.0F * logf(u)) * cospif(2.0F * w);
    x[i] = __float2bfloat16(strength == 0.0F ? normal : -strength * log1pf(expf(-normal)));
  }
}

/// The same, enqueued on the default stream.
inline cudaError_t fill_normal(__nv_bfloat16* x, std::int64_t count, unsigned seed, float strength) {
  fill_kernel<<<1024, 256>>>(x, count, seed, strength);
  return cudaGetLastError();
}

}  // namespace baton
