// SPDX-License-Identifier: Apache-2.0
// The last kernel of the backward pass under a low-rank rule: all gradients of a chunk, from its
// record and what the sweeps leave of it: the state S before it times `to`, the gradient D behind
// it times `from`, what its tokens read (U, in the place of R) and the gradient of that (Z).
//
//   dv = keys D^T + query_values^T dO + read_values^T Z
//   dAqb = tril(dO U^T)       dAqv = tril(dO V^T)
//   dArb = tril_{-1}(Z U^T)   dArv = tril_{-1}(Z V^T)
//   Xq = dO S + dAqb b" + dAqv keys        Yb = U D + dAqb^T q' + dArb^T r'
//   Xr = Z S  + dArb b" + dArv keys        Yk = V D + dAqv^T q' + dArv^T r'
//   what passes the right edge, for dg:  colsum(S (.) D) + sum over u of keys (V D) + b" (U D)
//
// and then gradient_rows.cuh. Pairs that pass no gate, a query with its own token's write and a
// read with that of the token before, stand in dg's sum twice with the same rounded factors and
// cancel to fp32 accuracy. The scaled rows are those of the records.
// Cost: tokens (10 d_k d_v + 64 (16 d_k + 12 d_v)) flop a head; records, S, D, U, Z, dO, v read
// and all gradients written once.
// Source: "RWKV-7", arXiv 2503.14456 (chunkwise form), differentiated.
#pragma once

#include "sp_methods/kernels/device/delta/gradients.cuh"
#include "sp_methods/kernels/low_rank.hpp"

namespace baton {

/// Writes all gradients of the call's heads, one block of four groups of warps a head and chunk, on
/// devices that have them. The members before and after of `x` are not read.
cudaError_t low_rank_gradients_of_chunks(cudaStream_t stream, const LowRankGradients::Operands<OnDevice>& x,
                                         const SweptChunks& kept, const Chunks& p);

}  // namespace baton
