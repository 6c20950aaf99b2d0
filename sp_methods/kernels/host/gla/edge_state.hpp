// SPDX-License-Identifier: Apache-2.0
// The true state at one chunk's edge: what the rank itself brought there plus what other ranks handed in.
//
//   S = states[n] + decays[n] (.) incoming
//
// Cost: 2 d_k d_v flop a chunk and head, nothing at all where nothing came in.
// Source: "ZeCO", arXiv 2507.01004, the local state update after the scan.
#pragma once

#include "sp_methods/kernels/host/gla/chunk_states.hpp"
#include "sp_methods/kernels/host/tiles.hpp"

namespace baton {

/// Whether the state at the edge of chunk n may differ from zero; `first` is the rank's outermost chunk.
inline bool may_hold_state(const EdgeStates& edge, Index n, Index first) {
  return edge.incoming != nullptr || n != first;
}

/// Sets state [d_k, d_v] to the true state at the edge of chunk n of one head.
inline void set_edge_state(Tile& state, const EdgeStates& edge, const GlaShape& shape, Index head, Index n) {
  const Index place = head * shape.chunks() + n;
  const auto local = matrix_at(edge.states, place, shape.d_k, shape.d_v);
  if (edge.incoming == nullptr) {
    state = local;
    return;
  }
  const auto incoming = matrix_at(edge.incoming, head, shape.d_k, shape.d_v);
  const float* decay = edge.decays + place * shape.d_k;
  state.resize(shape.d_k, shape.d_v);
  for (Index i = 0; i < shape.d_k; ++i) state.row(i) = local.row(i) + decay[i] * incoming.row(i);
}

}  // namespace baton
