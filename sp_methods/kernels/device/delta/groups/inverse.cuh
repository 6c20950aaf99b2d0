// SPDX-License-Identifier: Apache-2.0
// The one matrix of a chunk from which all passes under a delta rule follow, for a gate a head or
// none: one block of four warps a head and chunk.
//
//   G_ij = k_i . k_j e^{b_i - b_j}, j < i         (I + G B) N~ = -G,   so (I + G B)^{-1} = I + N~ B
//   the 16 x 16 blocks on the diagonal by substitution, a thread a column
//   twice, for halves of 16 and of 32:  Y = G_10 + G_10 B_0 N~_00,   N~_10 = -(Y + N~_11 B_1 Y)
//
// G by wgmma, all else in fp32; N~ is rounded to bf16 once. Nothing is divided by beta.
// Cost: tokens 64 (d_k + 64 / 3) flop a head; k, g, beta read and 8 KiB a chunk written once.
// Source: "Parallelizing Linear Transformers with the Delta Rule", arXiv 2406.06484 (UT transform).
#pragma once

#include "sp_methods/kernels/device/delta/groups/chunk_feed.cuh"

namespace baton {

/// Writes N~ of all chunks, [heads of the call, chunks] tiles as PanelTile<64> has them.
cudaError_t chunk_inverses(cudaStream_t stream, char* inverses, const ChunkTensors& x, const Chunks& p);

}  // namespace baton
