// SPDX-License-Identifier: Apache-2.0
// Bodies of the left-product blocks, forward; see the header for the algorithm.
#include "sp_methods/kernels/host/left_product/block.hpp"

#include "sp_methods/kernels/host/gla/causal_block.hpp"
#include "sp_methods/kernels/host/left_product/tiles.hpp"
#include "sp_methods/kernels/host/parallel_for.hpp"

namespace baton {
namespace {

/// Pairs (query, key) of one head's own block as computed: rectangles once, leaves as full squares.
double own_pairs(std::int64_t tokens, std::int64_t leaf) {
  const auto n = static_cast<double>(tokens);
  if (tokens <= leaf) return n * n;
  const auto low = tokens / 2;
  return static_cast<double>(low) * (n - static_cast<double>(low)) + own_pairs(low, leaf) +
         own_pairs(tokens - low, leaf);
}

}  // namespace

void left_product_keys(float* k, float* decay, const GlaInputs& in, const GlaShape& shape, const Work& work) {
  const Tokens all{0, shape.tokens};
  parallel_for(work.heads(shape), work.threads, [&](Index first, Index last) {
    Tile x, factor, scaled;
    Eigen::ArrayXd total(shape.d_k);
    for (Index h = work.first_head + first; h < work.first_head + last; ++h) {
      const GlaHead head{in, shape, h};
      relative_gates(x, head.g(all), shape.tokens - 1);
      set_decays(factor, x, -1.0F);
      scale_rows(scaled, head.k(all), factor);
      head_rows(k, all, h, shape.heads, shape.d_k) = scaled;
      add_total_gate(total.setZero(), head.g(all));
      Eigen::Map<Eigen::ArrayXf>(decay + h * shape.d_k, shape.d_k) = decay_of(total);
    }
  });
}

void left_product_own_block(float* o, const GlaInputs& in, const GlaShape& shape, const Work& work) {
  const Tokens all{0, shape.tokens};
  parallel_for(work.heads(shape), work.threads, [&](Index first, Index last) {
    for (Index h = work.first_head + first; h < work.first_head + last; ++h) {
      head_rows(o, all, h, shape.heads, shape.d_v).setZero();
      CausalOutput(o, {in, shape, h}, shape.chunk).add(all);
    }
  });
}

void left_product_block(float* o, const GlaInputs& in, const KeyBlock& block, const float* between,
                        const GlaShape& shape, const Work& work) {
  const Tokens rows{0, shape.tokens}, columns{0, block.tokens};
  parallel_for(work.heads(shape), work.threads, [&](Index first, Index last) {
    Tile x, factor, q;
    for (Index h = work.first_head + first; h < work.first_head + last; ++h) {
      const GlaHead head{in, shape, h};
      relative_gates(x, head.g(rows), -1);
      set_decays(factor, x, 1.0F);
      scale_rows(q, head.q(rows), factor);
      if (between != nullptr) q.array().rowwise() *= matrix_at(between, h, 1, shape.d_k).row(0).array();
      add_left_product(head_rows(o, rows, h, shape.heads, shape.d_v), q,
                       head_rows(block.k, columns, h, shape.heads, shape.d_k),
                       head_rows(block.v, columns, h, shape.heads, shape.d_v), shape.scale());
    }
  });
}

void extend_decay(float* between, const float* decay, const GlaShape& shape, const Work& work) {
  const Index first = work.first_head * shape.d_k, count = work.heads(shape) * shape.d_k;
  Eigen::Map<Eigen::ArrayXf>(between + first, count) *=
      Eigen::Map<const Eigen::ArrayXf>(decay + first, count);
}

double left_product_own_block_flops(const GlaShape& shape) {
  return 2.0 * own_pairs(shape.tokens, shape.chunk) *
         static_cast<double>(shape.heads * (shape.d_k + shape.d_v));
}

double left_product_block_flops(const GlaShape& shape, std::int64_t columns) {
  return 2.0 * shape.rows() * static_cast<double>(columns * (shape.d_k + shape.d_v));
}

double left_product_keys_flops(const GlaShape& shape) {
  return shape.rows() * static_cast<double>(shape.d_k);
}

}  // namespace baton
