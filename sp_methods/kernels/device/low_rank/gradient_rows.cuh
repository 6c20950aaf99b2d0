// SPDX-License-Identifier: Apache-2.0
// The last part of a chunk's gradients under a low-rank rule: from the sums Xq, Xr, Yk, Yb of
// gradients.cu to dq, da, dk, db and the terms of dg.
//
//   dq = s e^{c-r} (Xq + own_value k" + own_write b")      da = e^{c-g-r} (Xr + pairs with the token before)
//   dk = e^{r-c} (Yk + own_value q' + next_value r'_next)   db likewise, of writes
//   term of dg = q' Xq - k" Yk - b" Yb + (r' Xr) of the next token
//
// A token's read counts for the gates before it: hence the shift by one, through shared memory.
// Pairs of a strong chunk are summed one by one (gla/scores.cuh).
#pragma once

#include "sp_methods/kernels/device/delta/gradient_rows.cuh"
#include "sp_methods/kernels/device/low_rank/gradient_memory.cuh"

namespace baton {

/// A warp's gradients of 16 tokens and a quarter of the channels.
template <int d_k>
struct LowRankSums {
  Sums<1, d_k / 64> queries, reads, keys, writes;
};

/// The gradients of reads' scores, where row i is that of token i + 1.
struct NextRows {
  Bf16Tile<device_chunk> scores;

  __device__ float at(int row, int column) const { return scores.at(row + 1, column); }
};

/// Turns sums of products into the gradients of rows.
template <int d_k, int d_v, GateKind kind>
struct FinishedLowRankRows {
  using Memory = LowRankGradientMemory<d_k, d_v, kind>;

  LowRankRows rows;
  bool strong;

  /// Writes da, and keeps the reads' terms of dg.
  __device__ void write_reads(const Sums<1, d_k / 64>& sums, const HeadRows<Bf16>& da, int row,
                              int column) const {
    for_each(sums, row, column, [&](float2 x, int token, int channel) {
      float2 term = Memory::reads().pair(Bf16Tile<d_k>::offset(token, channel)) * x;
      if (token >= da.count) return put_term(token, channel, {0.0F, 0.0F});
      float2 near{0.0F, 0.0F};
      if (token > 0)
        near = Memory::next_value()[token - 1] * row_of(rows.k, Memory::keys(), token - 1, channel) +
               Memory::next_write()[token - 1] * row_of(rows.b, Memory::writes(), token - 1, channel);
      const DecayFactor factor = in_factor(at(Memory::start(), channel));
      x = unscaled(x, near, factor.at(decay_before(token, channel)));
      if (strong && token > 0) {
        const float2 more = strong_read(token, channel);
        x = x + more;
        term = term + load_pair(rows.a.row(token) + channel) * more;
      }
      put_term(token, channel, term);
      store_pair(da.row(token) + channel, x);
    });
  }

  /// Writes dq, and turns the sums into the terms of dg.
  __device__ void write_queries(Sums<1, d_k / 64>& sums, const HeadRows<Bf16>& dq, int row,
                                int column) const {
    set_each(sums, row, column, [&](float2 x, int token, int channel) {
      float2 term = Memory::q().pair(Bf16Tile<d_k>::offset(token, channel)) * x;
      if (token >= dq.count) return float2{0.0F, 0.0F};
      const float2 near = Memory::own_value()[token] * row_of(rows.k, Memory::keys(), token, channel) +
                          Memory::own_write()[token] * row_of(rows.b, Memory::writes(), token, channel);
      const DecayFactor factor = query_factor<d_k>(at(Memory::start(), channel));
      x = unscaled(x, plain_scale() * near, factor.at(decay(token, channel)));
      if (strong) {
        const float2 more = strong_query(token, channel);
        x = x + more;
        term = term + load_pair(rows.q.row(token) + channel) * more;
      }
      store_pair(dq.row(token) + channel, x);
      if (token + 1 < device_chunk)
        term = term + Memory::read_terms().pair(FloatTile<d_k>::offset(token + 1, channel));
      return term;
    });
  }

  /// Writes dk or db, and turns the sums into what they take from the terms of dg. `own` and `next`
  /// are of pairs that pass no gate; d_queries and d_reads are gradients of scores.
  struct Earlier {
    HeadRows<const Bf16> plain;
    Bf16Tile<d_k> scaled;
    const float *own, *next;
    Bf16Tile<device_chunk> d_queries, d_reads;
  };
  __device__ void write_earlier(Sums<1, d_k / 64>& sums, const HeadRows<Bf16>& into, const Earlier& of,
                                int row, int column) const {
    set_each(sums, row, column, [&](float2 x, int token, int channel) {
      float2 term = of.scaled.pair(Bf16Tile<d_k>::offset(token, channel)) * x;
      if (token >= into.count) return float2{0.0F, 0.0F};
      const bool is_last = token + 1 == into.count;
      float2 near = plain_scale() * of.own[token] * row_of(rows.q, Memory::q(), token, channel);
      if (!is_last) near = near + of.next[token] * row_of(rows.a, Memory::reads(), token + 1, channel);
      x = unscaled(x, near, key_factor(at(Memory::end(), channel)).at(decay(token, channel)));
      if (strong) {
        const float2 more = strong_earlier(of, token, channel);
        x = x + more;
        term = term + load_pair(of.plain.row(token) + channel) * more;
      }
      store_pair(into.row(token) + channel, x);
      return is_last ? float2{0.0F, 0.0F} : term;  // put_leaving
    });
  }

 private:
  /// Two channels of a token: of the plain row in a strong chunk, else of the scaled one.
  __device__ float2 row_of(const HeadRows<const Bf16>& plain, const Bf16Tile<d_k>& scaled, int token,
                           int channel) const {
    return strong ? load_pair(plain.row(token) + channel)
                  : scaled.pair(Bf16Tile<d_k>::offset(token, channel));
  }
  /// The factor s of queries that plain rows lack.
  __device__ float plain_scale() const { return strong ? power_of_2(log2_scale<d_k>) : 1.0F; }
  /// The gradient of a row from that of the scaled one, with `near` of pairs that pass no gate.
  __device__ float2 unscaled(float2 x, float2 near, float2 factor) const {
    return strong ? factor * x + near : factor * (x + near);
  }

  /// Calls f(sum, token, channel) for this lane's pairs of channels.
  template <class Function>
  __device__ static void for_each(const Sums<1, d_k / 64>& sums, int row, int column, Function f) {
#pragma unroll
    for (int i = 0; i < d_k / 16; ++i) {
      const int half = i / (d_k / 32), n = i % (d_k / 32);
      f({sums.c[0][n][2 * half], sums.c[0][n][2 * half + 1]}, row + 8 * half + (lane() >> 2),
        column + 8 * n + 2 * (lane() & 3));
    }
  }
  template <class Function>
  __device__ static void set_each(Sums<1, d_k / 64>& sums, int row, int column, Function f) {
    sums.for_each([&](int r, int c, float2& x) { x = f(x, row + r, column + c); });
  }

  __device__ static float2 at(const float* x, int channel) {
    return *reinterpret_cast<const float2*>(x + channel);
  }
  __device__ static void put_term(int token, int channel, float2 x) {
    Memory::read_terms().set_pair(FloatTile<d_k>::offset(token, channel), x);
  }
  /// Log decay up to a token's own gate.
  __device__ static float2 decay(int token, int channel) {
    if constexpr (kind == GateKind::none) return {0.0F, 0.0F};
    return Memory::sums_of_gates().pair(FloatTile<d_k>::offset(token, channel));
  }
  __device__ static float2 decay_before(int token, int channel) {
    return token == 0 ? float2{0.0F, 0.0F} : decay(token - 1, channel);
  }

  __device__ float2 strong_query(int token, int channel) const {
    const auto gates = Memory::gates();
    const float2 of_writes = strong_query_sum(Memory::d_query_writes(), gates, rows.b, token, channel).sum;
    return power_of_2(log2_scale<d_k>) *
           (of_writes + strong_query_sum(Memory::d_query_values(), gates, rows.k, token, channel).sum);
  }
  __device__ float2 strong_read(int token, int channel) const {
    const auto gates = Memory::gates();
    return strong_query_sum(NextRows{Memory::d_read_writes()}, gates, rows.b, token - 1, channel).sum +
           strong_query_sum(NextRows{Memory::d_read_values()}, gates, rows.k, token - 1, channel).sum;
  }
  __device__ float2 strong_earlier(const Earlier& of, int token, int channel) const {
    const auto gates = Memory::gates();
    return power_of_2(log2_scale<d_k>) * strong_key_sum(of.d_queries, gates, rows.q, token, channel).sum +
           strong_key_sum(NextRows{of.d_reads}, gates, rows.reads(), token, channel).sum;
  }
};

}  // namespace baton
