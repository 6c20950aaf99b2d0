// SPDX-License-Identifier: Apache-2.0
// The device kernels of linear attention with a low-rank rule share the scaling of a chunk's rows
// by its decays and the room of a call. Records and sweeps are those of delta/groups/.
//
//   gentle chunk, r the log decay in its middle:
//     q' = s q e^{c-r}    r' = a e^{c-g-r}    keys k e^{r-c}   b" = b e^{r-c}
//   strong chunk:  r = 0 for q' and r', r = all for keys and b"; pairs are summed one by one
//
// A token reads the state before its own gate, so its read has the decay before it. Gates of all
// kinds take this way, and those of a head count for each of its channels. A token's gate may be as
// low as -20: a chunk is strong where gates of 32 tokens sum to less than -60 (gate_walk.cuh).
// Reads of token i are, of strong pairs, queries of token i - 1.
// Cost: two exponentials a token and channel.
#pragma once

#include "sp_methods/kernels/device/delta/scaling.cuh"
#include "sp_methods/kernels/low_rank.hpp"

namespace baton {

/// The rows of one chunk in global memory.
struct LowRankRows {
  HeadRows<const Bf16> q, k, a, b;

  __device__ LowRankRows(const DeviceLayer& layer, const LowRankInputs<OnDevice>& in, int d_k, int chunk)
      : q(layer.rows(in.of.q, d_k, chunk)),
        k(layer.rows(in.of.k, d_k, chunk)),
        a(layer.rows(in.a, d_k, chunk)),
        b(layer.rows(in.b, d_k, chunk)) {}

  /// Row i is the read of token i + 1.
  __device__ HeadRows<const Bf16> reads() const { return {a.row(1), a.stride, a.count - 1}; }
};

/// A chunk's tiles while they are scaled.
template <GateKind kind, int d_k>
struct LowRankTiles {
  Bf16Tile<d_k> q, reads, keys, writes;

  /// Scales the tiles gently. The decay before a token's gate is that behind the one before it.
  __device__ void scale(const GateWalk<kind, d_k>& walk) const {
    const DecayFactor in = in_factor(walk.middle), out = key_factor(walk.middle);
    const float s = power_of_2(log2_scale<d_k>);
    float2 b = walk.before, before = in.at(b);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int at = q.below(walk.start, i);
      b = b + walk.gate[i];
      const float2 behind = in.at(b), rest = out.at(b);
      reads.set_pair(at, before * reads.pair(at));
      q.set_pair(at, s * behind * q.pair(at));
      keys.set_pair(at, rest * keys.pair(at));
      writes.set_pair(at, rest * writes.pair(at));
      before = behind;
    }
  }

  /// Sets the tiles to those of a strong chunk.
  __device__ void scale_strongly(const GateWalk<kind, d_k>& walk, const LowRankRows& rows) const {
    walk.scale_from(rows.q, q, query_factor<d_k>({0.0F, 0.0F}));
    walk.scale_from(rows.k, keys, key_factor(walk.all));
    walk.scale_from(rows.b, writes, key_factor(walk.all));
    const DecayFactor factor = in_factor({0.0F, 0.0F});
    float2 before = walk.before;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int token = walk.first + i;
      float2 a{0.0F, 0.0F};
      if (token < rows.a.count) a = load_pair(rows.a.row(token) + walk.channel);
      reads.set_pair(reads.below(walk.start, i), factor.at(before) * a);
      before = before + walk.gate[i];
    }
  }
};

/// Makes room in the workspace for a call without gradients, and returns the reason if it cannot
/// run here.
Refusal lacks_low_rank_room(const Chunks& p);
/// The same for a call of gradients.
Refusal lacks_low_rank_room_of_gradients(const Chunks& p);

}  // namespace baton
