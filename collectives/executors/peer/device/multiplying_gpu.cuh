// SPDX-License-Identifier: Apache-2.0
// The machine of peer kernels that multiply: a GPU whose blocks share tiles of rows.
#pragma once

#include "collectives/executors/cuda/products.cuh"
#include "collectives/executors/peer/device/gpu.cuh"

namespace baton {

struct MultiplyingGpu : Gpu {
  template <unsigned width>
  using Products = baton::Products<width>;

  /// Tile 0 has the rows, or the high parts of their elements, tile 1 the results, tile 2 is room
  /// for the products, and tile 3 has low parts.
  __device__ static float* tile(int which) {
    __shared__ alignas(16) float tiles[4][most_tile_elements];
    return tiles[which];
  }

  /// The high part of a number; what is left of it becomes `low`.
  __device__ static float split(float x, float& low) {
    const Tf32Parts parts = tf32_parts(x);
    low = __uint_as_float(parts.low);
    return __uint_as_float(parts.high);
  }

  template <int count>
  __device__ static Elements<count> load_shared(const float* from, unsigned n, bool whole) {
    Elements<count> x;
    if (whole) {
#pragma unroll
      for (int i = 0; i < count; i += 4) {
        const float4 four = *reinterpret_cast<const float4*>(from + i);
        x.v[i] = four.x, x.v[i + 1] = four.y, x.v[i + 2] = four.z, x.v[i + 3] = four.w;
      }
    } else {
#pragma unroll
      for (int i = 0; i < count; ++i) x.v[i] = i < n ? from[i] : 0.0F;
    }
    return x;
  }
};

}  // namespace baton
