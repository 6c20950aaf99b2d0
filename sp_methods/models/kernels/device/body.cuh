// SPDX-License-Identifier: Apache-2.0
// What the device bodies of a model's kernels share: their registration.
#pragma once

#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/kernel.cuh"
#include "sp_methods/kernels/device/tile/eight.cuh"
#include "sp_methods/kernels/device/tile/tile.cuh"
#include "sp_methods/kernels/device/workspace.cuh"
#include "sp_methods/models/kernels/block.hpp"
#include "sp_methods/models/kernels/device/product.cuh"
#include "sp_methods/models/kernels/embedding_loss_adamw.hpp"

namespace baton {

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
