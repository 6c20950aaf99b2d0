// SPDX-License-Identifier: Apache-2.0
// Bodies of the left-product blocks, backward; see the header for the algorithm.
#include "sp_methods/kernels/host/left_product/gradients.hpp"

#include "sp_methods/kernels/host/gla/causal_block.hpp"
#include "sp_methods/kernels/host/left_product/tiles.hpp"
#include "sp_methods/kernels/host/parallel_for.hpp"

namespace baton {
namespace {

/// Adds sign * (the suffix sums of terms) to dg and sign * (the whole sum) to edge; terms are used up.
void add_to_gates(float* dg, float* edge, Tile& terms, float sign, const GlaHead& head) {
  const GlaShape& shape = head.shape;
  if (shape.gate_width() == 0) return;
  terms *= sign;
  suffix_sum(terms);
  add_gate_gradient(head_rows(dg, {0, shape.tokens}, head.head, shape.heads, shape.gate_width()), terms);
  matrix_at(edge, head.head, 1, shape.d_k) += terms.row(0);
}

/// One head's queries decayed from the end of an earlier rank, and the gradients of one block's pairs.
class BlockGradients {
 public:
  BlockGradients(const GlaHead& in, const float* between) : in_(in), rows_{0, in.shape.tokens} {
    const GlaShape& shape = in.shape;
    Tile x, factor;
    relative_gates(x, in.g(rows_), -1);
    set_decays(factor, x, 1.0F);
    decay_.setOnes(shape.tokens, shape.d_k);
    if (between != nullptr) decay_.rowwise() = matrix_at(between, in.head, 1, shape.d_k).row(0);
    scale_rows(q_, decay_, factor);
    decay_ = q_;
    q_ = decay_.cwiseProduct(in.q(rows_));
  }

  void add(const GlaGradients& out, float* edge, const KeyBlockGradients& block_out, const float* d_o,
           const KeyBlock& block) {
    const GlaShape& shape = in_.shape;
    const Tokens columns{0, block.tokens};
    dq_.setZero(shape.tokens, shape.d_k);
    add_left_product_gradients({dq_, head_rows(block_out.dk, columns, in_.head, shape.heads, shape.d_k),
                                head_rows(block_out.dv, columns, in_.head, shape.heads, shape.d_v)},
                               q_, head_rows(block.k, columns, in_.head, shape.heads, shape.d_k),
                               head_rows(block.v, columns, in_.head, shape.heads, shape.d_v),
                               head_rows(d_o, rows_, in_.head, shape.heads, shape.d_v), shape.scale());
    dq_.array() *= decay_.array();
    head_rows(out.dq, rows_, in_.head, shape.heads, shape.d_k) += dq_;
    dq_.array() *= in_.q(rows_).array();
    add_to_gates(out.dg, edge, dq_, 1.0F, in_);
  }

 private:
  GlaHead in_;
  Tokens rows_;
  Tile decay_, q_, dq_;
};

}  // namespace

void left_product_own_gradients(const GlaGradients& out, const GlaInputs& in, const float* d_o,
                                const GlaShape& shape, const Work& work) {
  parallel_for(work.heads(shape), work.threads, [&](Index first, Index last) {
    for (Index h = work.first_head + first; h < work.first_head + last; ++h) {
      CausalGradients(out, {in, shape, h}, d_o, shape.chunk).set({0, shape.tokens});
    }
  });
}

void left_product_block_gradients(const GlaGradients& out, float* edge, const KeyBlockGradients& block_out,
                                  const GlaInputs& in, const float* d_o, const KeyBlock& block,
                                  const float* between, const GlaShape& shape, const Work& work) {
  parallel_for(work.heads(shape), work.threads, [&](Index first, Index last) {
    for (Index h = work.first_head + first; h < work.first_head + last; ++h) {
      BlockGradients({in, shape, h}, between).add(out, edge, block_out, d_o, block);
    }
  });
}

void left_product_home_gradients(const GlaGradients& out, float* edge, const KeyBlockGradients& home,
                                 const GlaInputs& in, const GlaShape& shape, const Work& work) {
  const Tokens all{0, shape.tokens};
  parallel_for(work.heads(shape), work.threads, [&](Index first, Index last) {
    Tile x, factor, dk;
    for (Index h = work.first_head + first; h < work.first_head + last; ++h) {
      const GlaHead head{in, shape, h};
      relative_gates(x, head.g(all), shape.tokens - 1);
      set_decays(factor, x, -1.0F);
      scale_rows(dk, head_rows(home.dk, all, h, shape.heads, shape.d_k), factor);
      head_rows(out.dk, all, h, shape.heads, shape.d_k) += dk;
      head_rows(out.dv, all, h, shape.heads, shape.d_v) += head_rows(home.dv, all, h, shape.heads, shape.d_v);
      dk.array() *= head.k(all).array();
      add_to_gates(out.dg, edge, dk, -1.0F, head);
    }
  });
}

void left_product_edge_gradients(float* dg, const float* later, const GlaShape& shape, const Work& work) {
  const Index width = shape.gate_width();
  if (width == 0) return;
  for (Index h = work.first_head; h < work.first_head + work.heads(shape); ++h) {
    auto rows = head_rows(dg, {0, shape.tokens}, h, shape.heads, width);
    const auto sum = matrix_at(later, h, 1, shape.d_k);
    if (width == shape.d_k) {
      rows.rowwise() += sum.row(0);
    } else {
      rows.array() += sum.sum();
    }
  }
}

double left_product_own_gradients_flops(const GlaShape& shape) {
  const auto forward = static_cast<double>(2 * (shape.d_k + shape.d_v));
  const auto backward = static_cast<double>(6 * shape.d_k + 4 * shape.d_v);
  return left_product_own_block_flops(shape) * backward / forward;
}

double left_product_block_gradients_flops(const GlaShape& shape, std::int64_t columns) {
  return shape.rows() * static_cast<double>(columns * (6 * shape.d_k + 4 * shape.d_v));
}

double left_product_home_gradients_flops(const GlaShape& shape) {
  return shape.rows() * static_cast<double>(2 * shape.d_k + shape.d_v);
}

}  // namespace baton
