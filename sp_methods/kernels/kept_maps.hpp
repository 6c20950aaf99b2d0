// SPDX-License-Identifier: Apache-2.0
// What the map of a rank's tokens leaves for the output and the gradients of the same inputs, under
// a rule with matrices: devices cut the tokens into segments and compose the segments' maps, so
// what they make for the rank's map is half of the output.
//
//   M [heads, segments] of two matrices [d_k, d_k] of bf16, high and low   |  in this order, f32
//   B [heads, segments, d_v, d_k]                                          |  numbers
//   what sweeps read of every chunk beside its rows                        |
//
// Of a chunk that is a matrix [64, 64] of bf16 under a delta rule with a gate a head or none, and
// else a record, which is larger than the chunk's q, k, v and gates together: to make records again
// would take longer than what is left to do once a state comes (decision 52).
// Bodies on processors walk the chunks in order and leave this memory alone.
#pragma once

#include <algorithm>
#include <cmath>

#include "sp_methods/kernels/gla_chunks.hpp"

namespace baton {

/// Number of chunks that a device cuts a call's tokens into; the last one may be short.
inline std::int64_t device_chunks(const Chunks& p) {
  return (p.shape.tokens + KernelTraits{}.tile - 1) / KernelTraits{}.tile;
}

/// Number of segments that a device cuts the heads of a call into, so that one block a head and
/// segment fills it. A scan's step costs about a quarter of a chunk's, so more segments than twice
/// the root of the chunks do not pay.
inline std::int64_t map_segments(const Chunks& p) {
  const std::int64_t chunks = device_chunks(p);
  const auto most = static_cast<std::int64_t>(2 * std::sqrt(static_cast<double>(chunks)));
  return std::clamp<std::int64_t>(std::min(KernelTraits{}.blocks / p.work.heads(p.shape), most), 1, chunks);
}

/// Bytes of a chunk's matrix of its pairs of tokens.
inline constexpr std::int64_t pair_bytes = 2 * KernelTraits{}.tile * KernelTraits{}.tile;
/// Bytes of a record with `keys` tiles of rows, `pairs` matrices and three rows of decays in f32.
constexpr std::int64_t record_bytes(std::int64_t d_k, std::int64_t keys, std::int64_t pairs) {
  return keys * 2 * KernelTraits{}.tile * d_k + pairs * pair_bytes + 3 * 4 * d_k;
}
/// Bytes of what a device keeps of a chunk under a delta rule.
constexpr std::int64_t delta_chunk_bytes(GateKind gate, std::int64_t d_k) {
  return gate == GateKind::vector ? record_bytes(d_k, 3, 2) : pair_bytes;
}
/// Bytes of what a device keeps of a chunk under a low-rank rule, with the chunk's flag.
constexpr std::int64_t low_rank_chunk_bytes(std::int64_t d_k) { return record_bytes(d_k, 4, 4) + 16; }

/// Offsets in what is kept of a call, in f32 numbers.
struct KeptMaps {
  std::int64_t matrices = 0, added = 0, chunks = 0, end = 0;

  /// Makes the offsets of a call that keeps `chunk_bytes` of every chunk.
  KeptMaps(const Chunks& p, std::int64_t chunk_bytes) {
    const LayerShape& s = p.shape;
    const std::int64_t heads = p.work.heads(s), segments = heads * map_segments(p);
    added = segments * s.d_k * s.d_k;
    chunks = added + segments * s.d_v * s.d_k;
    end = chunks + heads * device_chunks(p) * chunk_bytes / 4;
  }
};

/// Number of f32 numbers of the gradients before a call's segments, from zero behind each.
inline std::int64_t kept_gradients(const Chunks& p) {
  return p.work.heads(p.shape) * map_segments(p) * p.shape.d_v * p.shape.d_k;
}

}  // namespace baton
