// SPDX-License-Identifier: Apache-2.0
// The pairs of a strong chunk level by level, so that they are products too.
//
// Pair (i, j), j < i, belongs to the level of the highest bit in which i and j differ. All its
// pairs within the same 2 * bit tokens pass the middle m of these, the first token that has the
// bit:
//
//   e^{b_i - b_j} = e^{b_i - b_{m-1}} e^{b_{m-1} - b_j},      both factors at most 1
//
// At a level a token is either the later or the earlier one of all its pairs, so one tile holds its
// scaled rows. The six levels of 64 tokens have every pair once. At bits 32 and 16 a level is whole
// pieces of 16 x 16 pairs, below it is a part of the pieces on the diagonal.
// Cost: one exponential a number and tile of each level, where a sum over pairs has 32 of them.
#pragma once

#include "sp_methods/kernels/device/gla/gate_walk.cuh"

namespace baton {

/// The pairs of tokens whose numbers differ in `bit` and in no higher one. A bit of 0 stands for
/// the pairs of each token with itself.
struct PairLevel {
  int bit;

  __device__ bool is_later(int token) const { return (token & bit) != 0; }
  __device__ bool has(int later, int earlier) const {
    const int differ = later ^ earlier;
    return bit == 0 ? differ == 0 : later > earlier && differ >= bit && differ < 2 * bit;
  }
  /// True if the level has pairs in the 16 x 16 piece (row, column).
  __device__ bool has_piece(int row, int column) const {
    return bit < 16 ? row == column : PairLevel{bit / 16}.has(row, column);
  }
  /// The last token before the middle that the pairs of `token` pass.
  __device__ int before_middle(int token) const { return bit == 0 ? token : ((token | bit) & -bit) - 1; }
};

/// The decay between a token and the middle of a level, from the log2 decays of both, either of
/// which may be the later one.
__device__ inline float2 decay_between(float2 b, float2 middle) {
  const float2 d = b - middle;
  return {power_of_2(-fabsf(d.x)), power_of_2(-fabsf(d.y))};
}

/// Sets the log2 decays of a chunk's tokens and channels.
template <GateKind kind, int d_k>
__device__ inline void put_log2_decays(const FloatTile<d_k>& into, const GateWalk<kind, d_k>& walk) {
  float2 b = walk.before;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    b = b + walk.gate[i];
    into.set_pair(into.offset(walk.first + i, walk.channel), log2_e * b);
  }
}

/// A thread's pairs of channels in a chunk: one pair of neighbouring tokens. A warp has 64 channels
/// of a token.
template <int d_k>
struct ThreadPairs {
  static constexpr int tokens = device_chunk * d_k / 2 / tile_threads;

  __device__ static int channel() { return 2 * (static_cast<int>(threadIdx.x) % (d_k / 2)); }
  __device__ static int token(int i) { return static_cast<int>(threadIdx.x) / (d_k / 2) * tokens + i; }

  /// Calls f(i, offset, decay, is_later) for every token i of the thread, with its place in a bf16
  /// tile and its decay to the middle of a level. `is_later` is true of all tokens that are the
  /// later ones of their pairs.
  template <class Function>
  __device__ static void for_each(const FloatTile<d_k>& decays, PairLevel level, Function f) {
    const int start = Bf16Tile<d_k>::offset(token(0), channel());
    const int own = decays.offset(token(0), channel());
    const auto middle_of = [&](int i) {
      return decays.pair(decays.offset(level.before_middle(token(i)), channel()));
    };
    const bool has_later = level.bit < tokens || level.is_later(token(0));
    float2 middle = middle_of(0);
#pragma unroll
    for (int i = 0; i < tokens; ++i) {
      if (level.bit < tokens) middle = middle_of(i);
      const float2 decay = decay_between(decays.pair(decays.below(own, i)), middle);
      f(i, Bf16Tile<d_k>::below(start, i), decay, has_later);
    }
  }
};

/// A thread's pairs of channels of a chunk's rows, zero past their end.
template <int d_k>
struct PairsOfThread {
  std::uint32_t x[ThreadPairs<d_k>::tokens];

  __device__ explicit PairsOfThread(const HeadRows<const Bf16>& rows) {
#pragma unroll
    for (int i = 0; i < ThreadPairs<d_k>::tokens; ++i) {
      const int token = ThreadPairs<d_k>::token(i);
      const Bf16* const at = rows.row(token) + ThreadPairs<d_k>::channel();
      x[i] = token < rows.count ? *reinterpret_cast<const std::uint32_t*>(at) : 0;
    }
  }
};

}  // namespace baton
