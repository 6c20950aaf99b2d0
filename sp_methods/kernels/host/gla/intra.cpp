// SPDX-License-Identifier: Apache-2.0
// What stays within chunks: it needs no state, so it runs beside the exchange.
//
//   for every head and chunk, A = s tril(Q K^T (.) decays), dA = s tril(dO V^T):
//     O = A V          dV = A^T dO
//     dq_i = sum_j dA_ij k_j e^{b_i - b_j}      dk_j = sum_i dA_ij q_i e^{b_i - b_j}
//     dg_i = sum_{u >= i} (q_u dq_u - k_u dk_u), the diagonal left out of dq and dk here
//
// Cost: 2 chunk (d_k + d_v) flop a token and head forward (a full square a chunk), chunk (6 d_k + 4 d_v) backward; heads
// and chunks independent.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (chunkwise form), differentiated.
#include "sp_methods/kernels/gla_chunks.hpp"
#include "sp_methods/kernels/host/gla/causal_block.hpp"
#include "sp_methods/kernels/host/parallel_for.hpp"

namespace baton {

void IntraOutput::on_host(const Operands<OnHost>& x, const Chunks& p) {
  const GlaShape& shape = p.shape;
  const Index chunks = shape.chunks();
  parallel_for(p.work.heads(shape) * chunks, p.work.threads, [&](Index first, Index last) {
    for (Index i = first; i < last;) {
      const Index head = p.work.first_head + i / chunks;
      CausalOutput block(x.o, {x.in, shape, head}, shape.chunk);
      for (const Index stop = std::min(last, (i / chunks + 1) * chunks); i < stop; ++i) {
        const Tokens t = chunk_tokens(shape, i % chunks);
        head_rows(x.o, t, head, shape.heads, shape.d_v).setZero();
        block.add(t);
      }
    }
  });
}

void IntraGradients::on_host(const Operands<OnHost>& x, const Chunks& p) {
  const GlaShape& shape = p.shape;
  const Index chunks = shape.chunks();
  parallel_for(p.work.heads(shape) * chunks, p.work.threads, [&](Index first, Index last) {
    for (Index i = first; i < last;) {
      CausalGradients block(x.out, {x.in, shape, p.work.first_head + i / chunks}, x.d_o, shape.chunk);
      for (const Index stop = std::min(last, (i / chunks + 1) * chunks); i < stop; ++i) {
        block.set(chunk_tokens(shape, i % chunks));
      }
    }
  });
}

}  // namespace baton
