// SPDX-License-Identifier: Apache-2.0
// The chunks of one head on their way to the groups of warps that multiply them under a delta rule:
// a group of its own copies them ahead into slots (chunk_slots.cuh) and makes what products need.
//
//   a gate a head or none:   A = tril(s q k^T e^{b_i - b_j}), and the decays of every token
//
// Cost: with queries and a gate a head 64 tokens d_k flop a head for A, on the matrix units.
#pragma once

#include "sp_methods/kernels/device/delta/groups/chunk_slots.cuh"
#include "sp_methods/kernels/device/delta/scaling.cuh"
#include "sp_methods/kernels/device/tile/wgmma.cuh"

namespace baton {

/// The work of the group that feeds the others.
template <class Slots>
class ChunkFeed {
 public:
  __device__ ChunkFeed(const DeviceLayer& layer, const ChunkTensors& x, const ChunkOrder& order)
      : layer_(layer),
        x_(x),
        order_(order),
        keys_(layer.tokens, layer.heads, layer.first_head + DeviceLayer::place()),
        values_(layer.tokens, layer.heads, layer.first_head + DeviceLayer::place()) {}

  __device__ void run() const {
    constexpr int ahead = Slots::slots - 1;
    for (int step = 0; step < ahead; ++step) load(step), put(step, numbers(step));
    TokenNumbers next{};
#pragma unroll 1
    for (int step = 0; step < order_.count; ++step) {
      if (ahead == 1 && step > 0) put(step, next);
      wait_for_copies<Slots::slots - 2>();
      show_to_products();
      Slots::feeding().wait();
      if constexpr (makes_scores) {
        put_scores(step);
        show_to_products();
        Slots::feeding().wait();
      }
      Slots::full(step).arrive();
      if (ahead > 1 && step > 0 && step - 1 + ahead < order_.count) put(step - 1 + ahead, next);
      if (step > 0 && step + ahead < order_.count) Slots::empty(step + ahead).wait();
      load(step + ahead);
      next = numbers(step + ahead);
    }
  }

 private:
  static constexpr int d_k = Slots::key_width;
  static constexpr bool makes_scores = Slots::has_queries && !Slots::by_channel;
  using Pairs = typename Slots::Pairs;
  using Record = typename Slots::Record;
  struct Bf16Pair {
    Bf16 x, y;

    __device__ float2 wide() const { return {__bfloat162float(x), __bfloat162float(y)}; }
  };
  /// The strengths and the gates of a lane's two tokens.
  struct TokenNumbers {
    Bf16Pair beta, gate;
  };
  // Of a record: the first part that the slots have, and how much they have of the keys of values.
  static constexpr int first_at = Slots::has_queries ? Record::q_at : Record::in_at,
                       key_parts = Slots::v_at - Slots::keys_at;

  /// The record of the chunk of a step.
  __device__ const char* record(int step) const {
    return x_.chunks + number(order_.chunk(step)) * Record::bytes;
  }
  __device__ std::int64_t number(int chunk) const {
    return static_cast<std::int64_t>(DeviceLayer::place()) * layer_.chunks() + chunk;
  }

  __device__ void load(int step) const {
    if (step < order_.count) {
      const int chunk = order_.chunk(step);
      if constexpr (Slots::by_channel) {
        load_record(step, record(step));
        bring_near_chunk(step + 1);
      } else {
        keys_.load(Slots::keys_in(step), x_.k, chunk);
        if constexpr (Slots::has_queries) keys_.load(Slots::q(step), x_.q, chunk);
        copy<Pairs::bytes>(Slots::inverse(step).memory, x_.chunks + number(chunk) * Pairs::bytes);
      }
      if (x_.values != nullptr) values_.load(Slots::values(step), x_.values, chunk);
    }
    commit_copies();
  }
  /// Copies the parts of a record that the slots have; those of values come with values alone.
  __device__ void load_record(int step, const char* record) const {
    copy<Record::keys_at - first_at>(Slots::slot(step), record + first_at);
    copy<Record::float_bytes>(reinterpret_cast<char*>(Slots::to(step)), record + Record::floats_at);
    if (has_keys()) copy<key_parts>(Slots::value_keys(step).memory, record + Record::keys_at);
  }
  /// Brings what the slot of a step will take to the L2, since few slots have room.
  __device__ void bring_near_chunk(int step) const {
    if (step >= order_.count) return;
    if (x_.values != nullptr)
      bring_near<Slots::value_width>(layer_.rows(x_.values, Slots::value_width, order_.chunk(step)),
                                     group_thread());
    if (group_thread() > 0) return;
    bring_near(record(step) + first_at, Record::keys_at - first_at);
    bring_near(record(step) + Record::floats_at, Record::float_bytes);
    if (has_keys()) bring_near(record(step) + Record::keys_at, key_parts);
  }
  __device__ bool has_keys() const { return Slots::has_keys && x_.values != nullptr; }
  template <int bytes>
  __device__ static void copy(char* to, const char* from) {
    const std::uint32_t into = shared_address(to);
#pragma unroll 4
    for (int at = 16 * group_thread(); at < bytes; at += 16 * group_threads)
      copy_16_async(into + at, from + at, true);
  }
  /// Reads the numbers of the chunk's tokens, two a lane of the first warp. They are stored a step
  /// later, when they have come.
  __device__ TokenNumbers numbers(int step) const {
    if (!has_numbers() || step >= order_.count) return {};
    TokenNumbers found{two_of(layer_.rows(x_.beta, 1, order_.chunk(step))), {}};
    if constexpr (Slots::by_head) found.gate = two_of(layer_.rows(x_.g, 1, order_.chunk(step)));
    return found;
  }
  __device__ static bool has_numbers() { return !Slots::is_low_rank && group_thread() < 32; }
  __device__ static Bf16Pair two_of(const HeadRows<const Bf16>& rows) {
    const int token = 2 * lane();
    const Bf16 none = __float2bfloat16(0.0F);
    return {token < rows.count ? *rows.row(token) : none,
            token + 1 < rows.count ? *rows.row(token + 1) : none};
  }
  /// Stores the numbers, and the decays of a gate a head.
  __device__ static void put(int step, const TokenNumbers& x) {
    if (!has_numbers()) return;
    const int at = 2 * lane();
    *reinterpret_cast<float2*>(Slots::beta(step) + at) = x.beta.wide();
    if constexpr (Slots::by_head) {
      const float2 gate = x.gate.wide();
      const float2 b =
          sum_gates_of_head(Slots::sums(step), {fmaxf(gate.x, least_gate), fmaxf(gate.y, least_gate)});
      const float all = __shfl_sync(0xffffffffU, b.y, 31);
      *reinterpret_cast<float2*>(Slots::head(step) + at) = decay_of(b);
      *reinterpret_cast<float2*>(Slots::tail(step) + at) = decay_of(float2{all - b.x, all - b.y});
    }
  }

  __device__ static void put_scores(int step) {
    using Rows = PanelOperand<PanelsAlong::summed>;
    GroupSums<device_chunk> a;
    begin_products();
    start_product<d_k / 16>(a, Rows(Slots::q(step).memory), Rows(Slots::keys_in(step).memory), false);
    commit_products();
    wait_for_products<0>();
    a.arrived();
    const GroupPlace<Pairs> place;
    const float scale = power_of_2(log2_scale<d_k>);
    a.for_each([&](int n, int half, float2& x) {
      const int row = a.row() + 8 * half, column = a.column() + 8 * n;
      x = scale * x;
      if constexpr (Slots::by_head) {
        const float* const b = Slots::sums(step);
        x = x * decay_of(float2{b[row] - b[column], b[row] - b[column + 1]});
      }
      if (column > row) x.x = 0.0F;
      if (column + 1 > row) x.y = 0.0F;
      Slots::scores(step).set_pair(place.at(n, half), x);
    });
  }

  const DeviceLayer& layer_;
  const ChunkTensors& x_;
  ChunkOrder order_;
  PanelLoader<d_k> keys_;
  PanelLoader<Slots::value_width> values_;
};

/// Runs the groups of a block: the last one feeds the slots, the others call multiply(). Two groups
/// that multiply have `multiplying` registers a thread then, and the third one `feeding`.
template <class Slots, int feeding, int multiplying, class Function>
__device__ inline void feed_and_multiply(const DeviceLayer& layer, const ChunkTensors& x,
                                         const ChunkOrder& order, Function multiply) {
  static_assert(2 * multiplying + feeding <= 3 * 168,
                "a block of three groups has no more: it would wait for ever");
  constexpr bool trades = Slots::groups == 2;
  if (group() == Slots::groups) {
    if constexpr (trades) take_registers<false, feeding>();
    ChunkFeed<Slots>(layer, x, order).run();
  } else {
    if constexpr (trades) take_registers<true, multiplying>();
    multiply();
  }
}

}  // namespace baton
