// SPDX-License-Identifier: Apache-2.0
// Body of the output within chunks: causal attention over one chunk at a time.
#include "sp_methods/kernels/host/gla/intra_output.hpp"

#include "sp_methods/kernels/host/gla/causal_block.hpp"
#include "sp_methods/kernels/host/parallel_for.hpp"

namespace baton {

void intra_output(float* o, const GlaInputs& in, const GlaShape& shape, const Work& work) {
  const Index chunks = shape.chunks();
  parallel_for(work.heads(shape) * chunks, work.threads, [&](Index first, Index last) {
    for (Index i = first; i < last;) {
      const Index head = work.first_head + i / chunks;
      CausalOutput block(o, {in, shape, head}, shape.chunk);
      for (const Index stop = std::min(last, (i / chunks + 1) * chunks); i < stop; ++i) {
        const Tokens t = chunk_tokens(shape, i % chunks);
        head_rows(o, t, head, shape.heads, shape.d_v).setZero();
        block.add(t);
      }
    }
  });
}

double intra_output_flops(const GlaShape& shape) {
  return 2.0 * shape.chunk_pairs() * static_cast<double>(shape.heads * (shape.d_k + shape.d_v));
}

double intra_output_bytes(const GlaShape& shape) {
  return 4.0 * shape.rows() * static_cast<double>(2 * shape.d_k + 2 * shape.d_v + shape.gate_width());
}

}  // namespace baton
