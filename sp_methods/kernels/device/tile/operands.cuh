// SPDX-License-Identifier: Apache-2.0
// What the device bodies of kernels take from a call.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <string>

#include "collectives/executors/cuda/kernel.cuh"
#include "collectives/schedule/slice.hpp"

namespace baton {

using Bf16 = __nv_bfloat16;

/// Operand `i` as what it is; null where it is empty.
template <class Element = float>
Element* written(const CudaKernelCall& x, std::size_t i) {
  return reinterpret_cast<Element*>(x.operands.writes[i].data());
}
template <class Element = float>
const Element* read(const CudaKernelCall& x, std::size_t i) {
  return reinterpret_cast<const Element*>(x.operands.reads[i].data());
}

/// Why tensors of that type and width are not what a body of tiles is for, or an empty string.
inline Refusal unsupported_in_tiles(const Kernel& kernel, std::int64_t dtype, std::int64_t d_k,
                                    std::int64_t d_v) {
  const auto is_tile = [](std::int64_t d) { return d == 64 || d == 128; };
  if (static_cast<Dtype>(dtype) == Dtype::bf16 && is_tile(d_k) && is_tile(d_v)) return {};
  return "the device body of " + kernel.name + " is for bf16 tensors, d_k and d_v of 64 and 128";
}

}  // namespace baton
