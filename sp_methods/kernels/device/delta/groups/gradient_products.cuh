// SPDX-License-Identifier: Apache-2.0
// A group of warps that multiplies for the gradients of chunks (delta/gradients.cuh): it has 64
// channels of X, Yl and Yr.
//
//   dO R^T, Z R^T -> dA, dG      one each of two groups, which pass through shared memory
//   dO S, Z S, R D               scaled by rows
//   + dA k, dG k, dA^T q + dG^T k
//
// What needs no sum is loaded and computed while products run.
#pragma once

#include "sp_methods/kernels/delta.hpp"
#include "sp_methods/kernels/device/delta/groups/chunk_walk.cuh"
#include "sp_methods/kernels/device/delta/groups/gradient_room.cuh"
#include "sp_methods/kernels/device/delta/value_gradients.cuh"

namespace baton {

/// The work of a group that multiplies, over all chunks of a block.
template <int d_k, int d_v, GateKind kind>
class DeltaGradientProducts {
 public:
  using Room = DeltaGradientRoom<d_k, d_v>;
  using Operands = DeltaGradients::Operands<OnDevice>;
  using Keys = typename Room::Keys;
  using Rows = PanelOperand<PanelsAlong::summed>;
  using Columns = PanelOperand<PanelsAlong::outer>;
  using StateColumns = PanelOperand<PanelsAlong::outer, d_v>;

  __device__ DeltaGradientProducts(const DeviceLayer& layer, const Operands& x, const ChunkWalk& walk)
      : layer_(layer), x_(x), walk_(walk) {}

  __device__ void run() const {
    const int count = walk_.count();
#pragma unroll 1
    for (int step = 0; step < count; ++step) {
      Room::tokens_there().wait();
      PairGradients pairs[pairs_of_group];
#pragma unroll
      for (int i = 0; i < pairs_of_group; ++i) set_pairs(step, pairs[i], is_of_queries(i));
      Room::states_there().wait();
      GroupSums<64> queries, later, earlier;
      const ChannelSums sums{queries, later, earlier};
      OwnChannels keys, query_rows;
      set_sums_of_states(step, sums, keys);
      Room::states_read().arrive();
      Room::multiplying().wait();  // dO has been read
      put_pairs(step, pairs);
      const float2 leaving = scale(step, sums, keys);
      Room::multiplying().wait();
      add_pairs(step, sums, query_rows);
      finish(step, sums, query_rows, keys, leaving);
      Room::own_group().wait();
      Room::chunk_done().arrive();
      write(step, sums);
    }
  }

 private:
  /// Gradients of pairs of tokens, as left operands: dA or dG.
  using PairGradients = std::uint32_t[device_chunk / 16][4];
  static constexpr int pairs_of_group = 2 / Room::groups;
  static constexpr int multiplying_threads = Room::groups * group_threads;

  /// A group's 64 channels of X, Yl and Yr.
  struct ChannelSums {
    GroupSums<64>&queries, &later, &earlier;  // a struct of the sums themselves would lie in memory

    __device__ void arrived() const { queries.arrived(), later.arrived(), earlier.arrived(); }
  };

  /// The thread's pairs of the group's channels in a tile of rows of tokens, as its sums lie.
  struct OwnChannels {
    std::uint32_t x[16];

    __device__ void load(const Keys& tile) {
      const GroupPlace<Keys> place(0, 64 * group());
#pragma unroll
      for (int i = 0; i < 16; ++i)
        x[i] = *reinterpret_cast<const std::uint32_t*>(tile.memory + place.at(i / 2, i % 2));
    }
    __device__ float2 pair(int n, int half) const { return unpacked_pair(x[2 * n + half]); }
  };

  /// True if the group's i-th matrix of pairs is dA, false if it is dG.
  __device__ static bool is_of_queries(int i) { return Room::groups == 2 ? group() == 0 : i == 0; }
  template <class Tile>
  __device__ static const char* own_channels(const Tile& tile) {
    return tile.memory + group() * Tile::panel_bytes;
  }

  __device__ static void set_pairs(int step, PairGradients& pairs, bool is_of_queries) {
    GroupSums<device_chunk> sums, factors;
    const Rows left((is_of_queries ? Room::d_o(step) : Room::z(step)).memory);
    begin_products();
    start_product<d_v / 16>(sums, left, Rows(Room::missing(step).memory), false);
    commit_products();
    set_factors(step, factors, is_of_queries);
    wait_for_products<0>();
    sums.arrived();
#pragma unroll
    for (int i = 0; i < device_chunk / 2; ++i) sums.c[i] *= factors.c[i];
#pragma unroll
    for (int i = 0; i < device_chunk / 16; ++i) pack_left(pairs[i], sums, i);
  }

  /// Sets the factors of dO R^T in dA, or of Z R^T in dG: those above the diagonal are zero.
  __device__ static void set_factors(int step, GroupSums<device_chunk>& factors, bool is_of_queries) {
    const float* const beta = Room::beta(step);
    const float* const b = Room::sums(step);
    const float s = power_of_2(log2_scale<d_k>);
    const int first = factors.row();
    const float2 strength{is_of_queries ? s : -beta[first], is_of_queries ? s : -beta[first + 8]};
    const float2 to = kind == GateKind::none ? float2{0.0F, 0.0F} : float2{b[first], b[first + 8]};
    factors.for_each([&](int n, int half, float2& x) {
      const int right = factors.column() + 8 * (n - half) - first;  // of the diagonal
      x = (half == 0 ? strength.x : strength.y) *
          *reinterpret_cast<const float2*>(beta + factors.column() + 8 * n);
      if constexpr (kind != GateKind::none) {
        const float2 from = *reinterpret_cast<const float2*>(b + factors.column() + 8 * n);
        const float sum = half == 0 ? to.x : to.y;
        x = x * float2{decay_of(sum - from.x), decay_of(sum - from.y)};
      }
      if (right >= 0) x.x = 0.0F;
      if (right >= -1) x.y = 0.0F;
    });
  }

  __device__ void set_sums_of_states(int step, const ChannelSums& sums, OwnChannels& keys) const {
    const StateColumns state(own_channels(Room::state())), gradient(own_channels(Room::gradient()));
    begin_products();
    start_product<d_v / 16>(sums.queries, Rows(Room::d_o(step).memory), state, false);
    start_product<d_v / 16>(sums.later, Rows(Room::z(step).memory), state, false);
    start_product<d_v / 16>(sums.earlier, Rows(Room::missing(step).memory), gradient, false);
    commit_products();
    keys.load(Room::k(step));
    write_values(step);
    put_passing();
    wait_for_products<0>();
    sums.arrived();
  }
  /// Writes dv and dbeta, and sets `own`.
  __device__ void write_values(int step) const {
    const HeadChunk at = walk_.at(step);
    const ValueGradients into{layer_.rows(x_.out.of.dv, d_v, at.chunk, at.head),
                              layer_.rows(x_.out.dbeta, 1, at.chunk, at.head), Room::own()};
    const ValueTiles<typename Room::Values> from{Room::z(step), Room::missing(step), Room::d_o(step)};
    into.write<d_v, multiplying_threads>(static_cast<int>(threadIdx.x), from, Room::beta(step),
                                         power_of_2(log2_scale<d_k>));
  }
  /// Sets each warp's part of <S, D>, whose tiles have one layout.
  __device__ static void put_passing() {
    if constexpr (kind != GateKind::none) {
      const auto* const state = reinterpret_cast<const uint4*>(Room::state().memory);
      const auto* const gradient = reinterpret_cast<const uint4*>(Room::gradient().memory);
      float sum = 0.0F;
#pragma unroll 4
      for (int unit = static_cast<int>(threadIdx.x); unit < Room::State::bytes / 16;
           unit += multiplying_threads)
        sum += product_of_units(state[unit], gradient[unit]);
      sum = warp_sum(sum);
      if (lane() == 0) Room::passing()[warp()] = sum;
    }
  }

  /// Stores this group's part of dA and dG for all groups.
  __device__ static void put_pairs(int step, const PairGradients (&pairs)[pairs_of_group]) {
    const GroupPlace<typename Room::Pairs> place;
#pragma unroll
    for (int i = 0; i < pairs_of_group; ++i) {
      char* const into = (is_of_queries(i) ? Room::d_queries(step) : Room::d_keys(step)).memory;
#pragma unroll
      for (int n = 0; n < device_chunk / 8; ++n) {
#pragma unroll
        for (int half = 0; half < 2; ++half)
          *reinterpret_cast<std::uint32_t*>(into + place.at(n, half)) = pairs[i][n / 2][n % 2 * 2 + half];
      }
    }
    show_to_products();
  }

  /// Scales what S and D give. Returns what the thread's keys of both rows give D, without the last
  /// token's: that passes no gate, and is larger than all of dg where gates are strong.
  __device__ float2 scale(int step, const ChannelSums& sums, const OwnChannels& keys) const {
    const float* const beta = Room::beta(step);
    const float* const b = Room::sums(step);
    const float s = power_of_2(log2_scale<d_k>);
    float query[2], later[2], earlier[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = sums.queries.row() + 8 * half;
      const float strength = beta[row];
      const float from_start = kind == GateKind::none ? 1.0F : decay_of(b[row]);
      const float to_end = kind == GateKind::none ? 1.0F : decay_of(b[device_chunk - 1] - b[row]);
      query[half] = s * from_start, later[half] = -strength * from_start, earlier[half] = strength * to_end;
    }
    sums.queries.for_each([&](int, int half, float2& x) { x = query[half] * x; });
    sums.later.for_each([&](int, int half, float2& x) { x = later[half] * x; });
    sums.earlier.for_each([&](int, int half, float2& x) { x = earlier[half] * x; });
    float2 leaving{0.0F, 0.0F};
    if constexpr (kind != GateKind::none) {
      sums.earlier.for_each([&](int n, int half, float2& x) {
        add_product(half == 0 ? leaving.x : leaving.y, keys.pair(n, half), x);
      });
      const int last = last_token(step), row = sums.earlier.row();
      if (row == last) leaving.x = 0.0F;
      if (row + 8 == last) leaving.y = 0.0F;
    }
    return leaving;
  }
  __device__ static void add_product(float& sum, float2 x, float2 y) {
    sum = fmaf(x.x, y.x, sum);
    sum = fmaf(x.y, y.y, sum);
  }
  __device__ int last_token(int step) const {
    const HeadChunk at = walk_.at(step);
    return layer_.rows(x_.in.of.q, d_k, at.chunk, at.head).count - 1;
  }

  /// Adds the pairs within the chunk.
  __device__ static void add_pairs(int step, const ChannelSums& sums, OwnChannels& query_rows) {
    const char* const d_queries = Room::d_queries(step).memory;
    const char* const d_keys = Room::d_keys(step).memory;
    const Columns q(own_channels(Room::q(step))), k(own_channels(Room::k(step)));
    constexpr int steps = device_chunk / 16;
    begin_products();
    start_product<steps>(sums.queries, Rows(d_queries), k, true);
    start_product<steps>(sums.later, Rows(d_keys), k, true);
    start_product<steps>(sums.earlier, Columns(d_queries), q, true);
    start_product<steps>(sums.earlier, Columns(d_keys), k, true);
    commit_products();
    query_rows.load(Room::q(step));
    wait_for_products<0>();
    sums.arrived();
  }

  __device__ static float2 pair_of(const GroupSums<64>& sums, int n, int half) {
    return {sums.c[4 * n + 2 * half], sums.c[4 * n + 2 * half + 1]};
  }
  __device__ static void set_pair_of(GroupSums<64>& sums, int n, int half, float2 x) {
    sums.c[4 * n + 2 * half] = x.x, sums.c[4 * n + 2 * half + 1] = x.y;
  }

  /// Turns the sums into dq and dk (in `later`), and sets the terms of dg.
  __device__ void finish(int step, const ChannelSums& sums, const OwnChannels& query_rows,
                         const OwnChannels& keys, float2 leaving) const {
    const int row = sums.queries.row(), last = last_token(step);
    const float2 own{Room::own()[row], Room::own()[row + 8]};
    float2 terms = leaving, given{0.0F, 0.0F};
    sums.queries.for_each([&](int n, int half, float2& x) {
      const float2 q = query_rows.pair(n, half), k = keys.pair(n, half);
      const float2 later = pair_of(sums.later, n, half), earlier = pair_of(sums.earlier, n, half);
      if constexpr (kind != GateKind::none) {
        float& term = half == 0 ? terms.x : terms.y;
        add_product(term, q, x);
        add_product(term, k, later);
        add_product(half == 0 ? given.x : given.y, k, earlier);
      }
      const float with_itself = half == 0 ? own.x : own.y;
      x = x + with_itself * k;
      set_pair_of(sums.later, n, half, later + earlier + with_itself * q);
    });
    if constexpr (kind == GateKind::none) return;
    if (row != last) terms.x -= given.x;  // the last key is the earlier one of no pair here
    if (row + 8 != last) terms.y -= given.y;
    put_terms(terms, leaving);
  }
  __device__ static void put_terms(float2 terms, float2 leaving) {
    const int row = GroupSums<64>::row();
    const auto of_row = [](float x) {
      x += __shfl_xor_sync(0xffffffffU, x, 1);
      return x + __shfl_xor_sync(0xffffffffU, x, 2);
    };
    const float2 all{of_row(terms.x), of_row(terms.y)}, given{of_row(leaving.x), of_row(leaving.y)};
    float *const into = Room::terms(group()), *const into_given = Room::leaving(group());
    if ((group_thread() & 3) != 0) return;
    into[row] = all.x, into[row + 8] = all.y;
    into_given[row] = given.x, into_given[row + 8] = given.y;
  }

  __device__ void write(int step, const ChannelSums& sums) const {
    const HeadChunk at = walk_.at(step);
    const auto own = [&](Bf16* x) {
      auto rows = layer_.rows(x, d_k, at.chunk, at.head);
      rows.first += 64 * group();
      return rows;
    };
    store_rows(own(x_.out.of.dq), sums.queries);
    store_rows(own(x_.out.of.dk), sums.later);
  }

  const DeviceLayer& layer_;
  const Operands& x_;
  const ChunkWalk& walk_;
};

}  // namespace baton
