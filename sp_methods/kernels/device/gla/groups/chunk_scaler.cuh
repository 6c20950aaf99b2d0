// SPDX-License-Identifier: Apache-2.0
// One group of warps that copies and scales the chunks of a segment for groups that multiply them.
//
//   for each chunk: wait for its copies; q, k <- scaled by their decays, in place; full[slot]
//                   wait for empty[slot of the chunk before]; start the copies of the chunk two on
//   gentle chunk: x = b - r, summed outwards from the middle by a thread a half and two channels
//                 q_i <- s q_i e^{x_i},   k_i <- k_i e^{-x_i};   to = e^r, carry = e^{all - r}
//   strong chunk, |x| beyond the guard: q_i <- s q_i e^{b_i}, k_i <- k_i e^{all - b_i}
//                                       to = carry = 1, through = e^all
//
// So S (.) carry of the chunk before (.) to is the state that a chunk's queries want. No thread
// needs another's sum unless the chunk is strong, and the lanes of a warp lie along a row.
// Cost: two exponentials a token and channel.
#pragma once

#include "sp_methods/kernels/device/gla/scores.cuh"
#include "sp_methods/kernels/device/tile/wgmma.cuh"

namespace baton {

/// Three chunks of q, k, v and g in shared memory, and the decays of the last four chunks.
template <int d_k, int d_v, GateKind kind>
struct ScaledChunks {
  using Gates = GateTile<kind, d_k, PanelTile<d_k>>;
  static constexpr int slots = 3, kept = 4;
  static constexpr int k_at = PanelTile<d_k>::bytes, v_at = 2 * k_at, g_at = v_at + PanelTile<d_v>::bytes;
  static constexpr int slot_bytes = g_at + (Gates::bytes() + 1023) / 1024 * 1024;
  static constexpr int floats_at = slots * slot_bytes;
  static constexpr int floats = (3 * kept + 2) * d_k + kept;
  /// Bytes of these chunks in shared memory; other memory of the block begins behind them.
  static constexpr int shared_bytes = floats_at + (4 * floats + 1023) / 1024 * 1024;
  static constexpr int groups = d_v / 64;  ///< Groups that multiply.
  static constexpr int threads = (groups + 1) * group_threads;

  __device__ static char* slot(int step) { return shared_space() + step % slots * slot_bytes; }
  __device__ static PanelTile<d_k> q(int step) { return {slot(step)}; }
  __device__ static PanelTile<d_k> k(int step) { return {slot(step) + k_at}; }
  __device__ static PanelTile<d_v> v(int step) { return {slot(step) + v_at}; }
  __device__ static Gates gates(int step) { return {slot(step) + g_at}; }

  __device__ static float* to(int step) { return decays() + step % kept * d_k; }
  /// Decays [d_k] of chunk `step` from its middle to its end, 1 if the chunk is strong. Step 3 is
  /// the chunk before the first one too.
  __device__ static float* carry(int step) { return decays() + (kept + step % kept) * d_k; }
  __device__ static float* through(int step) { return decays() + (2 * kept + step % kept) * d_k; }
  /// log2 [d_k] of e^r.
  __device__ static float* log_to() { return decays() + 3 * kept * d_k; }
  /// log2 [d_k] of e^{all - r}.
  __device__ static float* log_from() { return log_to() + d_k; }
  __device__ static int& strong(int step) {
    return reinterpret_cast<int*>(decays() + (3 * kept + 2) * d_k)[step % kept];
  }

  __device__ static GroupBarrier scaling() { return {1, group_threads}; }
  __device__ static GroupBarrier full(int step) { return {2 + step % slots, threads}; }
  __device__ static GroupBarrier empty(int step) { return {2 + slots + step % slots, threads}; }
  /// The first barrier number that is free.
  static constexpr int barriers = 2 + 2 * slots;

 private:
  __device__ static float* decays() { return reinterpret_cast<float*>(shared_space() + floats_at); }
};

__device__ inline float2 powers_of_2(float2 x) { return {power_of_2(x.x), power_of_2(x.y)}; }
/// s 2^b of two channels.
template <int d_k>
__device__ inline float2 query_power(float2 b) {
  return powers_of_2({b.x + log2_scale<d_k>, b.y + log2_scale<d_k>});
}
__device__ inline bool beyond_guard(float2 log) { return fminf(log.x, log.y) < -device_gate_guard * log2_e; }

/// One thread's part of a chunk: one half of the tokens of two channels. Logs are base 2.
template <bool first_half, class Gates>
struct HalfChunk {
  using Tile = typename Gates::Tile;
  static constexpr int tokens = device_chunk / 2, first = first_half ? 0 : tokens, together = 4;

  int start;  ///< Offset of the channels in row 0.

  __device__ explicit HalfChunk(int channel) : start(Tile::offset(0, channel)) {}
  __device__ int at(int token) const { return (start ^ ((token & 7) << 4)) + token * Tile::row_bytes; }

  /// Calls f(places, tokens, b - r) from the middle outwards with arrays of some tokens at a time,
  /// so that loads need not wait for stores. Returns r, or all - r in the second half.
  template <class Function>
  __device__ float2 walk_outwards(const Gates& gates, Function f) const {
    float2 b{0.0F, 0.0F};
#pragma unroll
    for (int begin = 0; begin < tokens; begin += together) {
      int token[together], place[together];
      float2 sum[together];
#pragma unroll
      for (int i = 0; i < together; ++i) {
        token[i] = first_half ? tokens - 1 - begin - i : tokens + begin + i;
        place[i] = at(token[i]);
        const float2 g = log2_e * gates.pair(place[i], token[i]);
        if (!first_half) b = b + g;
        sum[i] = b;
        if (first_half) b = b - g;
      }
      f(place, token, sum);
    }
    return first_half ? float2{-b.x, -b.y} : b;
  }
  /// Sets queries and keys in the strong form from their rows in global memory.
  template <int d_k>
  __device__ void scale_strongly(const Gates& gates, float2 middle, float2 rest, const Tile& q, const Tile& k,
                                 const QueryKeyRows& rows, int channel) const {
    const auto element = [&](const HeadRows<const Bf16>& from, int token) {
      return token < from.count ? load_pair(from.row(token) + channel) : float2{0.0F, 0.0F};
    };
    float2 b = first_half ? float2{0.0F, 0.0F} : middle;
#pragma unroll 1
    for (int token = first; token < first + tokens; ++token) {
      b = b + log2_e * gates.pair(at(token), token);
      q.set_pair(at(token), power_of_2(log2_scale<d_k>) * (powers_of_2(b) * element(rows.q, token)));
    }
    float2 after = first_half ? rest : float2{0.0F, 0.0F};
#pragma unroll 1
    for (int token = first + tokens - 1; token >= first; --token) {
      k.set_pair(at(token), powers_of_2(after) * element(rows.k, token));
      after = after + log2_e * gates.pair(at(token), token);
    }
  }
};

template <int d_k, int d_v, GateKind kind>
class ChunkScaler {
 public:
  using Memory = ScaledChunks<d_k, d_v, kind>;

  __device__ ChunkScaler(const DeviceLayer& layer, const GlaDeviceInputs& in, int first, int count)
      : layer_(layer),
        in_(in),
        first_(first),
        count_(count),
        key_loader_(layer.tokens, layer.heads, layer.first_head + DeviceLayer::place()),
        value_loader_(layer.tokens, layer.heads, layer.first_head + DeviceLayer::place()) {}

  __device__ void run() {
    load(0);
    load(1);
    if (group_thread() < d_k) Memory::carry(Memory::kept - 1)[group_thread()] = 1.0F;
#pragma unroll 1
    for (int step = 0; step < count_; ++step) {
      wait_for_copies<1>();
      Memory::scaling().wait();
      scale(step);
      show_to_products();
      Memory::scaling().wait();
      Memory::full(step).arrive();
      if (step > 0 && step + 2 < count_) Memory::empty(step + 2).wait();
      load(step + 2);
    }
  }

 private:
  __device__ static int channel() { return 2 * (group_thread() % (d_k / 2)); }
  __device__ static bool takes_part() { return group_thread() < d_k; }
  __device__ static bool is_first_half() { return group_thread() < d_k / 2; }

  __device__ void load(int step) const {
    if (step < count_) {
      const int chunk = first_ + step;
      key_loader_.load(Memory::q(step), in_.q, chunk);
      key_loader_.load(Memory::k(step), in_.k, chunk);
      value_loader_.load(Memory::v(step), in_.v, chunk);
      Memory::gates(step).load(layer_, key_loader_, in_.g, chunk, group_thread());
    }
    commit_copies();
  }

  __device__ void scale(int step) const {
    bool strong = false;
    if (takes_part()) strong = is_first_half() ? scale_gently<true>(step) : scale_gently<false>(step);
    if constexpr (kind == GateKind::none) return;
    strong = Memory::scaling().any(strong);
    if (group_thread() == 0) Memory::strong(step) = strong ? 1 : 0;
    __syncwarp();
    if (strong && takes_part()) is_first_half() ? scale_strongly<true>(step) : scale_strongly<false>(step);
  }

  template <bool first_half>
  using Half = HalfChunk<first_half, typename Memory::Gates>;

  /// Scales this thread's part of a chunk gently, and returns true if the chunk must be scaled
  /// strongly.
  template <bool first_half>
  __device__ bool scale_gently(int step) const {
    const auto q = Memory::q(step), k = Memory::k(step);
    const auto scale = [&](const auto& at, const auto&, const auto& b) {
      constexpr int count = Half<first_half>::together;
      float2 queries[count], keys[count];
#pragma unroll
      for (int i = 0; i < count; ++i) queries[i] = q.pair(at[i]), keys[i] = k.pair(at[i]);
#pragma unroll
      for (int i = 0; i < count; ++i) {
        q.set_pair(at[i], query_power<d_k>(b[i]) * queries[i]);
        if constexpr (kind != GateKind::none) k.set_pair(at[i], powers_of_2({-b[i].x, -b[i].y}) * keys[i]);
      }
    };
    const float2 log = Half<first_half>(channel()).walk_outwards(Memory::gates(step), scale);
    if constexpr (kind == GateKind::none) return false;
    put_decays<first_half>(step, log);
    return beyond_guard(log);
  }

  template <bool first_half>
  __device__ static void put_decays(int step, float2 log) {
    float* const decays = first_half ? Memory::to(step) : Memory::carry(step);
    float* const logs = first_half ? Memory::log_to() : Memory::log_from();
    *reinterpret_cast<float2*>(decays + channel()) = {power_of_2(log.x), power_of_2(log.y)};
    *reinterpret_cast<float2*>(logs + channel()) = log;
  }

  __device__ static float2 at_channel(const float* x) {
    return *reinterpret_cast<const float2*>(x + channel());
  }

  /// Scales this thread's part of a chunk strongly, from rows in global memory.
  template <bool first_half>
  __device__ void scale_strongly(int step) const {
    const QueryKeyRows rows{layer_.rows(in_.q, d_k, first_ + step), layer_.rows(in_.k, d_k, first_ + step)};
    const float2 middle = at_channel(Memory::log_to()), rest = at_channel(Memory::log_from());
    Half<first_half>(channel()).template scale_strongly<d_k>(
        Memory::gates(step), middle, rest, Memory::q(step), Memory::k(step), rows, channel());
    *reinterpret_cast<float2*>((first_half ? Memory::to(step) : Memory::carry(step)) + channel()) = {1.0F,
                                                                                                     1.0F};
    if (first_half)
      *reinterpret_cast<float2*>(Memory::through(step) + channel()) = powers_of_2(middle + rest);
  }

  const DeviceLayer& layer_;
  const GlaDeviceInputs& in_;
  int first_, count_;
  PanelLoader<d_k> key_loader_;
  PanelLoader<d_v> value_loader_;
};

}  // namespace baton
