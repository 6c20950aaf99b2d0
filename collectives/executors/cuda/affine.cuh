// SPDX-License-Identifier: Apache-2.0
// Device bodies of the combines of affine maps.
//
//   a block takes neighbouring tiles of rows, which mostly lie in one head
//   for each tile: x and added into shared memory; barrier; added += x times the matrix; barrier;
//                  into = added
//
// The operands of two tiles ahead are loaded while one is multiplied. Cost: 2 row flops an
// element of the result, and each operand once; matrices once a block that uses them.
#pragma once

#include <cuda_runtime_api.h>

#include "collectives/executors/cuda/kernel.cuh"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// Enqueues a combine of affine maps, with the operands of combine_on_device (steps.cuh).
void combine_affine_on_device(cudaStream_t stream, const DeviceOperands& operands, const Combine& by);

/// Refuses a combine of affine maps with rows that fit into no tile, and one that writes its
/// matrices over those that they are multiplied with.
Refusal lacks_products(const Step& step);

}  // namespace baton
