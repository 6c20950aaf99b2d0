// SPDX-License-Identifier: Apache-2.0
// What the map of a rank's tokens leaves for the output and the gradients of the same inputs, under
// a rule with matrices: devices cut the tokens into segments and compose the segments' maps, so
// what they make for the rank's map is half of the output.
//
//   M [heads, segments] of two matrices [d_k, d_k] of bf16, high and low   |  in this order, f32
//   B [heads, segments, d_v, d_k]                                          |  numbers
//   of a delta rule with a gate a head or none: one matrix [64, 64] of     |
//   bf16 a chunk                                                           |
//
// The records of chunks under other rules are larger than their values and are made again.
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

/// Offsets in what is kept of a call, in f32 numbers.
struct KeptMaps {
  std::int64_t matrices = 0, added = 0, chunks = 0, end = 0;
  bool has_chunks;

  KeptMaps(const Chunks& p, bool keeps_chunks) : has_chunks(keeps_chunks) {
    constexpr std::int64_t numbers_of_chunk = KernelTraits{}.tile * KernelTraits{}.tile / 2;
    const LayerShape& s = p.shape;
    const std::int64_t heads = p.work.heads(s), segments = heads * map_segments(p);
    added = segments * s.d_k * s.d_k;
    chunks = added + segments * s.d_v * s.d_k;
    end = chunks + (has_chunks ? heads * device_chunks(p) * numbers_of_chunk : 0);
  }
};

/// Number of f32 numbers of the gradients before a call's segments, from zero behind each.
inline std::int64_t kept_gradients(const Chunks& p) {
  return p.work.heads(p.shape) * map_segments(p) * p.shape.d_v * p.shape.d_k;
}

}  // namespace baton
