// SPDX-License-Identifier: Apache-2.0
// The last kernel of the backward pass under a delta rule: all gradients of a head's chunk of 64
// tokens, from what the sweeps leave of the chunk. With the state S before it, the gradient D of
// the state behind it, b the sums of its log gates, B = diag(beta), what the writes lacked (R), and
// Z the gradient of v - e^b S k:
//
//   dv = B Z                         dbeta = rowsum(Z (.) R)
//   dA = s tril_{-1}(dO R^T B e^{b_i - b_j})      own = s diag(dO R^T B)
//   dG = -tril_{-1}(B Z R^T B e^{b_i - b_j})
//   X  = s e^b (dO S)      + dA k                 dq = X + own k
//   Yl = -e^b B (Z S)      + dG k                 dk = Yl + Yr + own q
//   Yr = e^{all-b} B (R D) + dA^T q + dG^T k
//   dg_i = e^all <S, D> + sum over t >= i of (q X + k Yl - k Yr'')_t + sum over t < i of (k Yr')_t
//
// where Yr' is the part of Yr from D, and Yr'' the rest. Pairs that do not pass a gate stand in
// dg's sum twice with the same rounded dA and dG, and cancel to fp32 accuracy.
// Cost: tokens (6 d_k d_v + 64 (8 d_k + 4 d_v)) flop a head; q, k, g, beta, dO, S, D, R, Z read,
// dq, dk, dv, dg, dbeta written once.
// Source: "Gated Delta Networks", arXiv 2412.06464 (chunkwise form), differentiated.
#pragma once

#include "sp_methods/kernels/delta.hpp"
#include "sp_methods/kernels/device/tile/tile.cuh"

namespace baton {

/// What the sweeps over a layer's chunks leave for the gradients of each chunk.
struct SweptChunks {
  const Bf16* states;            ///< S, before each chunk: [heads of the call, chunks, d_v, d_k].
  const Bf16* gradients;         ///< D, behind each chunk: [heads of the call, chunks, d_v, d_k].
  const Bf16* missing;           ///< R [tokens, heads, d_v], of all heads of the layer.
  const Bf16* z;                 ///< Z [tokens, heads, d_v], of all heads of the layer.
  const char* chunks = nullptr;  ///< The records of chunks, where the kernel reads them.
};

/// Writes all gradients of the call's heads for a gate a channel. The members before and after of
/// `x` are not read.
cudaError_t delta_gradients_by_channel(cudaStream_t stream, const DeltaGradients::Operands<OnDevice>& x,
                                       const SweptChunks& kept, const Chunks& p);

}  // namespace baton
