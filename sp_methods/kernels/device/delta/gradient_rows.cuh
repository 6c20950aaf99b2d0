// SPDX-License-Identifier: Apache-2.0
// The last part of a chunk's gradients under a delta rule: from the sums X, Yl, Yr of gradients.cu
// to dq, dk and dg.
//
//   dq = s e^{b-r} X + own k        dk = e^{b-r} Yl + e^{r-b} Yr + own q
//   terms of dg = q' X + k' Yl - k" Yr;   dg_i = what passes the right edge + their sum from i on
//
// A lane has pairs of channels of two tokens, as the sums lie. Terms are summed over tokens by
// shuffles within a warp, then over the warps' totals.
#pragma once

#include "sp_methods/kernels/device/delta/gradient_memory.cuh"
#include "sp_methods/kernels/device/delta/strong_pairs.cuh"

namespace baton {

/// A warp's gradients of 16 tokens and a quarter of the channels: of queries, and of keys as the
/// later and as the earlier one of a pair.
template <int d_k>
struct KeyGradientSums {
  Sums<1, d_k / 64> queries, later, earlier;
};

/// The sum of a pair of columns over the 8 rows that the lanes hold, in every lane.
__device__ inline float2 sum_over_rows(float2 x) {
#pragma unroll
  for (int apart = 4; apart < 32; apart *= 2) x = x + shuffled(x, lane() ^ apart);
  return x;
}

/// Sets a warp's part of the sum over keys of k (.) y, without token `last`: what a chunk's last
/// token writes passes no gate in it, and is larger than all of dg where gates are strong.
template <int d_k, class Tile>
__device__ inline void put_leaving(float* into, const Tile& keys, int row, int column,
                                   const Sums<1, d_k / 64>& y, int last) {
  const SumsPlace<Tile> place(row, column);
#pragma unroll
  for (int n = 0; n < d_k / 32; ++n) {
    float2 sum{0.0F, 0.0F};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (row + 8 * half + (lane() >> 2) == last) continue;
      sum = sum + keys.pair(place.at(0, half, n)) * float2{y.c[0][n][2 * half], y.c[0][n][2 * half + 1]};
    }
    sum = sum_over_rows(sum);
    if (lane() < 4) *reinterpret_cast<float2*>(into + column + 8 * n + 2 * lane()) = sum;
  }
}

/// Writes dg for one gate a channel: the sum of terms from each token on, and of pairs that pass
/// the chunk's right edge, in `parts` sums over channels.
template <int d_k, int parts = 8>
__device__ inline void write_gates_of_channels(const HeadRows<Bf16>& dg, const Sums<1, d_k / 64>& terms,
                                               float* totals, const float* passing, int row, int column) {
  float2 suffix[2][d_k / 32];  // of both halves of the warp's 16 rows
#pragma unroll
  for (int n = 0; n < d_k / 32; ++n) {
#pragma unroll
    for (int half = 1; half >= 0; --half) {
      float2 sum{terms.c[0][n][2 * half], terms.c[0][n][2 * half + 1]};
#pragma unroll
      for (int apart = 4; apart < 32; apart *= 2) {
        const float2 later{__shfl_down_sync(0xffffffffU, sum.x, apart),
                           __shfl_down_sync(0xffffffffU, sum.y, apart)};
        if (lane() + apart < 32) sum = sum + later;
      }
      if (half == 0) sum = sum + shuffled(suffix[1][n], lane() & 3);
      suffix[half][n] = sum;
    }
    if (lane() < 4)
      *reinterpret_cast<float2*>(totals + row / 16 * d_k + column + 8 * n + 2 * lane()) = suffix[0][n];
  }
  __syncthreads();
#pragma unroll
  for (int n = 0; n < d_k / 32; ++n) {
    const int channel = column + 8 * n + 2 * (lane() & 3);
    float2 right{0.0F, 0.0F};
    for (int part = 0; part < parts; ++part)
      right = right + *reinterpret_cast<const float2*>(passing + part * d_k + channel);
    for (int later = row / 16 + 1; later < 4; ++later)
      right = right + *reinterpret_cast<const float2*>(totals + later * d_k + channel);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int token = row + 8 * half + (lane() >> 2);
      if (token < dg.count) store_pair(dg.row(token) + channel, suffix[half][n] + right);
    }
  }
}

/// Writes dg for one gate a head: the sum over channels and later tokens, and of pairs that pass
/// the chunk's right edge. `totals` has room for 4 numbers a token, of which this warp's is number
/// `quarter`.
template <int d_k, int parts = 8>
__device__ inline void write_gates_of_head(const HeadRows<Bf16>& dg, const Sums<1, d_k / 64>& terms,
                                           float* totals, const float* passing, int row, int quarter) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = 0.0F;
#pragma unroll
    for (int n = 0; n < d_k / 32; ++n) sum += terms.c[0][n][2 * half] + terms.c[0][n][2 * half + 1];
    sum += __shfl_xor_sync(0xffffffffU, sum, 1);
    sum += __shfl_xor_sync(0xffffffffU, sum, 2);
    const int token = row + 8 * half + (lane() >> 2);
    if ((lane() & 3) == 0) totals[quarter * device_chunk + token] = sum;
  }
  __syncthreads();
  if (warp() > 0) return;
  float right = 0.0F;
  for (int i = lane(); i < parts * d_k; i += 32) right += passing[i];
  right = warp_sum(right);
  float2 own{0.0F, 0.0F};
  for (int part = 0; part < 4; ++part)
    own = own + *reinterpret_cast<const float2*>(totals + part * device_chunk + 2 * lane());
  float sum = own.x + own.y;
#pragma unroll
  for (int apart = 1; apart < 32; apart *= 2) {
    const float later = __shfl_down_sync(0xffffffffU, sum, apart);
    if (lane() + apart < 32) sum += later;
  }
  const int token = 2 * lane();
  if (token < dg.count) *dg.row(token) = __float2bfloat16(sum + right);
  if (token + 1 < dg.count) *dg.row(token + 1) = __float2bfloat16(sum - own.x + right);
}

/// Turns sums of products into the gradients of rows.
template <int d_k, int d_v>
struct FinishedRows {
  using Memory = DeltaGradientMemory<d_k, d_v>;

  QueryKeyRows rows;
  bool strong;

  /// Removes the reference of decays from the sums.
  __device__ RowGradients<d_k> gradients(const KeyGradientSums<d_k>& sums, int row, int column) const {
    RowGradients<d_k> found;
#pragma unroll
    for (int i = 0; i < d_k / 16; ++i) {
      const int half = i / (d_k / 32), n = i % (d_k / 32);
      const int token = row + 8 * half + (lane() >> 2), channel = column + 8 * n + 2 * (lane() & 3);
      Pairs x{pair_of(sums.queries, half, n), pair_of(sums.later, half, n), pair_of(sums.earlier, half, n)};
      set_pair_of(found.terms, half, n, finish(x, token, channel));
      set_pair_of(found.queries, half, n, x.query);
      set_pair_of(found.keys, half, n, x.later + x.earlier);
    }
    return found;
  }

  /// Writes dq and dk, with what a token's pair with itself adds.
  __device__ void write(const RowGradients<d_k>& x, const HeadRows<Bf16>& dq, const HeadRows<Bf16>& dk,
                        int row, int column) const {
#pragma unroll
    for (int i = 0; i < d_k / 16; ++i) {
      const int half = i / (d_k / 32), n = i % (d_k / 32);
      const int token = row + 8 * half + (lane() >> 2), channel = column + 8 * n + 2 * (lane() & 3);
      if (token >= dq.count) continue;
      const float own = Memory::own()[token];
      store_pair(dq.row(token) + channel,
                 pair_of(x.queries, half, n) + own * load_pair(rows.k.row(token) + channel));
      store_pair(dk.row(token) + channel,
                 pair_of(x.keys, half, n) + own * load_pair(rows.q.row(token) + channel));
    }
  }

 private:
  /// The gradients of two channels of a token.
  struct Pairs {
    float2 query, later, earlier;
  };

  /// Removes the reference of decays from the gradients, and returns their term of dg.
  __device__ float2 finish(Pairs& x, int token, int channel) const {
    const int at = Bf16Tile<d_k>::offset(token, channel);
    const float2 q = Memory::q().pair(at), in = Memory::keys_in().pair(at), out = Memory::keys_out().pair(at);
    const bool is_last = token + 1 == rows.q.count;  // its key is the earlier one of no pair here
    const float2 term = q * x.query + in * x.later - (is_last ? 0.0F : 1.0F) * (out * x.earlier);
    const float2 b = (1.0F / log2_e) * Memory::log2_decays().pair(FloatTile<d_k>::offset(token, channel));
    const float2 r = strong ? float2{0.0F, 0.0F} : *reinterpret_cast<const float2*>(Memory::to() + channel);
    const float2 end = strong ? *reinterpret_cast<const float2*>(Memory::from() + channel) : r;
    x.query = query_factor<d_k>(r).at(b) * x.query;
    x.later = in_factor(r).at(b) * x.later;
    x.earlier = key_factor(end).at(b) * x.earlier;
    return term;
  }
};

}  // namespace baton
