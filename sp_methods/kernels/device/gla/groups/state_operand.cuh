// SPDX-License-Identifier: Apache-2.0
// The state before a chunk as one group's left operand, 64 channels of it; and what its products
// with D give for dg.
//
//   S = the chunk's own of chunk_starts + its decay (.) the state before the segment, in bf16
//   R = e^all (.) rowsum(S (.) D) + sum over j of k_j Y'_j,  Y' = what Y has from D
//
// Both parts lie in memory as a lane takes them (state_pieces.cuh), and never in shared memory.
#pragma once

#include "sp_methods/kernels/device/gla/layer.cuh"
#include "sp_methods/kernels/device/gla/state_pieces.cuh"
#include "sp_methods/kernels/device/tile/turned_panel.cuh"

namespace baton {

/// The pieces of a left operand of 64 rows and d_v columns.
template <int d_v>
using LeftState = std::uint32_t[d_v / 16][4];

/// The parts of this group's rows of the state before a chunk, on their way from memory.
template <int d_k, int d_v, GateKind kind>
class StateParts {
 public:
  using Source = ChunkStartsInSegments<OnDevice>;

  __device__ StateParts(const DeviceLayer& layer, const Source& from, int chunk)
      : adds_(from.chunks != nullptr && from.segments != nullptr) {
    const std::int64_t head = DeviceLayer::place(), number = head * layer.chunks() + chunk;
    read(own_, from.chunks, number);
    if (!adds_) return;
    read(before_, from.segments, head * layer.segments + DeviceLayer::segment());
    if constexpr (kind == GateKind::none) return;
    const float* const decays = from.decays + number * d_k + 64 * group() + GroupSums<d_v>::row();
    decay_ = {decays[0], decays[8]};
  }

  /// Sets `state` to the sum of the parts.
  __device__ void add_into(LeftState<d_v>& state) const {
#pragma unroll
    for (int i = 0; i < 4 * (d_v / 16); ++i) state[i / 4][i % 4] = own_[i / 4][i % 4];
    if (!adds_) return;
#pragma unroll
    for (int i = 0; i < 4 * (d_v / 16); ++i) {
      std::uint32_t& sum = state[i / 4][i % 4];
      sum = plus_decayed_pair(sum, i % 2 == 0 ? decay_.x : decay_.y, before_[i / 4][i % 4]);
    }
  }

 private:
  /// Starts to read state `number` of `states`; it is zero if these are null.
  __device__ static void read(LeftState<d_v>& into, const Bf16* states, std::int64_t number) {
    const int row = 64 * group() + group_thread() / 32 * 16;
    const Bf16* const state = states + number * d_k * d_v;
#pragma unroll
    for (int i = 0; i < d_v / 16; ++i) {
      uint4 x{0, 0, 0, 0};
      if (states != nullptr)
        x = __ldcg(reinterpret_cast<const uint4*>(state + own_in_piece(d_v, row, 16 * i)));
      into[i][0] = x.x, into[i][1] = x.y, into[i][2] = x.z, into[i][3] = x.w;
    }
  }

  bool adds_;
  float2 decay_{1.0F, 1.0F};
  LeftState<d_v> own_, before_;
};

/// The sums over rows of state (.) sums, of this thread's two rows.
template <int d_v>
__device__ inline float2 sums_of_rows(const LeftState<d_v>& state, const GroupSums<d_v>& sums) {
  float2 rows{0.0F, 0.0F};
#pragma unroll
  for (int i = 0; i < d_v / 16; ++i)
    add_products_of_piece(rows, state[i], sums.c + 8 * i, sums.c + 8 * i + 4);
  return sum_over_row(rows);
}
/// The sums over tokens of k (.) y, of this thread's two channels.
__device__ inline float2 sums_of_rows(const TurnedPanel& k, const GroupSums<device_chunk>& y) {
  float2 rows{0.0F, 0.0F};
#pragma unroll
  for (int i = 0; i < TurnedPanel::pieces; ++i) {
    std::uint32_t piece[4];
    k.load(piece, i);
    add_products_of_piece(rows, piece, y.c + 8 * i, y.c + 8 * i + 4);
  }
  return sum_over_row(rows);
}

}  // namespace baton
