// SPDX-License-Identifier: Apache-2.0
// From one group's turned sums X, Y to its columns of dq, dk and dg, which take the room of q, k
// and f; dg of a gate a head is left to scalar_gate.cuh.
//
//   dq = f (.) X     dk = s / f (.) Y     dg_i = R + sum over u >= i of T_u,   T = q X - k Y
//
// A row of sums, one channel, lies in four lanes: pair n of lane b has tokens 8 n + 2 b and the
// next one. So the sum over later tokens is one over later lanes and one over later n.
#pragma once

#include "sp_methods/kernels/device/gla/groups/scalar_gate.cuh"
#include "sp_methods/kernels/device/tile/turned_panel.cuh"

namespace baton {

/// 1 / x for x far from the ends of the range.
__device__ inline float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// The gradients of one chunk in one group's channels.
template <int d_k, int d_v, GateKind kind>
class TurnedGradients {
 public:
  using Room = GradientRoom<d_k, d_v, kind>;
  using Turned = GroupSums<device_chunk>;

  __device__ explicit TurnedGradients(int step)
      : step_(step),
        q_(panel(Room::q(step).memory)),
        k_(panel(Room::k(step).memory)),
        f_(panel(Room::gates(step).memory)) {}

  /// Puts the gradients. `right` is R of this thread's two channels.
  __device__ void put(Turned& x, Turned& y, float2 right) const {
#pragma unroll
    for (int i = 0; i < TurnedPanel::pieces; ++i) {
      if constexpr (kind == GateKind::none) {
        put_without_gates(i, x, y);
      } else {
        put_piece(i, x.c + 8 * i, y.c + 8 * i);
      }
    }
    if constexpr (kind == GateKind::none) return;
    if constexpr (kind == GateKind::scalar) return put_sums_of_channels<Room>(step_, x, right);
    sum_later(x, right);
#pragma unroll
    for (int i = 0; i < TurnedPanel::pieces; ++i) {
      std::uint32_t dg[4];
      pack_left(dg, x, i);
      f_.store(i, dg);
    }
  }

 private:
  __device__ static TurnedPanel panel(const char* tile) {
    return TurnedPanel(tile + group() * PanelTile<64>::bytes);
  }

  __device__ void put_without_gates(int i, Turned& x, const Turned& y) const {
    const float s = power_of_2(log2_scale<d_k>);
    std::uint32_t dq[4], dk[4];
#pragma unroll
    for (int e = 0; e < 8; ++e) x.c[8 * i + e] *= s;
    pack_left(dq, x, i);
    pack_left(dk, y, i);
    q_.store(i, dq);
    k_.store(i, dk);
  }
  /// Reads the factors f of a piece.
  __device__ void load_factors(float2 (&f)[4], int i) const {
    std::uint32_t pairs[4];
    if constexpr (kind == GateKind::vector) f_.load(pairs, i);
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      const int token = 16 * i + m / 2 * 8 + 2 * (lane() & 3);
      f[m] = kind == GateKind::vector ? unpacked_pair(pairs[m])
                                      : *reinterpret_cast<const float2*>(Room::factors(step_) + token);
    }
  }
  /// Puts one piece of dq and dk, and sets x to T.
  __device__ void put_piece(int i, float* x, const float* y) const {
    const float s = power_of_2(log2_scale<d_k>);
    std::uint32_t q[4], k[4];
    float2 f[4];
    q_.load(q, i);
    k_.load(k, i);
    load_factors(f, i);
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      const float2 queries = unpacked_pair(q[m]), keys = unpacked_pair(k[m]), factor = f[m];
      const float2 of_x{x[2 * m], x[2 * m + 1]}, of_y{y[2 * m], y[2 * m + 1]};
      const float2 term = queries * of_x - keys * of_y;
      q[m] = packed_pair(factor.x * of_x.x, factor.y * of_x.y);
      k[m] = packed_pair(s * of_y.x * reciprocal(factor.x), s * of_y.y * reciprocal(factor.y));
      x[2 * m] = term.x, x[2 * m + 1] = term.y;
    }
    q_.store(i, q);
    k_.store(i, k);
  }

  /// Sets T to `right` and the sum of T over this and all later tokens.
  __device__ static void sum_later(Turned& terms, float2 right) {
    const float one_after = (lane() & 3) < 3 ? 1.0F : 0.0F, two_after = (lane() & 3) < 2 ? 1.0F : 0.0F;
#pragma unroll
    for (int n = device_chunk / 8 - 1; n >= 0; --n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float &first = terms.c[4 * n + 2 * half], &second = terms.c[4 * n + 2 * half + 1];
        float& later = half == 0 ? right.x : right.y;
        const float own = first + second;
        float sum = own;  // of this lane and those after it
        sum += one_after * __shfl_down_sync(0xffffffffU, sum, 1, 4);
        sum += two_after * __shfl_down_sync(0xffffffffU, sum, 2, 4);
        second += later + (sum - own);
        first += second;
        later += __shfl_sync(0xffffffffU, sum, 0, 4);
      }
    }
  }

  int step_;
  TurnedPanel q_, k_, f_;
};

}  // namespace baton
