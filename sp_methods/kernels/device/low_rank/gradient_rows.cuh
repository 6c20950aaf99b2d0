// SPDX-License-Identifier: Apache-2.0
// The last part of a chunk's gradients under a low-rank rule: from the sums Xq, Xr, Yk, Yb of
// gradients.cu to dq, da, dk, db and the terms of dg.
//
//   dq = s e^{c-r} Xq    da = e^{c-g-r} Xr    dk = e^{r-c} Yk    db = e^{r-c} Yb
//   term of dg = q' Xq - k" Yk - b" Yb + (r' Xr) of the next token
//
// A token's read counts for the gates before it: hence the shift by one, by shuffles within a warp
// and through shared memory between warps. Pairs of a strong chunk are summed one by one
// (gla/scores.cuh), and those that pass no gate stand in no term there.
#pragma once

#include "sp_methods/kernels/device/delta/gradient_rows.cuh"
#include "sp_methods/kernels/device/low_rank/gradient_memory.cuh"

namespace baton {

/// A warp's numbers of 16 tokens and a quarter of the channels.
template <int d_k>
using RowSums = Sums<1, d_k / 64>;

/// A warp's gradients.
template <int d_k>
struct LowRankSums {
  RowSums<d_k> queries, reads, keys, writes;
};

/// The gradients of reads' scores, where row i is that of token i + 1.
struct NextRows {
  PanelTile<device_chunk> scores;

  __device__ float at(int row, int column) const { return scores.at(row + 1, column); }
};

/// Turns sums of products into the gradients of rows.
template <int d_k, int d_v, GateKind kind>
class FinishedLowRankRows {
 public:
  using Memory = LowRankGradientMemory<d_k, d_v, kind>;
  using Pairs = typename Memory::Pairs;

  __device__ FinishedLowRankRows(const LowRankRows& rows, bool strong, int row, int column)
      : rows_(rows), strong_(strong), row_(row), column_(column) {}

  /// Writes da, and turns the sums into the reads' terms of dg.
  __device__ void write_reads(RowSums<d_k>& sums, const HeadRows<Bf16>& da) const {
    RowSums<d_k> terms;
    for_each(sums, terms, [&](float2& x, float2& term, Place at) {
      term = Memory::reads().pair(at.tile) * x;
      const float2 before = decay(at) - gate(at);
      x = in_factor(of_channel(Memory::start(), at)).at(before) * x;
      if (!strong_ || at.token == 0 || at.token >= da.count) return;
      const float2 more = strong_read(at);
      term = term + plain(rows_.a, at, 0) * more;
      x = x + more + Memory::d_read_values().at(at.token, at.token - 1) * plain(rows_.k, at, -1) +
          Memory::d_read_writes().at(at.token, at.token - 1) * plain(rows_.b, at, -1);
    });
    store(da, sums);
    sums = terms;
  }

  /// Writes dq, and turns the sums into the queries' terms of dg.
  __device__ void write_queries(RowSums<d_k>& sums, const HeadRows<Bf16>& dq) const {
    RowSums<d_k> terms;
    for_each(sums, terms, [&](float2& x, float2& term, Place at) {
      term = Memory::q().pair(at.tile) * x;
      x = query_factor<d_k>(of_channel(Memory::start(), at)).at(decay(at)) * x;
      if (!strong_ || at.token >= dq.count) return;
      const float2 more = strong_query(at);
      term = term + plain(rows_.q, at, 0) * more;
      x = x + more + own(Memory::d_query_values(), at) * plain(rows_.k, at, 0) +
          own(Memory::d_query_writes(), at) * plain(rows_.b, at, 0);
    });
    store(dq, sums);
    sums = terms;
  }

  /// Rows that are the earlier ones of pairs, and the gradients of their scores.
  struct Earlier {
    HeadRows<const Bf16> plain;
    typename Memory::Keys scaled;
    Pairs d_queries, d_reads;
  };
  /// Writes dk or db, and takes their terms of dg from `terms`.
  __device__ void write_earlier(RowSums<d_k>& sums, RowSums<d_k>& terms, const HeadRows<Bf16>& into,
                                const Earlier& of) const {
    for_each(sums, terms, [&](float2& x, float2& term, Place at) {
      float2 own_term = of.scaled.pair(at.tile) * x;
      x = key_factor(of_channel(Memory::end(), at)).at(decay(at)) * x;
      if (strong_ && at.token < into.count) {
        const bool is_last = at.token + 1 == into.count;
        const float2 more = strong_earlier(of, at);
        own_term = is_last ? float2{0.0F, 0.0F} : own_term + plain(of.plain, at, 0) * more;  // put_leaving
        x = x + more + own(of.d_queries, at) * plain(rows_.q, at, 0);
        if (!is_last) x = x + of.d_reads.at(at.token + 1, at.token) * plain(rows_.a, at, 1);
      }
      term = term - own_term;
    });
    store(into, sums);
  }

  /// Keeps the reads' terms of the warp's first token for the warp of the tokens before it.
  __device__ void put_first_reads(const RowSums<d_k>& reads) const {
    if (lane() >= 4) return;
#pragma unroll
    for (int n = 0; n < d_k / 32; ++n)
      *reinterpret_cast<float2*>(Memory::first_reads(row_ / 16) + column_ + 8 * n + 2 * lane()) = {
          reads.c[0][n][0], reads.c[0][n][1]};
  }
  /// Adds the reads' terms of the next tokens, behind a barrier.
  __device__ void add_next_reads(RowSums<d_k>& terms, const RowSums<d_k>& reads) const {
#pragma unroll
    for (int n = 0; n < d_k / 32; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float2 next =
            shuffled(float2{reads.c[0][n][2 * half], reads.c[0][n][2 * half + 1]}, (lane() + 4) & 31);
        const float2 later = shuffled(float2{reads.c[0][n][2], reads.c[0][n][3]}, lane() & 3);
        if (lane() >= 28) next = half == 0 ? later : first_of_next_warp(n);
        terms.c[0][n][2 * half] += next.x;
        terms.c[0][n][2 * half + 1] += next.y;
      }
    }
  }

 private:
  /// Where a lane's pair of channels is.
  struct Place {
    int token, channel, tile, gates, floats;
  };

  /// Calls f(sum, other, place) for this lane's pairs of channels.
  template <class Function>
  __device__ void for_each(RowSums<d_k>& sums, RowSums<d_k>& others, Function f) const {
    const SumsPlace<typename Memory::Keys> tiles(row_, column_);
    const SumsPlace<typename Memory::GateRows> gates(row_, column_);
    const SumsPlace<FloatTile<d_k>> floats(row_, column_);
#pragma unroll
    for (int i = 0; i < d_k / 16; ++i) {
      const int half = i / (d_k / 32), n = i % (d_k / 32);
      float2 x{sums.c[0][n][2 * half], sums.c[0][n][2 * half + 1]};
      float2 y{others.c[0][n][2 * half], others.c[0][n][2 * half + 1]};
      f(x, y,
        Place{row_ + 8 * half + (lane() >> 2), column_ + 8 * n + 2 * (lane() & 3), tiles.at(0, half, n),
              gates.at(0, half, n), floats.at(0, half, n)});
      sums.c[0][n][2 * half] = x.x, sums.c[0][n][2 * half + 1] = x.y;
      others.c[0][n][2 * half] = y.x, others.c[0][n][2 * half + 1] = y.y;
    }
  }

  __device__ void store(const HeadRows<Bf16>& rows, const RowSums<d_k>& sums) const {
    store_sums(HeadRows<Bf16>{rows.row(row_) + column_, rows.stride, rows.count - row_}, sums);
  }
  __device__ static float2 of_channel(const float* x, Place at) {
    return *reinterpret_cast<const float2*>(x + at.channel);
  }
  /// Log decay up to a token's own gate.
  __device__ static float2 decay(Place at) {
    if constexpr (kind == GateKind::none) {
      return {0.0F, 0.0F};
    } else {
      return Memory::sums_of_gates().pair(at.floats);
    }
  }
  __device__ static float2 gate(Place at) { return Memory::gates().pair(at.gates, at.token); }
  __device__ float2 first_of_next_warp(int n) const {
    if (row_ == device_chunk - 16) return {0.0F, 0.0F};
    return *reinterpret_cast<const float2*>(Memory::first_reads(row_ / 16 + 1) + column_ + 8 * n +
                                            2 * (lane() & 3));
  }

  // Only strong chunks call this.
  __device__ static float2 plain(const HeadRows<const Bf16>& rows, Place at, int ahead) {
    return load_pair(rows.row(at.token + ahead) + at.channel);
  }
  /// The gradient of a query's score with its own token, with the factor s that plain rows lack.
  __device__ static float own(const Pairs& d_scores, Place at) {
    return power_of_2(log2_scale<d_k>) * d_scores.at(at.token, at.token);
  }
  // Sums over a chunk are calls: inlined for each pair of channels, they would take the registers
  // of gentle chunks.
  template <class Scores>
  __device__ static __noinline__ float2 over_earlier(Scores d_scores, HeadRows<const Bf16> rows, int token,
                                                     int channel) {
    return strong_query_sum(d_scores, Memory::gates(), rows, token, channel).sum;
  }
  template <class Scores>
  __device__ static __noinline__ float2 over_later(Scores d_scores, HeadRows<const Bf16> rows, int token,
                                                   int channel) {
    return strong_key_sum(d_scores, Memory::gates(), rows, token, channel).sum;
  }
  __device__ float2 strong_query(Place at) const {
    return power_of_2(log2_scale<d_k>) *
           (over_earlier(Memory::d_query_writes(), rows_.b, at.token, at.channel) +
            over_earlier(Memory::d_query_values(), rows_.k, at.token, at.channel));
  }
  __device__ float2 strong_read(Place at) const {
    return over_earlier(NextRows{Memory::d_read_writes()}, rows_.b, at.token - 1, at.channel) +
           over_earlier(NextRows{Memory::d_read_values()}, rows_.k, at.token - 1, at.channel);
  }
  __device__ float2 strong_earlier(const Earlier& of, Place at) const {
    return power_of_2(log2_scale<d_k>) * over_later(of.d_queries, rows_.q, at.token, at.channel) +
           over_later(NextRows{of.d_reads}, rows_.reads(), at.token, at.channel);
  }

  const LowRankRows& rows_;
  bool strong_;
  int row_, column_;
};

}  // namespace baton
