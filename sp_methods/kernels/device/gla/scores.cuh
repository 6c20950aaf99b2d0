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
#include "sp_methods/kernels/device/tile/warp_group.cuh"

namespace baton {

/// Stores the lower triangle of a warp's 16 x 16 piece of scores. Dropped scores may be infinite.
template <class Tile>
__device__ inline void put_lower(const Tile& into, Sums<1, 1>& sums, int row, int column) {
  sums.for_each([&](int r, int c, float2& x) {
    if (column + c > row + r) x.x = 0.0F;
    if (column + c + 1 > row + r) x.y = 0.0F;
  });
  put_sums(into, row, column, sums);
}

/// Stores a 16 x 16 piece, with zeros on and above the diagonal.
template <class Tile>
__device__ inline void put_strictly_lower(const Tile& into, Sums<1, 1>& sums, int row, int column) {
  sums.for_each([&](int r, int c, float2& x) {
    if (column + c >= row + r) x.x = 0.0F;
    if (column + c + 1 >= row + r) x.y = 0.0F;
  });
  put_sums(into, row, column, sums);
}

/// A warp's piece of L R^T, as a product to be added.
template <int width>
__device__ inline auto scores_product(Sums<1, 1>& sums, const Bf16Tile<width>& left,
                                      const Bf16Tile<width>& right, int row, int column) {
  sums.clear();
  return product<width / 16>(sums, left_operand<RowsAre::outer>(left, row),
                             right_operand<RowsAre::outer>(right, column));
}

/// Log decay below which a pair does not count beside a token's pair with itself.
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

/// The channels of one lane, in pairs.
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

/// Sets row i of the scores, up to the end of its `piece` columns on the diagonal.
template <int piece, class Scores, class Gates>
__device__ inline void strong_score_row(const Scores& scores, const Gates& gates, const QueryKeyRows& rows,
                                        int i) {
  constexpr int d_k = Gates::channels;
  for (int j = lane(); j <= (i | (piece - 1)); j += 32) scores.set(i, j, 0.0F);
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
      decay.x[p] = decay.x[p] + gates.pair(Gates::Tile::offset(j, k.channel(p)), j);
    }
    if (__all_sync(0xffffffffU, greatest < negligible_decay)) break;
    sum = power_of_2(log2_scale<d_k>) * sum_over_warp(sum);
    if (lane() == 0) scores.set(i, j, sum);
  }
}

/// Sets the lower triangle of a chunk's scores by the block's first `warps` warps. Zeros fill
/// pieces of `piece` columns beyond the diagonal.
template <int warps = tile_threads / 32, int piece = 16, class Scores, class Gates>
__device__ inline void strong_scores(const Scores& scores, const Gates& gates, const QueryKeyRows& rows) {
#pragma unroll 1
  for (int turn = 0; turn < device_chunk / warps; ++turn) {  // all warps get rows of one total length
    const int row = (turn & 1) == 0 ? warp() : warps - 1 - warp();
    strong_score_row<piece>(scores, gates, rows, warps * turn + row);
  }
}

/// A sum without the factor s, and the log decay from the chunk's edge: b_i for a query, all - b_j
/// for a key.
struct StrongSum {
  float2 sum, decay;
};

/// The sum that keys before token i add to its query gradient.
template <class Scores, class Gates>
__device__ inline StrongSum strong_query_sum(const Scores& d_scores, const Gates& gates,
                                             const HeadRows<const Bf16>& k, int i, int channel) {
  float2 sum{0.0F, 0.0F}, decay = gates.pair(Gates::Tile::offset(i, channel), i);
#pragma unroll 1
  for (int j = i - 1; j >= 0; --j) {
    if (j < k.count) sum = sum + d_scores.at(i, j) * (decay_of(decay) * load_pair(k.row(j) + channel));
    decay = decay + gates.pair(Gates::Tile::offset(j, channel), j);
  }
  return {sum, decay};
}

/// The sum that queries after token j add to its key gradient.
template <class Scores, class Gates>
__device__ inline StrongSum strong_key_sum(const Scores& d_scores, const Gates& gates,
                                           const HeadRows<const Bf16>& q, int j, int channel) {
  float2 sum{0.0F, 0.0F}, decay = sum;
#pragma unroll 1
  for (int i = j + 1; i < device_chunk; ++i) {
    decay = decay + gates.pair(Gates::Tile::offset(i, channel), i);
    if (i < q.count) sum = sum + d_scores.at(i, j) * (decay_of(decay) * load_pair(q.row(i) + channel));
  }
  return {sum, decay};
}

/// True if the block's segment belongs to the kernel of `tile_threads` threads rather than to the
/// one on warp groups. Its chunks are strong on average in some channel, or its last chunk is
/// short. `edge` is the segment's start in the order of the pass. All threads of the block call it.
template <int d_k>
__device__ inline bool belongs_to_sixteen_warps(const SegmentEdges<OnDevice>& edges, const DeviceLayer& layer,
                                                int edge) {
  const int channel = static_cast<int>(threadIdx.x), end = layer.first_chunk(DeviceLayer::segment() + 1);
  asm volatile("" : "+r"(edge));  // or the compiler keeps what it computes from it in registers
  bool belongs =
      end == layer.chunks() && is_short(static_cast<int>(layer.tokens - (end - 1L) * device_chunk));
  if (edges.gates != nullptr && channel < d_k) {
    const std::int64_t number = static_cast<std::int64_t>(DeviceLayer::place()) * (layer.segments + 1) + edge;
    const float* const gates = edges.gates + number * d_k + channel;
    const int chunks = end - layer.first_chunk(DeviceLayer::segment());
    belongs |= gates[d_k] - gates[0] < -2.0F * device_gate_guard * static_cast<float>(chunks);
  }
  return GroupBarrier{15, static_cast<int>(blockDim.x)}.any(belongs);
}

}  // namespace baton
