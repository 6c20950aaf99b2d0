// SPDX-License-Identifier: Apache-2.0
// What the sweeps over the chunks of a segment share: a group of four warps has 64 rows of a state
// X [rows, d_k], values first, in registers, and all products are turned, so that X and the numbers
// of the tokens are left operands in registers:
//
//   a gate a head:      V~^T = V^T - (X k^T) e^b      X <- e^all X + (e^{all-b} B R)^T k
//   a gate a channel:   X' = to X    V~^T = V^T - X' k'^T    X <- from (through X' + (B R)^T k")
//   R^T = V~^T + (B V~)^T N~^T
//   a low-rank rule:    X' = to X    u~^T = X' r'^T         X <- from (through X' + u^T b")
//   u^T = u~^T + u~^T N~^T, in the place of R; what values add besides is value_keys.cuh
//
// with N~ of inverse_steps.cuh. Rows are independent, so groups do not meet.
// Source: "Gated Delta Networks", arXiv 2412.06464 (chunkwise form).
#pragma once

#include "sp_methods/kernels/device/delta/groups/chunk_feed.cuh"
#include "sp_methods/kernels/device/tile/turned_panel.cuh"

namespace baton {

/// Left operands of all steps over `columns` summed indices.
template <int columns>
struct PackedRows {
  std::uint32_t of[columns / 16][4];

  PackedRows() = default;
  __device__ explicit PackedRows(const GroupSums<columns>& sums) {
#pragma unroll
    for (int i = 0; i < columns / 16; ++i) pack_left(of[i], sums, i);
  }
};
using PackedTokens = PackedRows<device_chunk>;

/// Numbers of the two tokens of this thread's columns 8 n and on.
__device__ inline float2 token_pair(const float* numbers, int n) {
  return *reinterpret_cast<const float2*>(numbers + 8 * n + GroupSums<device_chunk>::column());
}

/// The strengths of the tokens of this thread's columns 8 n and on, or 1.
template <class Slots>
__device__ inline float2 strength_pair(int step, int n) {
  return Slots::is_low_rank ? float2{1.0F, 1.0F} : token_pair(Slots::beta(step), n);
}

/// Calls f(n, pair) for all pairs of a packed operand over tokens, with the tokens 8 n + column()
/// and the next one.
template <class Function>
__device__ inline void for_each_pair(PackedTokens& x, Function f) {
#pragma unroll
  for (int step = 0; step < device_chunk / 16; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float2 pair = unpacked_pair(x.of[step][i]);
      f(2 * step + i / 2, pair);
      x.of[step][i] = packed_pair(pair.x, pair.y);
    }
  }
}

/// Sets `into` to sums whose columns are multiplied by factor(n).
template <class Factor>
__device__ inline void pack_scaled(PackedTokens& into, const GroupSums<device_chunk>& sums, Factor factor) {
#pragma unroll
  for (int step = 0; step < device_chunk / 16; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float* const pair = sums.c + 8 * step + 2 * i;
      const float2 f = factor(2 * step + i / 2);
      into.of[step][i] = packed_pair(f.x * pair[0], f.y * pair[1]);
    }
  }
}

/// This group's 64 columns of a tile of values as a turned operand [64 values, 64 tokens].
class TurnedValues {
 public:
  template <class Tile>
  __device__ explicit TurnedValues(const Tile& values)
      : memory_(values.memory + group() * PanelTile<64>::bytes), panel_(memory_) {}

  __device__ void load(PackedTokens& x) const {
#pragma unroll
    for (int i = 0; i < TurnedPanel::pieces; ++i) panel_.load(x.of[i], i);
  }
  __device__ void store(const PackedTokens& x) const {
#pragma unroll
    for (int i = 0; i < TurnedPanel::pieces; ++i) panel_.store(i, x.of[i]);
  }
  /// Copies the columns to rows of global memory, behind a barrier of the group. `read` is called
  /// once they are read.
  template <class Function>
  __device__ void write(const HeadRows<Bf16>& rows, Function read) const {
    const PanelRows own(memory_);
    read();
    own.write({rows.first + 64 * group(), rows.stride, rows.count});
  }

 private:
  char* memory_;
  TurnedPanel panel_;
};

/// The decays of a chunk, as sums of products and states take them.
template <class Slots>
struct SlotDecays {
  static constexpr int d_k = Slots::key_width;
  int step;

  /// The decays of the tokens of this thread's columns 8 n and on from the chunk's start, or 1.
  __device__ float2 head(int n) const {
    return Slots::by_head ? token_pair(Slots::head(step), n) : float2{1.0F, 1.0F};
  }
  /// The same to the chunk's end.
  __device__ float2 tail(int n) const {
    return Slots::by_head ? token_pair(Slots::tail(step), n) : float2{1.0F, 1.0F};
  }
  /// Decays a state to the reference of the chunk's keys.
  __device__ void enter(GroupSums<d_k>& state) const {
    if constexpr (Slots::by_channel) scale_columns(state, Slots::to(step));
  }
  /// Decays a state from the reference to the chunk's end.
  __device__ void leave(GroupSums<d_k>& state) const {
    if constexpr (Slots::by_channel) scale_columns(state, Slots::from(step));
  }
  /// Decays a state by what `enter` and `leave` leave out of the chunk's whole decay.
  __device__ void pass(GroupSums<d_k>& state) const {
    if constexpr (Slots::by_channel) scale_columns(state, Slots::through(step));
    if constexpr (Slots::by_head) {
      const float factor = Slots::head(step)[device_chunk - 1];
#pragma unroll
      for (float& x : state.c) x *= factor;
    }
  }

 private:
  __device__ static void scale_columns(GroupSums<d_k>& state, const float* factors) {
    state.for_each([&](int n, int, float2& x) { x = x * token_pair(factors, n); });
  }
};

/// The products of a chunk that move a state over it, from left to right.
template <class Slots>
struct ForwardChunk {
  using Along = PanelsAlong;
  static constexpr int d_k = Slots::key_width;
  int step;

  __device__ SlotDecays<Slots> decays() const { return {step}; }
  __device__ PanelOperand<Along::summed> keys() const {
    return PanelOperand<Along::summed>(Slots::keys_in(step).memory);
  }

  /// Turns x = X k'^T into R^T, or u~^T into u^T. Rows of a matrix have no values.
  template <bool has_values>
  __device__ void set_missing(GroupSums<device_chunk>& x) const {
    if constexpr (!Slots::is_low_rank) take_from_values<has_values>(x);
    PackedTokens weighted;
    pack_scaled(weighted, x, [&](int n) { return strength_pair<Slots>(step, n); });
    begin_products();
    start_product<device_chunk / 16>(x, weighted.of, PanelOperand<Along::summed>(Slots::inverse(step).memory),
                                     true);
    commit_products();
    wait_for_products<0>();
    x.arrived();
  }

  /// Starts what moves the state over the chunk; `written` has room for the operand. The state
  /// leaves the chunk when that is complete.
  __device__ void start_move(GroupSums<d_k>& state, PackedTokens& written,
                             const GroupSums<device_chunk>& missing) const {
    pack_scaled(written, missing, [&](int n) { return strength_pair<Slots>(step, n) * decays().tail(n); });
    decays().pass(state);
    begin_products();
    start_product<device_chunk / 16>(state, written.of,
                                     PanelOperand<Along::outer>(Slots::keys_out(step).memory), true);
  }

 private:
  /// Turns x = X k'^T into V~^T.
  template <bool has_values>
  __device__ void take_from_values(GroupSums<device_chunk>& x) const {
    PackedTokens values;
    if constexpr (has_values) TurnedValues(Slots::values(step)).load(values);
#pragma unroll
    for (int i = 0; i < device_chunk / 4; ++i) {
      const float2 own = has_values ? unpacked_pair(values.of[i / 4][i % 4]) : float2{0.0F, 0.0F};
      const float2 decay = decays().head(i / 2);
      x.c[2 * i] = own.x - decay.x * x.c[2 * i];
      x.c[2 * i + 1] = own.y - decay.y * x.c[2 * i + 1];
    }
  }
};

/// Sets a group's rows of a state from fp32 rows of d_k numbers, or to zero if `rows` is null.
template <int d_k>
__device__ inline void read_rows(GroupSums<d_k>& state, const float* rows) {
  state.for_each([&](int n, int half, float2& x) {
    const int at = (state.row() + 8 * half) * d_k + state.column() + 8 * n;
    x = rows == nullptr ? float2{0.0F, 0.0F} : *reinterpret_cast<const float2*>(rows + at);
  });
}
template <int d_k>
__device__ inline void write_rows(float* rows, GroupSums<d_k>& state) {
  state.for_each([&](int n, int half, const float2& x) {
    *reinterpret_cast<float2*>(rows + (state.row() + 8 * half) * d_k + state.column() + 8 * n) = x;
  });
}
/// Sets a group's rows to those of the identity from row `first` on.
template <int d_k>
__device__ inline void set_identity(GroupSums<d_k>& state, int first) {
  state.for_each([&](int n, int half, float2& x) {
    const int ahead = first + state.row() + 8 * half - state.column() - 8 * n;
    x = {ahead == 0 ? 1.0F : 0.0F, ahead == 1 ? 1.0F : 0.0F};
  });
}

}  // namespace baton
