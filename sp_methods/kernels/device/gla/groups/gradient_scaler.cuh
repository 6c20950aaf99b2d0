// SPDX-License-Identifier: Apache-2.0
// The group of warps that copies and scales chunks for the groups that compute gradients.
//
//   for each chunk n, right to left, beside the products of the chunk to its right:
//     q, k <- scaled by their decays, in place; f = s e^{b - r}, of vectors in the
//     room of the gates
//     as parts of the chunk to its right are used up, the one to its left is copied there
//
// It ends at a strong chunk.
#pragma once

#include "sp_methods/kernels/device/gla/groups/gradient_room.cuh"

namespace baton {

template <int d_k, int d_v, GateKind kind>
class GradientScaler {
 public:
  using Room = GradientRoom<d_k, d_v, kind>;
  using Operands = SegmentGradients::Operands<OnDevice>;

  __device__ GradientScaler(const DeviceLayer& layer, const Operands& x, int last, int count)
      : layer_(layer),
        x_(x),
        last_(last),
        count_(count),
        keys_(layer.tokens, layer.heads, layer.first_head + DeviceLayer::place()),
        values_(layer.tokens, layer.heads, layer.first_head + DeviceLayer::place()) {}

  __device__ void run() const {
    for (int step = 0; step < 2; ++step) {
      load_values(step);
      load_keys(step);
    }
    wait_for_copies<1>();
#pragma unroll 1
    for (int step = 0; step < count_; ++step) {
      Room::scaling().wait();
      const bool strong = scale(step);
      show_to_products();
      Room::scaling().wait();
      Room::full(step).arrive();
      if (strong) break;
      if (step > 0 && step + 1 < count_) {
        Room::values_free(step - 1).wait();
        load_values(step + 1);
        Room::keys_free(step - 1).wait();
        load_keys(step + 1);
      }
      wait_for_copies<0>();
    }
    wait_for_copies<0>();
  }

 private:
  __device__ static int channel() { return 2 * (group_thread() % (d_k / 2)); }
  __device__ static bool takes_part() { return group_thread() < d_k; }
  __device__ static bool is_first_half() { return group_thread() < d_k / 2; }

  __device__ void load_values(int step) const {
    if (step >= count_) return;
    const int chunk = last_ - step;
    fetch_state(chunk);
    values_.load(Room::v(step), x_.in.v, chunk);
    values_.load(Room::d_o(step), x_.d_o, chunk);
  }
  __device__ void load_keys(int step) const {
    if (step < count_) {
      const int chunk = last_ - step;
      keys_.load(Room::q(step), x_.in.q, chunk);
      keys_.load(Room::k(step), x_.in.k, chunk);
      Room::gates(step).load(layer_, keys_, x_.in.g, chunk, group_thread());
    }
    commit_copies();
  }
  /// Has the state before a chunk brought to L2, from where the other groups read it.
  __device__ void fetch_state(int chunk) const {
    constexpr int line = 64;  // elements of 128 bytes
    if (x_.before.chunks == nullptr) return;
    const std::int64_t number = static_cast<std::int64_t>(DeviceLayer::place()) * layer_.chunks() + chunk;
    const Bf16* const state = x_.before.chunks + number * d_k * d_v;
    for (int at = group_thread() * line; at < d_k * d_v; at += group_threads * line)
      asm volatile("prefetch.global.L2 [%0];" ::"l"(state + at));
  }

  /// Scales a chunk, and returns true if it is strong.
  __device__ bool scale(int step) const {
    float2 log{0.0F, 0.0F};
    if (takes_part()) log = is_first_half() ? scale_half<true>(step) : scale_half<false>(step);
    float* const decays = is_first_half() ? Room::to(step) : Room::from(step);
    if (takes_part()) *reinterpret_cast<float2*>(decays + channel()) = powers_of_2(log);
    if constexpr (kind == GateKind::none) return false;
    const bool strong = Room::scaling().any(beyond_guard(log));
    if (group_thread() == 0) Room::strong(step) = strong ? 1 : 0;
    return strong;
  }

  /// Scales a half of the chunk, and returns the log of its decay.
  template <bool first_half>
  __device__ float2 scale_half(int step) const {
    using Half = HalfChunk<first_half, typename Room::Gates>;
    const auto q = Room::q(step), k = Room::k(step);
    const auto gates = Room::gates(step);
    const auto scale = [&](const auto& at, const auto& token, const auto& b) {
      constexpr int count = Half::together;
      float2 queries[count], keys[count];
#pragma unroll
      for (int i = 0; i < count; ++i) queries[i] = q.pair(at[i]), keys[i] = k.pair(at[i]);
#pragma unroll
      for (int i = 0; i < count; ++i) {
        const float2 f = query_power<d_k>(b[i]);
        q.set_pair(at[i], f * queries[i]);
        if constexpr (kind != GateKind::none) k.set_pair(at[i], powers_of_2({-b[i].x, -b[i].y}) * keys[i]);
        if constexpr (kind == GateKind::vector) store_pair(gates.memory + at[i], f);
        if (kind == GateKind::scalar && channel() == 0) Room::factors(step)[token[i]] = f.x;
      }
    };
    return Half(channel()).walk_outwards(gates, scale);
  }

  const DeviceLayer& layer_;
  const Operands& x_;
  int last_, count_;
  PanelLoader<d_k> keys_;
  PanelLoader<d_v> values_;
};

}  // namespace baton
