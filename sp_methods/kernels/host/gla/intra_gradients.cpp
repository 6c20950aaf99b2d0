// SPDX-License-Identifier: Apache-2.0
// Body of the gradients within chunks: those of causal attention over one chunk at a time.
#include "sp_methods/kernels/host/gla/intra_gradients.hpp"

#include "sp_methods/kernels/host/gla/causal_block.hpp"
#include "sp_methods/kernels/host/parallel_for.hpp"

namespace baton {

void intra_gradients(const GlaGradients& out, const GlaInputs& in, const float* d_o, const GlaShape& shape,
                     const Work& work) {
  const Index chunks = shape.chunks();
  parallel_for(work.heads(shape) * chunks, work.threads, [&](Index first, Index last) {
    for (Index i = first; i < last;) {
      CausalGradients block(out, {in, shape, work.first_head + i / chunks}, d_o, shape.chunk);
      for (const Index stop = std::min(last, (i / chunks + 1) * chunks); i < stop; ++i) {
        block.set(chunk_tokens(shape, i % chunks));
      }
    }
  });
}

double intra_gradients_flops(const GlaShape& shape) {
  return shape.chunk_pairs() * static_cast<double>(shape.heads * (6 * shape.d_k + 4 * shape.d_v));
}

double intra_gradients_bytes(const GlaShape& shape) {
  return 4.0 * shape.rows() * static_cast<double>(4 * shape.d_k + 3 * shape.d_v + 2 * shape.gate_width());
}

}  // namespace baton
