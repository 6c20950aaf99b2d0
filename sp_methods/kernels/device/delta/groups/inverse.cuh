// SPDX-License-Identifier: Apache-2.0
// What the sweeps of a delta rule in segments need of every chunk beside its rows, made for all
// chunks side by side: one block a head and chunk.
//
//   a gate a head, none:   N~ of inverse_steps.cuh, with G_ij = k_i . k_j e^{b_i - b_j}, j < i
//   a gate a channel:      a record (chunk_record.cuh), N~ in it; strong chunks level by level
//
// Cost: tokens 64 (d_k + 64 / 3) flop a head, with a gate a channel 64 (2 d_k + 64 / 3); k, g, beta
// read and 8 KiB a chunk written once, with a gate a channel q too and a record.
#pragma once

#include "sp_methods/kernels/device/delta/groups/chunk_feed.cuh"

namespace baton {

/// Writes N~ or the records of all chunks, [heads of the call, chunks]. Values are not read.
cudaError_t chunk_inverses(cudaStream_t stream, char* chunks, const ChunkTensors& x, const Chunks& p);
/// The same with a gate a channel.
cudaError_t gated_records(cudaStream_t stream, char* chunks, const ChunkTensors& x, const Chunks& p);

}  // namespace baton
