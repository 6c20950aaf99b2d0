// SPDX-License-Identifier: Apache-2.0
// The combines of affine maps as kernels in a stream.
#pragma once

#include <cuda_runtime_api.h>

#include <span>

#include "collectives/executors/cuda/kernel.cuh"
#include "collectives/executors/cuda/matrices.hpp"
#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// Enqueues into = x times the matrices, row by row, plus `added` unless it is empty. `into` may be
/// x or `added`, and shares nothing with the matrices.
void multiply_on_device(cudaStream_t stream, std::span<float> into, std::span<const float> x,
                        std::span<const float> matrices, std::span<const float> added, const Combine& by);

/// Enqueues a combine of affine maps, with the operands of `combine_on_host` (schedule/kernel.hpp).
void combine_affine_on_device(cudaStream_t stream, const DeviceOperands& operands, const Combine& by);

/// Refuses a combine of affine maps with rows that fit into no tile, and one that writes its
/// matrices over those that they are multiplied with.
Refusal lacks_products(const Step& step);

}  // namespace baton
