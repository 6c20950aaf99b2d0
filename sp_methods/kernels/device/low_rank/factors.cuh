// SPDX-License-Identifier: Apache-2.0
// The records of all chunks under a low-rank rule (delta/layer.cuh): one block a head and chunk.
//
//   q', r', k", b" and the decays                              layer.cuh
//   Arb = tril_{-1}(r' b"^T), Arv of k" in place of b"         products; pair by pair where strong
//   A = tril(q' b"^T), value_pairs of k" in place of b"
//   T = (I - Arb)^{-1}                                         in fp32 (delta/inverse.cuh)
//   W = -T r',  U^T = V^T (T Arv)^T                            products of bf16 tiles
//
// Cost: tokens 64 (9 d_k + d_v + 64) flop a head beside zeros; all inputs read and the record
// written once.
// Source: "RWKV-7", arXiv 2503.14456; "Parallelizing Linear Transformers with the Delta Rule",
// arXiv 2406.06484.
#pragma once

#include "sp_methods/kernels/device/low_rank/layer.cuh"

namespace baton {

/// Parts of the records that a call needs besides W, b" and the decays.
struct LowRankParts {
  bool queries = true;     ///< q' and A, and value_pairs of values
  bool values = true;      ///< keys, U and V
  bool gradients = false;  ///< T, Arv in the place of G, and r'
};

/// Writes the records of all chunks.
cudaError_t low_rank_factors(cudaStream_t stream, char* records, const LowRankInputs<OnDevice>& in,
                             const Chunks& p, LowRankParts parts);

}  // namespace baton
