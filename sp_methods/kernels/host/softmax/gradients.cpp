// SPDX-License-Identifier: Apache-2.0
// Bodies of the backward softmax block; see the header for the algorithm.
#include "sp_methods/kernels/host/softmax/gradients.hpp"

#include "sp_methods/kernels/host/parallel_for.hpp"
#include "sp_methods/kernels/host/softmax/tiles.hpp"

namespace baton {
namespace {

/// Adds one head's gradients, tile by tile.
class HeadGradients {
 public:
  HeadGradients(const SoftmaxGradients& out, const SoftmaxInputs& in, const SoftmaxOutputs& outputs,
                const SoftmaxShape& shape, Index head)
      : out_(out), in_(in), outputs_(outputs), shape_(shape), head_(head) {}

  void add(Tokens rows);

 private:
  auto keys_of(auto* x, Tokens t) const { return head_rows(x, t, head_, shape_.heads, shape_.d_k); }
  auto values_of(auto* x, Tokens t) const { return head_rows(x, t, head_, shape_.heads, shape_.d_v); }

  void add_tile(Tokens rows, Tokens columns) {
    const auto d_o = values_of(outputs_.d_o, rows), k = keys_of(in_.k, columns);
    p_.noalias() = q_ * k.transpose();
    for (Index i = 0; i < rows.count; ++i) {
      const Index n = visible_columns(shape_, rows.first + i, columns);
      exponentiate(p_.row(i), n, outputs_.lse[(rows.first + i) * shape_.heads + head_]);
    }
    values_of(out_.dv, columns).noalias() += p_.transpose() * d_o;
    z_.noalias() = d_o * values_of(in_.v, columns).transpose();
    for (Index i = 0; i < rows.count; ++i) {
      z_.row(i).array() -= outputs_.delta[(rows.first + i) * shape_.heads + head_];
    }
    z_.array() *= p_.array();
    keys_of(out_.dq, rows).noalias() += shape_.scale() * (z_ * k);
    keys_of(out_.dk, columns).noalias() += z_.transpose() * q_;
  }

  const SoftmaxGradients& out_;
  const SoftmaxInputs& in_;
  const SoftmaxOutputs& outputs_;
  const SoftmaxShape& shape_;
  Index head_;
  Tile q_, p_, z_;
};

void HeadGradients::add(Tokens rows) {
  q_ = shape_.scale() * keys_of(in_.q, rows);
  for_visible_tiles(shape_, rows, [&](Tokens columns) { add_tile(rows, columns); });
}

}  // namespace

void softmax_delta(float* delta, const float* d_o, const float* out, const SoftmaxShape& shape, int threads) {
  parallel_for(shape.q_tokens * shape.heads, threads, [&](Index first, Index last) {
    for (Index i = first; i < last; ++i) {
      delta[i] = matrix_at(d_o, i, 1, shape.d_v).cwiseProduct(matrix_at(out, i, 1, shape.d_v)).sum();
    }
  });
}

void softmax_block_gradients(const SoftmaxGradients& out, const SoftmaxInputs& in,
                             const SoftmaxOutputs& outputs, const SoftmaxShape& shape, int threads) {
  parallel_for(shape.heads, threads, [&](Index first, Index last) {
    for (Index h = first; h < last; ++h) {
      HeadGradients gradients(out, in, outputs, shape, h);
      for (Index i = 0; i < query_tiles(shape); ++i) gradients.add(query_tile(shape, i));
    }
  });
}

double softmax_delta_flops(const SoftmaxShape& shape) {
  return 2.0 * static_cast<double>(shape.q_tokens * shape.heads * shape.d_v);
}

double softmax_block_gradients_flops(const SoftmaxShape& shape) {
  return shape.visible_pairs() * static_cast<double>(shape.heads * (6 * shape.d_k + 4 * shape.d_v));
}

double softmax_delta_bytes(const SoftmaxShape& shape, std::int64_t element) {
  const std::int64_t query = element * shape.d_v + 4 * (shape.d_v + 1);
  return static_cast<double>(shape.heads * shape.q_tokens * query);
}

double softmax_block_gradients_bytes(const SoftmaxShape& shape, std::int64_t element) {
  const std::int64_t query = element * (shape.d_k + shape.d_v) + 4 * (2 * shape.d_k + 2);
  const std::int64_t key = (element + 2 * 4) * (shape.d_k + shape.d_v);
  return static_cast<double>(shape.heads * (shape.q_tokens * query + shape.k_tokens * key));
}

}  // namespace baton
