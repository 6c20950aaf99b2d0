// SPDX-License-Identifier: Apache-2.0
// The two groups that compute gradients share the state gradient D, held in registers, and the
// products with states, in gentle and in strong chunks.
//
//   D' = from (.) D in shared memory
//   R = rowsum(e^all (.) S (.) D) + sum over keys of k (.) Y'
//   X' = do S^T by the first group, Y' = v D'^T by the second; D + q^T do and k D' by halves
//
// Gates of a strong chunk are not taken out of D'.
#pragma once

#include "sp_methods/kernels/device/gla/groups/gradient_scaler.cuh"

namespace baton {

template <int d_k, int d_v, GateKind kind>
class CarriedGradient {
 public:
  using Memory = GradientRoom<d_k, d_v, kind>;
  using Operands = SegmentGradients::Operands<OnDevice>;

  __device__ CarriedGradient(const DeviceLayer& layer, const Operands& x, int last, int count)
      : layer_(layer), x_(x), last_(last), count_(count) {}

 protected:
  using Along = PanelsAlong;
  using Rows = PanelOperand<Along::summed>;
  using Columns = PanelOperand<Along::outer>;
  using Keys = typename Memory::Keys;
  using State = typename Memory::State;
  // D: rows of the state for each group, or columns where there are 64 rows; columns of dv.
  static constexpr bool shares_rows = d_k == 64;
  static constexpr int state_columns = shares_rows ? d_v / 2 : d_v, value_columns = d_v / 2;

  __device__ static bool holds_x() { return group() == 0; }
  __device__ static int state_row() { return shares_rows ? 0 : 64 * group(); }
  __device__ static int state_column() { return shares_rows ? value_column() : 0; }
  __device__ static int value_column() { return group() * value_columns; }
  __device__ int chunk_of(int step) const { return last_ - step; }

  __device__ void read_gradient() {
    const EdgeState<d_k, d_v> edge(x_.after, layer_.segments, layer_.segments - 1 - DeviceLayer::segment());
    gradient_.for_each([&](int n, int half, float2& x) {
      const int row = state_row() + gradient_.row() + 8 * half,
                column = state_column() + gradient_.column() + 8 * n;
      x = edge.template at<float2>(row, column);
    });
  }

  /// Stores D' in shared memory, and this group's part of rowsum(e^all (.) S (.) D).
  __device__ void put_gradient(int step, bool strong) {
    Memory::room_free().wait();
    if constexpr (kind != GateKind::none) {
      if (!strong) gradient_.scale_rows(Memory::from(step) + state_row());
      put_passing(step);
    }
    const GroupPlace<State> place(state_row(), state_column());
    gradient_.for_each(
        [&](int n, int half, const float2& x) { Memory::gradient().set_pair(place.at(n, half), x); });
    if (strong) gradient_.scale_rows(Memory::to(step) + state_row());
    show_to_products();
  }
  __device__ void put_passing(int step) {
    float2 sums{0.0F, 0.0F};  // of rows r and r + 8
    const int row = state_row() + gradient_.row();
    const GroupPlace<State> place(state_row(), state_column());
    gradient_.for_each([&](int n, int half, const float2& x) {
      const float2 s = Memory::state().pair(place.at(n, half));
      (half == 0 ? sums.x : sums.y) += s.x * x.x + s.y * x.y;
    });
    sums.x += __shfl_xor_sync(0xffffffffU, sums.x, 1), sums.y += __shfl_xor_sync(0xffffffffU, sums.y, 1);
    sums.x += __shfl_xor_sync(0xffffffffU, sums.x, 2), sums.y += __shfl_xor_sync(0xffffffffU, sums.y, 2);
    float* const part = Memory::right() + (shares_rows ? group() * d_k : 0);
    if ((group_thread() & 3) != 0) return;
    part[row] = sums.x * Memory::to(step)[row];
    part[row + 8] = sums.y * Memory::to(step)[row + 8];
  }

  /// A pair of scores with zeros on one side of the diagonal, where the first one is `right`
  /// columns to its right. Dropped scores may be infinite.
  __device__ static float2 kept(float2 x, int right, bool lower) {
    const bool first = lower ? right <= 0 : right >= 0, second = lower ? right + 1 <= 0 : right + 1 >= 0;
    return {first ? x.x : 0.0F, second ? x.y : 0.0F};
  }

  /// Starts the part of X that comes from S, or the part of Y that comes from D'.
  __device__ void start_sums_of_states(GroupSums<d_k>& sums) {
    const Rows left((holds_x() ? Memory::d_o() : Memory::v()).memory);
    begin_products();
    start_product<d_v / 16>(
        sums, left,
        PanelOperand<Along::summed, d_k>((holds_x() ? Memory::state() : Memory::gradient()).memory), false);
    commit_products();
  }

  /// Writes this group's columns of dv.
  __device__ void write_values(int step, const GroupSums<value_columns>& dv) const {
    const auto rows = layer_.rows(x_.out.dv, d_v, chunk_of(step));
    store_rows(HeadRows<Bf16>{rows.first + value_column(), rows.stride, rows.count}, dv);
  }
  /// Starts D + q^T d_o.
  __device__ void start_gradient(int step) {
    start_product<device_chunk / 16>(
        gradient_, Columns(Memory::q(step).memory + Keys::offset(0, state_row())),
        Columns(Memory::d_o().memory + Memory::Values::offset(0, state_column())), true);
  }
  /// Starts dv (+)= k D'.
  __device__ static void start_values_of_gradient(int step, GroupSums<value_columns>& dv) {
    start_product<d_k / 16>(
        dv, Rows(Memory::k(step).memory),
        PanelOperand<Along::outer, d_k>(Memory::gradient().memory + State::offset(0, value_column())), true);
  }
  /// This group's columns of d_o as an operand whose rows are summed.
  __device__ static Columns own_d_o() {
    return Columns(Memory::d_o().memory + Memory::Values::offset(0, value_column()));
  }
  /// Adds the sum over keys of k (.) Y to R, where Y has only the state's part. Its parts use the
  /// memory of v.
  __device__ void put_leaving(int step, const GroupSums<d_k>& sums) {
    float* const parts = reinterpret_cast<float*>(Memory::v().memory);
    const auto k = Memory::k(step);
    const GroupPlace<Keys> place;
    const int warp = group_thread() / 32;
#pragma unroll
    for (int first = 0; first < d_k / 8; first += 4) {
      float2 x[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* const y = sums.c + 4 * (first + i);
        x[i] = k.pair(place.at(first + i, 0)) * float2{y[0], y[1]} +
               k.pair(place.at(first + i, 1)) * float2{y[2], y[3]};
      }
      const auto [column, sum] = sum_over_rows(x);
      parts[warp * d_k + 8 * first + column] = sum;
    }
    Memory::own().wait();
    const int c = group_thread();
    if (c >= d_k) return;
    float* const right = Memory::right();
    float sum = right[c] + (shares_rows ? right[d_k + c] : 0.0F);
    for (int part = 0; part < 4; ++part) sum += parts[part * d_k + c];
    right[c] = sum;
  }

  /// The sum over the warp's rows of one column, out of four pairs of columns that are 8 apart.
  struct ColumnSum {
    int column;
    float sum;
  };
  __device__ static ColumnSum sum_over_rows(const float2 (&x)[4]) {
    const int from = group_thread() % 32;
    const bool third = (from & 16) != 0, second = (from & 8) != 0, odd = (from & 4) != 0;
    const auto halved = [](bool upper, float low, float high, int apart) {
      return (upper ? high : low) + __shfl_xor_sync(0xffffffffU, upper ? low : high, apart);
    };
    const float2 even{halved(third, x[0].x, x[2].x, 16), halved(third, x[0].y, x[2].y, 16)};
    const float2 next{halved(third, x[1].x, x[3].x, 16), halved(third, x[1].y, x[3].y, 16)};
    const float2 pair{halved(second, even.x, next.x, 8), halved(second, even.y, next.y, 8)};
    return {8 * ((third ? 2 : 0) + (second ? 1 : 0)) + 2 * (from & 3) + (odd ? 1 : 0),
            halved(odd, pair.x, pair.y, 4)};
  }

  const DeviceLayer& layer_;
  const Operands& x_;
  int last_, count_;
  GroupSums<state_columns> gradient_;
};

}  // namespace baton
