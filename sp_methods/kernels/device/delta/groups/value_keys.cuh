// SPDX-License-Identifier: Apache-2.0
// What the values of a chunk add under a low-rank rule, where tokens write them along keys of their
// own (chunk_record.cuh). Turned, as all products of turned.cuh:
//
//   u~^T += V^T tril_{-1}(r' keys^T)^T     o^T += V^T tril(q' keys^T)^T     X += V^T keys
//
// Under a delta rule there is nothing to add, and no code.
// Cost: tokens (2 d_k + 4 * 64) flop a row of the state and head.
#pragma once

#include "sp_methods/kernels/device/delta/groups/turned.cuh"

namespace baton {

/// The products of one chunk's values with a group's 64 rows; rows of a matrix have none.
template <class Slots, bool has_values = true>
class ValueWrites {
 public:
  static constexpr bool there = Slots::has_keys && has_values;

  __device__ explicit ValueWrites(int step) : step_(step) {
    if constexpr (there) TurnedValues(Slots::values(step)).load(values_);
  }

  // Each starts one product, which adds to what is there.
  __device__ void start_reads(GroupSums<device_chunk>& reads) const {
    if constexpr (there) start(reads, PanelOperand<Along::summed>(Slots::read_values(step_).memory));
  }
  __device__ void start_output(GroupSums<device_chunk>& o) const {
    if constexpr (there) start(o, PanelOperand<Along::summed>(Slots::query_values(step_).memory));
  }
  __device__ void start_state(GroupSums<Slots::key_width>& state) const {
    if constexpr (there) start(state, PanelOperand<Along::outer>(Slots::value_keys(step_).memory));
  }

 private:
  using Along = PanelsAlong;

  template <int columns, class Right>
  __device__ void start(GroupSums<columns>& sums, const Right& right) const {
    start_product<device_chunk / 16>(sums, values_.of, right, true);
  }

  int step_;
  PackedTokens values_;
};

}  // namespace baton
