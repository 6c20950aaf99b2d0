// SPDX-License-Identifier: Apache-2.0
// The records of all chunks under a low-rank rule (delta/groups/chunk_record.cuh): one block a head
// and chunk.
//
//   q', r', keys, b" and the decays                            layer.cuh
//   tril(q' b"^T), tril_{-1}(r' keys^T), tril(q' keys^T)       products; pair by pair where strong
//   N~ = T - I,  T = (I - tril_{-1}(r' b"^T))^{-1}             in fp32 (inverse_steps.cuh)
//
// Cost: tokens 64 (8 d_k + 64 / 3) flop a head beside zeros; all inputs but v read and the record
// written once.
// Source: "RWKV-7", arXiv 2503.14456; "Parallelizing Linear Transformers with the Delta Rule",
// arXiv 2406.06484.
#pragma once

#include "sp_methods/kernels/device/delta/groups/segment_call.cuh"
#include "sp_methods/kernels/device/low_rank/layer.cuh"

namespace baton {

/// Writes the records of all chunks, [heads of the call, chunks].
cudaError_t low_rank_records(cudaStream_t stream, char* records, const LowRankInputs<OnDevice>& in,
                             const Chunks& p, ChunkParts parts);

}  // namespace baton
