// SPDX-License-Identifier: Apache-2.0
// What sweeps in segments read of a chunk beside its values, where that is more than its rows: a
// record for a delta rule with a gate a channel, and for a low-rank rule with any gates.
//
//   with r a reference of the chunk's gates, b their sums, T the inverse of the chunk's system:
//
//   delta:      q' = s q e^{b-r}   k' = k e^{b-r}     k" = k e^{r-b}   A = tril(q' k"^T)
//   low rank:   q' = s q e^{b-r}   r' = a e^{b-g-r}   b" = b e^{r-b}   A = tril(q' b"^T)
//               and of what values write: keys k e^{r-b}, tril_{-1}(r' keys^T), tril(q' keys^T)
//   N~          of inverse_steps.cuh; under a low-rank rule T - I with
//               T = (I - tril_{-1}(r' b"^T))^{-1}
//   decays      to = e^r, through = 1, from = e^{all-r} [d_k]
//
// In a strong chunk r = 0 for q', k', r', and r = all for the rest; to = from = 1, through = e^all.
// Cost: of d_k = 128 a delta rule's record has 65.5 KiB, that of a low-rank rule 97.5.
#pragma once

#include "sp_methods/kernels/device/gla/layer.cuh"
#include "sp_methods/kernels/device/tile/warp_group.cuh"
#include "sp_methods/kernels/kept_maps.hpp"

namespace baton {

/// A cut of a call's heads into chunks of the device.
inline Segments each_chunk(const Chunks& p) { return {p.shape, p.work, device_chunks(p), Dtype::bf16}; }

/// How the tokens of a layer move its state: by a delta rule without gates, with a gate a head or a
/// gate a channel, or by a low-rank rule with any gates.
enum class ChunkRule { ungated, gate_a_head, gate_a_channel, low_rank };

template <ChunkRule rule>
using RuleConstant = std::integral_constant<ChunkRule, rule>;

/// The rule of chunks under a delta rule.
inline ChunkRule delta_rule(GateKind kind) {
  if (kind == GateKind::vector) return ChunkRule::gate_a_channel;
  return kind == GateKind::scalar ? ChunkRule::gate_a_head : ChunkRule::ungated;
}

/// Calls f with the widths of a shape and the rule of its chunks as types: f(d_k, d_v, rule).
template <class Function>
cudaError_t with_rule(const LayerShape& shape, ChunkRule rule, Function f) {
  return with_widths(shape, [&](auto d_k, auto d_v) {
    if (rule == ChunkRule::low_rank) return f(d_k, d_v, RuleConstant<ChunkRule::low_rank>{});
    if (rule == ChunkRule::gate_a_channel) return f(d_k, d_v, RuleConstant<ChunkRule::gate_a_channel>{});
    if (rule == ChunkRule::gate_a_head) return f(d_k, d_v, RuleConstant<ChunkRule::gate_a_head>{});
    return f(d_k, d_v, RuleConstant<ChunkRule::ungated>{});
  });
}

/// Offsets of the parts of a record, tiles of panels and then the decays in fp32. What one sweep
/// reads lies together.
template <int d_k, ChunkRule rule = ChunkRule::gate_a_channel>
struct ChunkRecord {
  using Keys = PanelTile<d_k>;
  using Pairs = PanelTile<device_chunk>;
  static constexpr bool has_keys = rule == ChunkRule::low_rank;  ///< Of values, beside b".
  static constexpr int q_at = 0, a_at = Keys::bytes, in_at = a_at + Pairs::bytes,
                       out_at = in_at + Keys::bytes, n_at = out_at + Keys::bytes,
                       keys_at = n_at + Pairs::bytes;
  static constexpr int read_values_at = keys_at + Keys::bytes,
                       query_values_at = read_values_at + Pairs::bytes;
  static constexpr int floats_at = has_keys ? query_values_at + Pairs::bytes : keys_at;
  static constexpr int float_bytes = 3 * d_k * 4;
  static constexpr int strong_at = floats_at + float_bytes;  ///< An int, 1 if the chunk is strong.
  static constexpr int bytes = strong_at + (has_keys ? 16 : 0);
  static_assert(bytes == (has_keys ? low_rank_chunk_bytes(d_k) : delta_chunk_bytes(GateKind::vector, d_k)));
};

/// The place of a 16-byte unit of a tile of panels.
struct PanelUnit {
  int row, column;  ///< Of the unit's first element.

  __device__ explicit PanelUnit(int unit)
      : row(unit / 8 % device_chunk), column(64 * (unit / (8 * device_chunk)) + ((unit ^ row) & 7) * 8) {}
};

/// Copies a tile that has its layout in global memory too, by all threads of a block.
template <int bytes>
__device__ inline void copy_tile(char* into, const char* from) {
#pragma unroll
  for (int i = 0; i < bytes / 16 / tile_threads; ++i) {
    const int unit = static_cast<int>(threadIdx.x) + i * tile_threads;
    reinterpret_cast<uint4*>(into)[unit] = reinterpret_cast<const uint4*>(from)[unit];
  }
}

/// Starts the copy of such a tile to shared memory.
template <int bytes>
__device__ inline void load_tile(char* into, const char* from) {
#pragma unroll
  for (int i = 0; i < bytes / 16 / tile_threads; ++i) {
    const int at = 16 * (static_cast<int>(threadIdx.x) + i * tile_threads);
    copy_16_async(shared_address(into) + at, from + at, true);
  }
}

/// Copies a tile to a tile of panels in global memory, by all threads of a block.
template <int width>
__device__ inline void copy_to_panels(char* into, const Bf16Tile<width>& from) {
#pragma unroll
  for (int i = 0; i < PanelTile<width>::bytes / 16 / tile_threads; ++i) {
    const int unit = static_cast<int>(threadIdx.x) + i * tile_threads;
    const PanelUnit place(unit);
    reinterpret_cast<uint4*>(into)[unit] =
        *reinterpret_cast<const uint4*>(from.memory + Bf16Tile<width>::offset(place.row, place.column));
  }
}

}  // namespace baton
