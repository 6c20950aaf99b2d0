// SPDX-License-Identifier: Apache-2.0
// The scores of one chunk: as products where it is gentle, pair by pair where it is strong, which
// needs no e^{b} and e^{-b} apart.
//
//   A_ij = s sum_c q_ic k_jc e^{b_i - b_j},  j <= i     a warp a row, lanes a channel, j descends
//   dq_i += s sum_{j < i} dA_ij k_j e^{b_i - b_j}          a thread two channels of one token
//   dk_j +=   sum_{i > j} dA_ij s q_i e^{b_i - b_j}
//
// b_i - b_j is summed outwards from the pair, so every exponent is <= 0 and exact near the
// diagonal, which carries the weight. A token's own pair passes no gate and is added by the caller,
// so that it cannot cancel in dg.
// Cost of a strong chunk: one exponential a pair and channel, 4 times a gentle chunk's time in the
// output, 9 times in the gradients.
#pragma once

#include "sp_methods/kernels/device/gla/gate_walk.cuh"

namespace baton {

/// Puts a warp's 16 x 16 piece of scores, of which only the lower triangle counts; what is dropped
/// may be infinite.
__device__ inline void put_lower(const Bf16Tile<device_chunk>& into, Sums<1, 1>& sums, int row, int column) {
  sums.for_each([&](int r, int c, float2& x) {
    if (column + c > row + r) x.x = 0.0F;
    if (column + c + 1 > row + r) x.y = 0.0F;
  });
  put_sums(into, row, column, sums);
}

/// A warp's piece of L R^T as a product.
template <int width>
__device__ inline auto scores_product(Sums<1, 1>& sums, const Bf16Tile<width>& left,
                                      const Bf16Tile<width>& right, int row, int column) {
  sums.clear();
  return product<width / 16>(sums, left_operand<RowsAre::outer>(left, row),
                             right_operand<RowsAre::outer>(right, column));
}

/// Pairs whose log decay is beyond this do not count beside a token's own.
inline constexpr float negligible_decay = -35.0F;

__device__ inline float sum_over_warp(float x) {
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2) x += __shfl_xor_sync(0xffffffffU, x, apart);
  return x;
}

/// The rows of one chunk's queries and keys in global memory.
struct QueryKeyRows {
  HeadRows<const Bf16> q, k;
};

/// Pairs of channels of one lane.
template <int d_k>
struct LaneChannels {
  static constexpr int pairs = d_k / 64;
  float2 x[pairs];

  __device__ static int channel(int pair) { return 2 * lane() + 64 * pair; }
  __device__ void read(const HeadRows<const Bf16>& rows, int token) {
#pragma unroll
    for (int p = 0; p < pairs; ++p) {
      x[p] = token < rows.count ? load_pair(rows.row(token) + channel(p)) : float2{0.0F, 0.0F};
    }
  }
};

/// Row i of the scores, up to the end of its 16 x 16 piece on the diagonal.
template <GateKind kind, int d_k, class Scores>
__device__ inline void strong_score_row(const Scores& scores, const GateTile<kind, d_k>& gates,
                                        const QueryKeyRows& rows, int i) {
  for (int j = lane(); j <= (i | 15); j += 32) scores.set(i, j, 0.0F);
  __syncwarp();
  LaneChannels<d_k> q, k, decay;
  q.read(rows.q, i);
  for (auto& x : decay.x) x = {0.0F, 0.0F};
  for (int j = i; j >= 0; --j) {
    k.read(rows.k, j);
    float sum = 0.0F, greatest = -1000.0F;
#pragma unroll
    for (int p = 0; p < k.pairs; ++p) {
      const float2 factor = decay_of(decay.x[p]);
      sum += q.x[p].x * k.x[p].x * factor.x + q.x[p].y * k.x[p].y * factor.y;
      greatest = fmaxf(greatest, fmaxf(decay.x[p].x, decay.x[p].y));
      decay.x[p] = decay.x[p] + gates.pair(Bf16Tile<d_k>::offset(j, k.channel(p)), j);
    }
    if (__all_sync(0xffffffffU, greatest < negligible_decay)) break;
    sum = power_of_2(log2_scale<d_k>) * sum_over_warp(sum);
    if (lane() == 0) scores.set(i, j, sum);
  }
}

/// The lower triangle of a chunk's scores.
template <GateKind kind, int d_k, class Scores>
__device__ inline void strong_scores(const Scores& scores, const GateTile<kind, d_k>& gates,
                                     const QueryKeyRows& rows) {
#pragma unroll 1
  for (int turn = 0; turn < 4; ++turn) {  // every warp gets rows of the same total length
    const int row = (turn & 1) == 0 ? warp() : 31 - warp();
    strong_score_row(scores, gates, rows, row + 16 * (turn & 2));
  }
}

/// What keys before token i give to its query gradient, without the factor s.
template <GateKind kind, int d_k>
__device__ inline float2 strong_query_sum(const Bf16Tile<device_chunk>& d_scores,
                                          const GateTile<kind, d_k>& gates, const HeadRows<const Bf16>& k,
                                          int i, int channel) {
  float2 sum{0.0F, 0.0F}, decay = sum;
#pragma unroll 1
  for (int j = i - 1; j >= 0; --j) {
    decay = decay + gates.pair(Bf16Tile<d_k>::offset(j + 1, channel), j + 1);
    if (j < k.count) sum = sum + d_scores.at(i, j) * (decay_of(decay) * load_pair(k.row(j) + channel));
  }
  return sum;
}

/// What queries after token j give to its key gradient, without the factor s.
template <GateKind kind, int d_k>
__device__ inline float2 strong_key_sum(const Bf16Tile<device_chunk>& d_scores,
                                        const GateTile<kind, d_k>& gates, const HeadRows<const Bf16>& q,
                                        int j, int channel) {
  float2 sum{0.0F, 0.0F}, decay = sum;
#pragma unroll 1
  for (int i = j + 1; i < q.count; ++i) {
    decay = decay + gates.pair(Bf16Tile<d_k>::offset(i, channel), i);
    sum = sum + d_scores.at(i, j) * (decay_of(decay) * load_pair(q.row(i) + channel));
  }
  return sum;
}

}  // namespace baton
