// SPDX-License-Identifier: Apache-2.0
// Causal softmax attention of a rank's queries against one block of keys on one device: bf16 tensors, fp32 results.
//
//   forward:   block      out, lse, by the running softmax                      reads q k v
//              merge      of two such results
//   backward:  delta      rowsum(dO (.) O), once
//              gradients  dq, dk, dv, added to, in three kernels:
//                         dq = s (P (.) (dO V^T - delta)) K,   dk = s (P^T (.) (V dO^T - delta)) Q,   dv = P^T dO
//
// d_k and d_v are 64 or 128. Every call enqueues kernels and neither allocates nor synchronises. Each gradient is summed
// by the block that owns its rows, so no two runs differ; that makes scores three times and dO V^T twice.
// Cost: the visible pairs times (2 d_k + 2 d_v) flop forward, (10 d_k + 6 d_v) backward.
// Source: Dao, "FlashAttention-2", 2023, algorithms 1 and 2.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "sp_methods/kernels/host/softmax/gradients.hpp"

namespace baton {

/// Queries, keys and values on the device, shaped as SoftmaxInputs.
struct SoftmaxDeviceInputs {
  const __nv_bfloat16* q = nullptr;
  const __nv_bfloat16* k = nullptr;
  const __nv_bfloat16* v = nullptr;
};

/// As SoftmaxOutputs.
struct SoftmaxDeviceOutputs {
  const __nv_bfloat16* d_o = nullptr;
  const float* lse = nullptr;
  const float* delta = nullptr;
};

/// Sets out [q_tokens, heads, d_v] and lse [q_tokens, heads].
cudaError_t softmax_device_block(cudaStream_t stream, float* out, float* lse, const SoftmaxDeviceInputs& in,
                                 const SoftmaxShape& shape);

/// Merges a block's result into out and lse.
cudaError_t softmax_device_merge(cudaStream_t stream, float* out, float* lse, const float* block_out,
                                 const float* block_lse, const SoftmaxShape& shape);

/// Sets delta [q_tokens, heads] from d_o and the fp32 output of the whole sequence.
cudaError_t softmax_device_delta(cudaStream_t stream, float* delta, const __nv_bfloat16* d_o,
                                 const float* out, const SoftmaxShape& shape);

/// Adds this block's share to dq, dk and dv.
cudaError_t softmax_device_gradients(cudaStream_t stream, const SoftmaxGradients& out,
                                     const SoftmaxDeviceInputs& in, const SoftmaxDeviceOutputs& outputs,
                                     const SoftmaxShape& shape);

}  // namespace baton
