// SPDX-License-Identifier: Apache-2.0
// Body of the output from states before each chunk; see the header for the algorithm.
#include "sp_methods/kernels/host/gla/inter_output.hpp"

#include "sp_methods/kernels/host/gla/edge_state.hpp"
#include "sp_methods/kernels/host/gla/gates.hpp"
#include "sp_methods/kernels/host/parallel_for.hpp"

namespace baton {

void inter_output(float* o, const GlaInputs& in, const EdgeStates& before, const GlaShape& shape,
                  const Work& work) {
  const Index chunks = shape.chunks();
  parallel_for(work.heads(shape) * chunks, work.threads, [&](Index first, Index last) {
    Tile x, decay, q, state;
    for (Index i = first; i < last; ++i) {
      const GlaHead head{in, shape, work.first_head + i / chunks};
      const Index n = i % chunks;
      if (!may_hold_state(before, n, 0)) continue;
      const Tokens t = chunk_tokens(shape, n);
      relative_gates(x, head.g(t), -1);
      set_decays(decay, x, 1.0F);
      scale_rows(q, head.q(t), decay);
      set_edge_state(state, before, shape, i / chunks, n);
      head_rows(o, t, head.head, shape.heads, shape.d_v).noalias() += shape.scale() * (q * state);
    }
  });
}

double inter_output_flops(const GlaShape& shape) {
  return 2.0 * static_cast<double>(shape.tokens) * shape.state_elements();
}

double inter_output_bytes(const GlaShape& shape) {
  const auto row = static_cast<double>(shape.d_k + shape.gate_width() + 2 * shape.d_v);
  const auto edges = static_cast<double>(shape.chunks()) *
                     (shape.state_elements() + static_cast<double>(shape.heads * shape.d_k));
  return 4.0 * (shape.rows() * row + edges + shape.state_elements());
}

}  // namespace baton
