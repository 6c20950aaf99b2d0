// SPDX-License-Identifier: Apache-2.0
// Launches of the state sweeps: every segment's state from zero in both directions, and the state before
// every chunk.
#include "sp_methods/kernels/device/gla/state_sweep.cuh"

namespace baton {

cudaError_t gla_segment_states(const GlaDeviceCall& call, const GlaDeviceSegments& out,
                               const GlaDeviceInputs& in) {
  return with_constants(call.shape, [&](auto d_k, auto d_v, auto kind) {
    using Sweep = StateSweep<d_k(), d_v(), kind(), Direction::forward>;
    return launch_on_segments(call, Sweep::shared_bytes,
                              segment_states_kernel<d_k(), d_v(), kind(), Direction::forward>, out,
                              SweepInputs{in.k, in.v, in.g});
  });
}

cudaError_t gla_segment_gradients(const GlaDeviceCall& call, const GlaDeviceSegments& out,
                                  const GlaDeviceInputs& in, const Bf16* d_o) {
  return with_constants(call.shape, [&](auto d_k, auto d_v, auto kind) {
    using Sweep = StateSweep<d_k(), d_v(), kind(), Direction::reversed>;
    return launch_on_segments(call, Sweep::shared_bytes,
                              segment_states_kernel<d_k(), d_v(), kind(), Direction::reversed>, out,
                              SweepInputs{in.q, d_o, in.g});
  });
}

cudaError_t gla_chunk_states(const GlaDeviceCall& call, Bf16* states, const GlaDeviceInputs& in,
                             const GlaDeviceEdges& before) {
  return with_constants(call.shape, [&](auto d_k, auto d_v, auto kind) {
    using Sweep = StateSweep<d_k(), d_v(), kind(), Direction::forward>;
    return launch_on_segments(call, Sweep::shared_bytes, chunk_states_kernel<d_k(), d_v(), kind()>, states,
                              before, SweepInputs{in.k, in.v, in.g});
  });
}

}  // namespace baton
