// SPDX-License-Identifier: Apache-2.0
// What the pairs within a strong chunk add to the gradients of its rows, level by level
// (pair_levels.cuh). With q^ = s q e^., k^ = k e^. decayed to the middles of a level:
//
//   later tokens:    Xq = dA k^     Yk = dG k^               dq += s e^. Xq     dk += e^. Yk
//   earlier tokens:  Yk = dA^T q^ + dG^T k^                                     dk += e^. Yk
//   terms of dg:     q^ Xq + k^ Yk of later tokens, -k^ Yk of earlier ones
//
// A pair stands in the terms of both its tokens with the same rounded factors.
// Cost: 64 (64 d_k) flop for each of three products over all levels, and for each level the
// exponentials of two tiles and of one result.
#pragma once

#include "sp_methods/kernels/device/delta/pair_levels.cuh"

namespace baton {

/// A warp's gradients of 16 tokens and a quarter of the channels: of queries, of keys, and the
/// terms of dg.
template <int d_k>
struct RowGradients {
  Sums<1, d_k / 64> queries, keys, terms;
};

/// The left operand of a product, without the pairs of other levels. Its outer tokens are the later
/// ones if it is read along rows.
template <RowsAre rows_are>
class LevelOperand {
 public:
  /// The bits of a lane's fragment of a piece on the diagonal that belong to a level, and of all
  /// others everything.
  class Mask {
   public:
    __device__ explicit Mask(PairLevel level) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int outer = (lane() >> 2) + 8 * (i & 1), summed = 2 * (lane() & 3) + 8 * (i >> 1);
        bits_[i] = level.bit >= 16 ? ~0U
                                   : (has(level, outer, summed) ? 0x0000ffffU : 0U) |
                                         (has(level, outer, summed + 1) ? 0xffff0000U : 0U);
      }
    }
    __device__ void apply(std::uint32_t (&x)[4]) const {
#pragma unroll
      for (int i = 0; i < 4; ++i) x[i] &= bits_[i];
    }

   private:
    __device__ static bool has(PairLevel level, int outer, int summed) {
      return rows_are == RowsAre::outer ? level.has(outer, summed) : level.has(summed, outer);
    }
    std::uint32_t bits_[4];
  };

  __device__ LevelOperand(Bf16Tile<device_chunk> pairs, int outer, const Mask& mask)
      : pairs_(pairs, outer), mask_(mask) {}

  __device__ void load(std::uint32_t (&x)[4], int piece, int step) const {
    pairs_.load(x, piece, step);
    mask_.apply(x);
  }

 private:
  Operand<Side::left, rows_are, device_chunk> pairs_;
  const Mask& mask_;
};

/// The pairs of a strong chunk. `Memory` has dA, dG, the log2 decays of tokens, plain rows, and
/// room for those of a level.
template <class Memory, int d_k>
class StrongPairs {
 public:
  /// Adds them to the gradients of the warp's rows from `row` on and channels from `column` on. All
  /// threads of the block call it. Inlined, it would take the registers of gentle chunks.
  __device__ static __noinline__ void add_to(RowGradients<d_k>& into, int row, int column) {
    RowGradients<d_k> sums = into;
#pragma unroll 1
    for (PairLevel level{device_chunk / 2}; level.bit > 0; level.bit /= 2) {
      __syncthreads();
      ThreadPairs<d_k>::for_each(Memory::log2_decays(), level, [](int, int at, float2 decay, bool is_later) {
        const float2 q = power_of_2(log2_scale<d_k>) * decay * Memory::q().pair(at);
        if (is_later) Memory::level_queries().set_pair(at, q);
        Memory::level_keys().set_pair(at, decay * Memory::keys_in().pair(at));
      });
      __syncthreads();
      Products x, y;
      multiply(x, y, level, row, column);
      add(sums, x, y, level, row, column);
    }
    into = sums;
  }

 private:
  using Products = Sums<1, d_k / 64>;

  /// Sets x to Xq and y to Yk.
  __device__ static void multiply(Products& x, Products& y, PairLevel level, int row, int column) {
    using Later = LevelOperand<RowsAre::outer>;
    using Earlier = LevelOperand<RowsAre::summed>;
    const auto keys = right_operand<RowsAre::summed>(Memory::level_keys(), column);
    const int half = level.bit / 16, piece = row / 16;
    const int first = half == 0 ? piece : piece & -2 * half;  // of the pieces that the level joins
    x.clear(), y.clear();
    if (half == 0 || level.is_later(row)) {
      const Later::Mask mask(level);
      add_products_of<device_chunk / 16>(keys, x, Later(Memory::d_queries(), row, mask), y,
                                         Later(Memory::d_keys(), row, mask), first,
                                         first + (half == 0 ? 1 : half));
    }
    if (half == 0 || !level.is_later(row)) {
      const Earlier::Mask mask(level);
      const int begin = first + half, end = begin + (half == 0 ? 1 : half);
      add_product<device_chunk / 16>(y, Earlier(Memory::d_queries(), row, mask),
                                     right_operand<RowsAre::summed>(Memory::level_queries(), column), begin,
                                     end);
      add_product<device_chunk / 16>(y, Earlier(Memory::d_keys(), row, mask), keys, begin, end);
    }
  }

  /// Adds the products of a level to the gradients and their terms of dg.
  __device__ static void add(RowGradients<d_k>& sums, const Products& x, const Products& y, PairLevel level,
                             int row, int column) {
    using Floats = FloatTile<d_k>;
    const SumsPlace<Bf16Tile<d_k>> tile(row, column);
    const SumsPlace<Floats> own(row, column);
    const float s = power_of_2(log2_scale<d_k>);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int token = row + 8 * half + (lane() >> 2);
      const int middle = Floats::offset(level.before_middle(token), column + 2 * (lane() & 3));
      const float sign = level.is_later(token) ? 1.0F : -1.0F;
#pragma unroll
      for (int n = 0; n < d_k / 32; ++n) {
        const auto decays = Memory::log2_decays();
        const float2 decay =
            decay_between(decays.pair(own.at(0, half, n)), decays.pair(middle ^ (n * Floats::unit_bytes)));
        const int at = tile.at(0, half, n);
        const float2 xq = pair_of(x, half, n), yk = pair_of(y, half, n);
        const float2 term =
            Memory::level_queries().pair(at) * xq + sign * (Memory::level_keys().pair(at) * yk);
        set_pair_of(sums.terms, half, n, pair_of(sums.terms, half, n) + term);
        set_pair_of(sums.queries, half, n, pair_of(sums.queries, half, n) + s * (decay * xq));
        set_pair_of(sums.keys, half, n, pair_of(sums.keys, half, n) + decay * yk);
      }
    }
  }
};

}  // namespace baton
