// SPDX-License-Identifier: Apache-2.0
// The small local steps of a ring (sp_methods/ring.hpp) on a device, element by element.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace baton {

cudaError_t ring_fill(cudaStream_t stream, float* into, float value, std::int64_t count);
/// into += from.
cudaError_t ring_add(cudaStream_t stream, float* into, const float* from, std::int64_t count);
cudaError_t ring_add(cudaStream_t stream, __nv_bfloat16* into, const float* from, std::int64_t count);
/// into = from, rounded.
cudaError_t ring_narrow(cudaStream_t stream, __nv_bfloat16* into, const float* from, std::int64_t count);
/// into *= by.
cudaError_t ring_multiply(cudaStream_t stream, float* into, const float* by, std::int64_t count);

}  // namespace baton
