// SPDX-License-Identifier: Apache-2.0
// The group of warps that copies, scales and walks for the two groups that compute gradients.
//
//   for each chunk n, right to left, beside the products of n:
//     q, k of n - 1 <- scaled; f = s e^{b - r} of n - 1 in the room of its gates
//     v, d_o, S of n - 1 are copied when those of n are used up
//     T = q X - k Y of n is walked: dg_i = R + sum over u >= i of T_u
//     q, k, g of n - 2 are copied
//
// A strong chunk keeps its gates. Its `from` is -1, and its `to` is e^all.
#pragma once

#include "sp_methods/kernels/device/gla/groups/gradient_room.cuh"

namespace baton {

template <int d_k, int d_v, GateKind kind>
class GradientScaler {
 public:
  using Memory = GradientRoom<d_k, d_v, kind>;

  __device__ GradientScaler(const DeviceLayer& layer, const SegmentGradients::Operands<OnDevice>& x, int last,
                            int count)
      : layer_(layer),
        x_(x),
        last_(last),
        count_(count),
        keys_(layer.tokens, layer.heads, layer.first_head + DeviceLayer::place()),
        values_(layer.tokens, layer.heads, layer.first_head + DeviceLayer::place()) {}

  __device__ void run() {
    load_scaled(0);
    load_start();
    load_values(0);
    load_scaled(1);
    wait_for_copies<2>();
    Memory::scaling().wait();
    scale(0);
#pragma unroll 1
    for (int step = 0; step < count_; ++step) {
      wait_for_copies<1>();
      if (x_.before.segments != nullptr) {
        Memory::scaling().wait();
        add_start();
      }
      show_to_products();
      Memory::scaling().wait();
      Memory::full().arrive();
      if (step > 0) walk(step - 1);
      Memory::scaling().wait();
      Memory::room_free().arrive();
      wait_for_copies<0>();
      if (step + 1 < count_) {
        Memory::scaling().wait();
        scale(step + 1);
        Memory::values_free().wait();
      }
      load_values(step + 1);
      Memory::terms_there().wait();
      load_scaled(step + 2);
    }
    walk(count_ - 1);
  }

 private:
  template <bool first_half>
  using Half = HalfChunk<first_half, typename Memory::Gates>;
  __device__ static int channel() { return 2 * (group_thread() % (d_k / 2)); }
  __device__ static bool takes_part() { return group_thread() < d_k; }
  __device__ static bool is_first_half() { return group_thread() < d_k / 2; }
  __device__ static float2& at_channel(float* x) { return *reinterpret_cast<float2*>(x + channel()); }
  __device__ int chunk_of(int step) const { return last_ - step; }
  __device__ std::int64_t chunk_number(int step) const {
    return static_cast<std::int64_t>(DeviceLayer::place()) * layer_.chunks() + chunk_of(step);
  }

  __device__ void load_scaled(int step) const {
    if (step < count_) {
      keys_.load(Memory::q(step), x_.in.q, chunk_of(step));
      keys_.load(Memory::k(step), x_.in.k, chunk_of(step));
      Memory::gates(step).load(layer_, keys_, x_.in.g, chunk_of(step), group_thread());
    }
    commit_copies();
  }
  /// Starts the copies of v, d_o and the states of a chunk. States are zero without chunks.
  __device__ void load_values(int step) const {
    if (step < count_) {
      values_.load(Memory::v(), x_.in.v, chunk_of(step));
      values_.load(Memory::d_o(), x_.d_o, chunk_of(step));
      const Bf16* from =
          x_.before.chunks == nullptr ? nullptr : x_.before.chunks + chunk_number(step) * d_k * d_v;
      load_dense<d_v, d_k>(Memory::state(), from);
      if (kind != GateKind::none && x_.before.segments != nullptr && group_thread() < d_k / 4)
        copy_16_async(shared_address(Memory::decays() + 4 * group_thread()),
                      x_.before.decays + chunk_number(step) * d_k + 4 * group_thread(), true);
    }
    commit_copies();
  }
  __device__ void load_start() const {
    const int segment = DeviceLayer::place() * layer_.segments + DeviceLayer::segment();
    if (x_.before.segments != nullptr)
      load_dense<d_v, d_k>(Memory::start(),
                           x_.before.segments + static_cast<std::int64_t>(segment) * d_k * d_v);
  }
  /// Adds the decayed state before the segment; each thread adds where it copied.
  __device__ void add_start() const {
    constexpr int units = d_v / 8, apart = group_threads / units;
    const int row = group_thread() / units, at = Memory::State::offset(row, group_thread() % units * 8);
#pragma unroll 4
    for (int down = 0; down < d_k; down += apart) {
      auto* const place =
          reinterpret_cast<uint4*>(Memory::state().memory + at + down * Memory::State::row_bytes);
      const uint4 own = *place;
      const uint4 more =
          *reinterpret_cast<const uint4*>(Memory::start().memory + at + down * Memory::State::row_bytes);
      const float decay = kind == GateKind::none ? 1.0F : Memory::decays()[row + down];
      *place = {sum(own.x, decay, more.x), sum(own.y, decay, more.y), sum(own.z, decay, more.z),
                sum(own.w, decay, more.w)};
    }
  }
  /// own + decay * more, for two elements of bf16.
  __device__ static std::uint32_t sum(std::uint32_t own, float decay, std::uint32_t more) {
    const float2 x = unpacked_pair(own) + decay * unpacked_pair(more);
    return packed_pair(x.x, x.y);
  }

  /// Memory of the log decay of this thread's half, later of the decay.
  __device__ static float2& decay(int step) {
    return at_channel(is_first_half() ? Memory::to(step) : Memory::from(step));
  }
  __device__ void scale(int step) const {
    float2 log{0.0F, 0.0F};
    if (takes_part()) log = is_first_half() ? scale_gently<true>(step) : scale_gently<false>(step);
    if constexpr (kind == GateKind::none) return;
    if (takes_part()) decay(step) = log;
    if (!Memory::scaling().any(beyond_guard(log))) {
      if (takes_part()) decay(step) = powers_of_2(log);
      return;
    }
    const float2 middle = at_channel(Memory::to(step)), rest = at_channel(Memory::from(step));
    Memory::scaling().wait();
    if (!takes_part()) return;
    is_first_half() ? scale_strongly<true>(step, middle, rest) : scale_strongly<false>(step, middle, rest);
    decay(step) = is_first_half() ? powers_of_2(middle + rest) : float2{-1.0F, -1.0F};
  }

  /// Scales a half of the chunk gently, and returns the log of its decay.
  template <bool first_half>
  __device__ float2 scale_gently(int step) const {
    const auto q = Memory::q(step), k = Memory::k(step);
    const auto gates = Memory::gates(step);
    const auto scale = [&](const auto& at, const auto&, const auto& b) {
      constexpr int count = Half<first_half>::together;
      float2 queries[count], keys[count];
#pragma unroll
      for (int i = 0; i < count; ++i) queries[i] = q.pair(at[i]), keys[i] = k.pair(at[i]);
#pragma unroll
      for (int i = 0; i < count; ++i) {
        const float2 f = query_power<d_k>(b[i]);
        q.set_pair(at[i], f * queries[i]);
        if constexpr (kind != GateKind::none) k.set_pair(at[i], powers_of_2({-b[i].x, -b[i].y}) * keys[i]);
        if constexpr (kind == GateKind::vector) store_pair(gates.memory + at[i], f);
      }
    };
    return Half<first_half>(channel()).walk_outwards(gates, scale);
  }

  /// Scales a half of the chunk in the strong form, and reads the gates again.
  template <bool first_half>
  __device__ void scale_strongly(int step, float2 middle, float2 rest) const {
    const int n = chunk_of(step);
    const Half<first_half> half(channel());
    const auto gates = layer_.rows(x_.in.g, d_k, n);
#pragma unroll 1
    for (int token = half.first; token < half.first + half.tokens; ++token)
      store_pair(Memory::gates(step).memory + half.at(token),
                 token < gates.count ? load_pair(gates.row(token) + channel()) : float2{0.0F, 0.0F});
    half.template scale_strongly<d_k>(Memory::gates(step), middle, rest, Memory::q(step), Memory::k(step),
                                      {layer_.rows(x_.in.q, d_k, n), layer_.rows(x_.in.k, d_k, n)},
                                      channel());
  }

  __device__ void walk(int step) const {
    if constexpr (kind == GateKind::none) return;
    if (takes_part()) is_first_half() ? walk_gates<true>(step) : walk_gates<false>(step);
  }

  /// Writes dg of this thread's half, from right to left.
  template <bool first_half>
  __device__ void walk_gates(int step) const {
    constexpr int half = device_chunk / 2;
    const auto rows = layer_.rows(x_.out.dg, d_k, chunk_of(step));
    const int start = Memory::Terms::offset(0, channel());
    const auto term = [&](int token) {
      return Memory::terms().pair((start ^ ((token & 7) << 5)) + token * Memory::Terms::row_bytes);
    };
    float2 dg = at_channel(Memory::right());
    if (first_half) {
#pragma unroll
      for (int token = device_chunk - 1; token >= half; --token) dg = dg + term(token);
    }
    constexpr int first = first_half ? 0 : half;
#pragma unroll
    for (int token = first + half - 1; token >= first; --token) {
      dg = dg + term(token);
      if (token < rows.count) store_pair(rows.row(token) + channel(), dg);
    }
  }

  const DeviceLayer& layer_;
  const SegmentGradients::Operands<OnDevice>& x_;
  int last_, count_;
  PanelLoader<d_k> keys_;
  PanelLoader<d_v> values_;
};

}  // namespace baton
