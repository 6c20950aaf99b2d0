// SPDX-License-Identifier: Apache-2.0
// What the device bodies of a model's kernels share: 16 bytes of bf16 at a time, and their
// registration.
#pragma once

#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/kernel.cuh"
#include "sp_methods/kernels/device/tile/tile.cuh"
#include "sp_methods/kernels/device/workspace.cuh"
#include "sp_methods/models/kernels/block.hpp"
#include "sp_methods/models/kernels/device/product.cuh"
#include "sp_methods/models/kernels/embedding_loss_adamw.hpp"

namespace baton {

/// Neighbouring elements of a row that a thread has at a time: 16 bytes of bf16.
inline constexpr int pack = 8;

struct Eight {
  float x[pack];
};

__device__ inline Eight unpacked(uint4 bits) {
  Eight all;
  const std::uint32_t pairs[]{bits.x, bits.y, bits.z, bits.w};
#pragma unroll
  for (int i = 0; i < pack / 2; ++i) {
    const float2 pair = unpacked_pair(pairs[i]);
    all.x[2 * i] = pair.x;
    all.x[2 * i + 1] = pair.y;
  }
  return all;
}

/// Loads pack number `i` of a run of elements.
__device__ inline Eight load(const Bf16* from, std::int64_t i) {
  return unpacked(reinterpret_cast<const uint4*>(from)[i]);
}
__device__ inline Eight load(const float* from, std::int64_t i) {
  const float4 a = reinterpret_cast<const float4*>(from)[2 * i],
               b = reinterpret_cast<const float4*>(from)[2 * i + 1];
  return {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
}
__device__ inline void store(Bf16* into, std::int64_t i, const Eight& e) {
  reinterpret_cast<uint4*>(into)[i] = {packed_pair(e.x[0], e.x[1]), packed_pair(e.x[2], e.x[3]),
                                       packed_pair(e.x[4], e.x[5]), packed_pair(e.x[6], e.x[7])};
}
__device__ inline void store(float* into, std::int64_t i, const Eight& e) {
  reinterpret_cast<float4*>(into)[2 * i] = {e.x[0], e.x[1], e.x[2], e.x[3]};
  reinterpret_cast<float4*>(into)[2 * i + 1] = {e.x[4], e.x[5], e.x[6], e.x[7]};
}

__device__ inline float sigmoid(float x) { return __fdividef(1, 1 + __expf(-x)); }

/// Registers the device body of a contract for bf16 tensors. `refusal` may name further reasons
/// against parameters, and may prepare what they need.
template <class Contract>
RegisteredCudaKernel model_body(DeviceBody<Contract> body,
                                Refusal (*refusal)(const typename Contract::Parameters&)) {
  const auto run = [body](const CudaKernelCall& x) {
    const auto operands = bind_operands<typename Contract::template Operands<OnDevice>>(x.operands);
    cuda(body(x.stream, operands, parameters_of<Contract>(x.kernel)));
  };
  const auto unsupported = [refusal](const Kernel& kernel) -> Refusal {
    const auto& parameters = parameters_of<Contract>(kernel);
    if (parameters.dtype != Dtype::bf16) return "the device body of " + kernel.name + " is for bf16 tensors";
    if (Refusal lacking = Workspace::shared().lacks(model_workspace_bytes)) return lacking;
    return refusal(parameters);
  };
  return {Contract::name, run, unsupported};
}

/// Refuses rows that are not whole 16-byte packs of bf16.
inline Refusal unless_in_packs(const Rows& p) {
  if (p.width % pack == 0) return {};
  return "device bodies of models are for rows of a multiple of 8 numbers, not " + std::to_string(p.width);
}

/// Refuses rows that are not whole 16-byte packs of bf16, or that have more than 512 packs.
inline Refusal unless_packed(std::int64_t width) {
  if (width > 0 && width % pack == 0 && width <= 512 * pack) return {};
  return "device bodies of models are for rows of 8 to 4096 numbers, a multiple of 8, not " +
         std::to_string(width);
}

}  // namespace baton
