// SPDX-License-Identifier: Apache-2.0
// The scores of a strong chunk level by level (pair_levels.cuh): A = tril(s q k^T decayed), and G,
// that of keys with keys.
//
// `Memory` has the plain keys keys_in(), the log2 decays of tokens, and room for the rows of a
// level in q() and keys_out().
// Cost: 14 barriers; for each level the exponentials of a tile, and
// 2 * 64 * 64 d_k flop for each of both products.
#pragma once

#include "sp_methods/kernels/device/delta/pair_levels.cuh"
#include "sp_methods/kernels/device/gla/scores.cuh"

namespace baton {

/// A warp's 16 x 16 pieces of scores.
template <class Memory, int d_k>
struct StrongScores {
  Sums<1, 1> keys, queries;

  /// Computes the pieces of all warps. All threads of the block call it.
  __device__ static StrongScores of(const PairsOfThread<d_k>& plain_queries) {
    StrongScores found;
    found.keys.clear(), found.queries.clear();
    bool last = false;
#pragma unroll 1
    for (PairLevel level{device_chunk / 2}; !last; level.bit /= 2) {
      last = level.bit == 0;  // pairs of tokens with themselves
      __syncthreads();
      ThreadPairs<d_k>::for_each(Memory::decays(), level, [&](int i, int at, float2 decay, bool is_later) {
        if (is_later) Memory::q().set_pair(at, decay * unpacked_pair(plain_queries.x[i]));
        Memory::keys_out().set_pair(at, decay * Memory::keys_in().pair(at));
      });
      __syncthreads();
      if (level.has_piece(warp_row(), warp_column())) found.add(level);
    }
    found.queries.for_each([](int, int, float2& x) { x = power_of_2(log2_scale<d_k>) * x; });
    return found;
  }

 private:
  /// Adds the scores of a level's pairs.
  __device__ void add(PairLevel level) {
    const int row = 16 * warp_row(), column = 16 * warp_column();
    Sums<1, 1> more_keys, more_queries;
    add_products(scores_product(more_keys, Memory::keys_out(), Memory::keys_out(), row, column),
                 scores_product(more_queries, Memory::q(), Memory::keys_out(), row, column));
    const int later = row + (lane() >> 2), earlier = column + 2 * (lane() & 3);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int n = i / 4, x = i % 4;
      if (!level.has(later + 8 * (x / 2), earlier + 8 * n + x % 2)) continue;
      keys.c[0][n][x] += more_keys.c[0][n][x];
      queries.c[0][n][x] += more_queries.c[0][n][x];
    }
  }
};

}  // namespace baton
