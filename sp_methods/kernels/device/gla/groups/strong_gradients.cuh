// SPDX-License-Identifier: Apache-2.0
// The gradients of a strong chunk, whose pairs within are summed one by one.
//
//   dv = A^T do + k D'                  D <- e^all (.) D + q^T do
//   dq_i = s e^{b_i} (.) X'_i + s sum_{j < i} dA_ij k_j e^{b_i - b_j} + s dA_ii k_i
//   dk_j = e^{all - b_j} (.) Y'_j + sum_{i > j} dA_ij s q_i e^{b_i - b_j} + s dA_jj q_j
//
// b_i - b_j is summed outwards from the pair. A token's own pair passes no gate and is added last,
// so that it cannot cancel in dg. A and dA take the room of S.
// Cost: one exponential a pair and channel.
#pragma once

#include "sp_methods/kernels/device/gla/groups/carried_gradient.cuh"
#include "sp_methods/kernels/device/gla/scores.cuh"

namespace baton {

template <int d_k, int d_v, GateKind kind>
class StrongGradients : public CarriedGradient<d_k, d_v, kind> {
 public:
  using Base = CarriedGradient<d_k, d_v, kind>;
  using Base::Base;
  using Base::chunk_of, Base::count_, Base::gradient_, Base::holds_x, Base::kept, Base::layer_;
  using Base::own_d_o, Base::put_gradient, Base::put_leaving, Base::start_gradient;
  using Base::start_sums_of_states, Base::start_values_of_gradient, Base::value_columns;
  using Base::write_values, Base::x_;
  using typename Base::Columns;
  using typename Base::Keys;
  using typename Base::Memory;
  using typename Base::Rows;

  /// Computes dq or dk, and T, of a strong chunk.
  __device__ void multiply_strongly(int step, GroupSums<d_k>& sums) {
    const QueryKeyRows rows{layer_.rows(x_.in.q, d_k, chunk_of(step)),
                            layer_.rows(x_.in.k, d_k, chunk_of(step))};
    put_gradient(step, true);
    Memory::multiplying().wait();
    begin_products();
    start_gradient(step);
    start_sums_of_states(sums);
    wait_for_products<0>();
    gradient_.arrived(), sums.arrived();
    Memory::multiplying().wait();
    if (holds_x()) put_d_scores();
    strong_scores<2 * group_threads / 32, device_chunk>(Memory::scores(), Memory::gates(step), rows);
    show_to_products();
    Memory::multiplying().wait();
    if (!holds_x()) put_leaving(step, sums);
    multiply_values(step);
    write_strongly(step, sums, rows);
  }

 private:
  __device__ void multiply_values(int step) const {
    GroupSums<value_columns> dv;
    begin_products();
    start_product<device_chunk / 16>(dv, Columns(Memory::scores().memory), own_d_o(), false);
    start_values_of_gradient(step, dv);
    commit_products();
    wait_for_products<0>();
    dv.arrived();
    write_values(step, dv);
  }
  __device__ static void put_d_scores() {
    GroupSums<device_chunk> da;
    begin_products();
    start_product<d_v / 16>(da, Rows(Memory::d_o().memory), Rows(Memory::v().memory), false);
    commit_products();
    wait_for_products<0>();
    da.arrived();
    const int right = da.column() - da.row();
    const GroupPlace<PanelTile<device_chunk>> place;
    da.for_each([&](int n, int half, const float2& x) {
      Memory::d_scores().set_pair(place.at(n, half), kept(x, right + 8 * (n - half), true));
    });
  }

  /// Adds the pairs within the chunk to dq or dk, and writes this gradient and T.
  __device__ void write_strongly(int step, GroupSums<d_k>& sums, const QueryKeyRows& rows) {
    const float s = power_of_2(log2_scale<d_k>);
    const auto at = [&](const HeadRows<const Bf16>& from, int n, int half) {
      const int token = sums.row() + 8 * half;
      return token < from.count ? load_pair(from.row(token) + sums.column() + 8 * n) : float2{0.0F, 0.0F};
    };
    float own[2];
    for (int half = 0; half < 2; ++half)
      own[half] = s * Memory::d_scores().at(sums.row() + 8 * half, sums.row() + 8 * half);
    sums.for_each([&](int n, int half, float2& x) {
      const int token = sums.row() + 8 * half, channel = sums.column() + 8 * n;
      const StrongSum pairs =
          holds_x() ? strong_query_sum(Memory::d_scores(), Memory::gates(step), rows.k, token, channel)
                    : strong_key_sum(Memory::d_scores(), Memory::gates(step), rows.q, token, channel);
      x = (holds_x() ? s : 1.0F) * (decay_of(pairs.decay) * x) + s * pairs.sum;
    });
    Memory::multiplying().wait();
    if (step + 1 < count_) Memory::values_free().arrive();
    const GroupPlace<typename Memory::Terms> term;
    if (holds_x()) Memory::keys_there().wait();
    sums.for_each([&](int n, int half, float2& x) {
      const float2 q = at(rows.q, n, half), k = at(rows.k, n, half);
      const int place = term.at(n, half);
      Memory::terms().set_pair(place, holds_x() ? q * x - Memory::terms().pair(place) : k * x);
      x = x + own[half] * (holds_x() ? k : q);
    });
    if (!holds_x()) {
      Memory::own().wait();
      Memory::keys_there().arrive();
    }
    store_rows(layer_.rows(holds_x() ? x_.out.dq : x_.out.dk, d_k, chunk_of(step)), sums);
  }
};

}  // namespace baton
