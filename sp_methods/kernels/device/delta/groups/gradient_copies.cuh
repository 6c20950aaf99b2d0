// SPDX-License-Identifier: Apache-2.0
// The group of warps that copies chunks for the groups that multiply them, and writes dg from the
// terms of all groups.
//
// Rows of tokens are copied a chunk ahead. S and D have room once, so those of the next chunk are
// copied when the products of this one have read them, beside its pairs of tokens and its writes.
// Cost: about 70 copies of 16 bytes a thread and chunk.
#pragma once

#include "sp_methods/kernels/device/delta/gradients.cuh"
#include "sp_methods/kernels/device/delta/groups/chunk_walk.cuh"
#include "sp_methods/kernels/device/delta/groups/gradient_room.cuh"
#include "sp_methods/kernels/device/delta/scaling.cuh"

namespace baton {

/// The work of the group that copies, over all chunks of a block.
template <int d_k, int d_v, GateKind kind>
class DeltaGradientCopies {
 public:
  using Room = DeltaGradientRoom<d_k, d_v>;
  using Operands = DeltaGradients::Operands<OnDevice>;

  __device__ DeltaGradientCopies(const DeviceLayer& layer, const Operands& x, const SweptChunks& kept,
                                 const ChunkWalk& walk)
      : layer_(layer), x_(x), kept_(kept), walk_(walk), count_(walk.count()) {}

  __device__ void run() const {
    load_tokens(0);
    load_states(0);
    TokenNumbers next = numbers(0);
#pragma unroll 1
    for (int step = 0; step < count_; ++step) {
      put(next, step);
      hand_over<1>(Room::tokens_there());
      if (step > 0) Room::chunk_done().wait();
      load_tokens(step + 1);
      next = numbers(step + 1);
      if (step > 0) write_gates(step - 1);
      hand_over<1>(Room::states_there());
      Room::states_read().wait();
      load_states(step + 1);
    }
    Room::chunk_done().wait();
    write_gates(count_ - 1);
  }

 private:
  /// What a lane of the first warp knows of two neighbouring tokens.
  struct TokenNumbers {
    float2 gate, beta;
  };

  __device__ static bool is_first_warp() { return group_thread() < 32; }

  /// Starts the copies of a step's rows of tokens, if there is such a step.
  __device__ void load_tokens(int step) const {
    if (step < count_) {
      const HeadChunk at = walk_.at(step);
      const int head = layer_.first_head + at.head;
      const PanelLoader<d_v> values(layer_.tokens, layer_.heads, head);
      values.load(Room::d_o(step), x_.d_o, at.chunk);
      values.load(Room::missing(step), kept_.missing, at.chunk);
      values.load(Room::z(step), kept_.z, at.chunk);
      const PanelLoader<d_k> keys(layer_.tokens, layer_.heads, head);
      keys.load(Room::k(step), x_.in.of.k, at.chunk);
      keys.load(Room::q(step), x_.in.of.q, at.chunk);
    }
    commit_copies();
  }
  __device__ void load_states(int step) const {
    if (step < count_) {
      const std::int64_t first = walk_.number(walk_.at(step)) * d_v * d_k;
      copy_dense(Room::state(), kept_.states + first);
      copy_dense(Room::gradient(), kept_.gradients + first);
    }
    commit_copies();
  }

  /// Waits until at most `pending` groups of copies are incomplete, and hands the others over.
  template <int pending>
  __device__ static void hand_over(const GroupBarrier& there) {
    wait_for_copies<pending>();
    show_to_products();
    Room::own_group().wait();
    there.arrive();
  }

  __device__ TokenNumbers numbers(int step) const {
    if (step >= count_ || !is_first_warp()) return {};
    const HeadChunk at = walk_.at(step);
    const auto beta = layer_.rows(x_.in.beta, 1, at.chunk, at.head);
    TokenNumbers found{{}, two_of(beta)};
    if constexpr (kind == GateKind::scalar) {
      const float2 gate = two_of(layer_.rows(x_.in.of.g, 1, at.chunk, at.head));
      found.gate = {fmaxf(gate.x, least_gate), fmaxf(gate.y, least_gate)};
    }
    return found;
  }
  __device__ static float2 two_of(const HeadRows<const Bf16>& rows) {
    const int token = 2 * lane();
    return {token < rows.count ? __bfloat162float(*rows.row(token)) : 0.0F,
            token + 1 < rows.count ? __bfloat162float(*rows.row(token + 1)) : 0.0F};
  }
  __device__ static void put(const TokenNumbers& x, int step) {
    if (!is_first_warp()) return;
    *reinterpret_cast<float2*>(Room::beta(step) + 2 * lane()) = x.beta;
    if constexpr (kind == GateKind::scalar) sum_gates_of_head(Room::sums(step), x.gate);
  }

  /// Writes dg of a step's chunk.
  __device__ void write_gates(int step) const {
    if constexpr (kind != GateKind::none) {
      if (!is_first_warp()) return;
      float2 term{0.0F, 0.0F}, leaving{0.0F, 0.0F};
#pragma unroll
      for (int group = 0; group < Room::groups; ++group) {
        term = term + *reinterpret_cast<const float2*>(Room::terms(group) + 2 * lane());
        leaving = leaving + *reinterpret_cast<const float2*>(Room::leaving(group) + 2 * lane());
      }
      float later = term.x + term.y, earlier = leaving.x + leaving.y;
#pragma unroll
      for (int apart = 1; apart < 32; apart *= 2) {
        const float down = __shfl_down_sync(0xffffffffU, later, apart);
        const float up = __shfl_up_sync(0xffffffffU, earlier, apart);
        if (lane() + apart < 32) later += down;
        if (lane() >= apart) earlier += up;
      }
      later = __shfl_down_sync(0xffffffffU, later, 1), earlier = __shfl_up_sync(0xffffffffU, earlier, 1);
      if (lane() == 31) later = 0.0F;
      if (lane() == 0) earlier = 0.0F;
      float passing = 0.0F;
#pragma unroll
      for (int part = 0; part < Room::warps; ++part) passing += Room::passing()[part];
      passing *= decay_of(Room::sums(step)[device_chunk - 1]);
      const HeadChunk at = walk_.at(step);
      const auto dg = layer_.rows(x_.out.of.dg, 1, at.chunk, at.head);
      const int token = 2 * lane();
      const float around = passing + later + earlier + term.y;
      if (token < dg.count) *dg.row(token) = __float2bfloat16(around + term.x);
      if (token + 1 < dg.count) *dg.row(token + 1) = __float2bfloat16(around + leaving.x);
    }
  }

  const DeviceLayer& layer_;
  const Operands& x_;
  const SweptChunks& kept_;
  const ChunkWalk& walk_;
  int count_;
};

}  // namespace baton
