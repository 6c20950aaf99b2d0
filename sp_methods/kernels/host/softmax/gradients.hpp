// SPDX-License-Identifier: Apache-2.0
// Backward of causal softmax attention against one block of keys, from the lse of the whole sequence.
//
//   delta = rowsum(dO (.) O)                                            once, before the ring
//   P = e^{s Q K^T - lse}        dV += P^T dO        dZ = P (.) (dO V^T - delta)
//   dQ += s dZ K                 dK += s dZ^T Q
//
// Cost: (6 d_k + 4 d_v) flop a visible pair and head.
// Source: Dao, "FlashAttention-2", 2023, algorithm 2; zhuzilin/ring-flash-attention (dK, dV travel in fp32).
#pragma once

#include "sp_methods/kernels/host/softmax/block.hpp"

namespace baton {

/// What softmax_block_gradients needs of the whole sequence's forward pass.
struct SoftmaxOutputs {
  const float* d_o = nullptr;    ///< [q_tokens, heads, d_v], the output's gradient.
  const float* lse = nullptr;    ///< [q_tokens, heads], merged over all blocks.
  const float* delta = nullptr;  ///< [q_tokens, heads], from softmax_delta.
};

/// Gradients of queries, keys and values, shaped as SoftmaxInputs.
struct SoftmaxGradients {
  float* dq = nullptr;
  float* dk = nullptr;
  float* dv = nullptr;
};

/// Sets delta [q_tokens, heads] to rowsum(d_o (.) out), both [q_tokens, heads, d_v].
void softmax_delta(float* delta, const float* d_o, const float* out, const SoftmaxShape& shape,
                   int threads = 1);

/// Adds this block's share to dq, dk and dv. Threads share out heads.
void softmax_block_gradients(const SoftmaxGradients& out, const SoftmaxInputs& in,
                             const SoftmaxOutputs& outputs, const SoftmaxShape& shape, int threads = 1);

/// Floating-point operations: visible pairs only.
double softmax_delta_flops(const SoftmaxShape& shape);
double softmax_block_gradients_flops(const SoftmaxShape& shape);
/// Bytes that must move: each input once, each gradient read and written. Queries, keys, values and the output's gradient
/// have elements of `element` bytes; the output, lse, delta and the gradients are summed up in f32.
double softmax_delta_bytes(const SoftmaxShape& shape, std::int64_t element);
double softmax_block_gradients_bytes(const SoftmaxShape& shape, std::int64_t element);

}  // namespace baton
