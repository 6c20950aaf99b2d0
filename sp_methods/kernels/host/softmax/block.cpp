// SPDX-License-Identifier: Apache-2.0
// Bodies of the softmax block and its merge; see the header for the algorithm.
#include "sp_methods/kernels/host/softmax/block.hpp"

#include <limits>

#include "sp_methods/kernels/host/parallel_for.hpp"
#include "sp_methods/kernels/host/softmax/tiles.hpp"

namespace baton {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// The running softmax of one tile of queries.
class RunningSoftmax {
 public:
  void start(Index rows, Index d_v) {
    out_.setZero(rows, d_v);
    max_.setConstant(rows, -infinity);
    sum_.setZero(rows);
  }

  /// Takes in the scores of one key tile; `z` becomes its probabilities before normalisation.
  void add(Tile& z, const ConstTileRef& v, const SoftmaxShape& shape, Tokens rows, Tokens columns) {
    for (Index i = 0; i < rows.count; ++i) {
      const Index n = visible_columns(shape, rows.first + i, columns);
      if (n == 0) {
        z.row(i).setZero();
        continue;
      }
      const float max = std::max(max_(i), z.row(i).head(n).maxCoeff());
      const float keep = std::exp(max_(i) - max);
      exponentiate(z.row(i), n, max);
      max_(i) = max;
      sum_(i) = sum_(i) * keep + z.row(i).sum();
      if (keep != 1.0F) out_.row(i) *= keep;
    }
    out_.noalias() += z * v;
  }

  void finish(TileView out, float* lse, Index stride) const {
    for (Index i = 0; i < out.rows(); ++i) {
      const bool any = sum_(i) > 0.0F;
      out.row(i) = out_.row(i) * (any ? 1.0F / sum_(i) : 0.0F);
      lse[i * stride] = any ? max_(i) + std::log(sum_(i)) : -infinity;
    }
  }

 private:
  Tile out_;
  Eigen::VectorXf max_, sum_;
};

}  // namespace

double SoftmaxShape::visible_pairs() const {
  double pairs = 0;
  for (std::int64_t i = 0; i < q_tokens; ++i) pairs += static_cast<double>(visible(i));
  return pairs;
}

void softmax_block(float* out, float* lse, const SoftmaxInputs& in, const SoftmaxShape& shape, int threads) {
  const Index tiles = query_tiles(shape);
  parallel_for(shape.heads * tiles, threads, [&](Index first, Index last) {
    Tile q, z;
    RunningSoftmax softmax;
    for (Index i = first; i < last; ++i) {
      const Index head = i / tiles;
      const Tokens rows = query_tile(shape, i % tiles);
      q = shape.scale() * head_rows(in.q, rows, head, shape.heads, shape.d_k);
      softmax.start(rows.count, shape.d_v);
      for_visible_tiles(shape, rows, [&](Tokens columns) {
        z.noalias() = q * head_rows(in.k, columns, head, shape.heads, shape.d_k).transpose();
        softmax.add(z, head_rows(in.v, columns, head, shape.heads, shape.d_v), shape, rows, columns);
      });
      softmax.finish(head_rows(out, rows, head, shape.heads, shape.d_v),
                     lse + rows.first * shape.heads + head, shape.heads);
    }
  });
}

void merge_softmax(float* out, float* lse, const float* block_out, const float* block_lse,
                   const SoftmaxShape& shape, int threads) {
  const Index d_v = shape.d_v;
  parallel_for(shape.q_tokens * shape.heads, threads, [&](Index first, Index last) {
    for (Index i = first; i < last; ++i) {
      if (block_lse[i] == -infinity) continue;
      Eigen::Map<Eigen::ArrayXf> row(out + i * d_v, d_v);
      const Eigen::Map<const Eigen::ArrayXf> block(block_out + i * d_v, d_v);
      const float ahead = block_lse[i] - lse[i];
      row -= (row - block) / (1.0F + std::exp(-ahead));
      lse[i] = std::max(lse[i], block_lse[i]) + std::log1p(std::exp(-std::abs(ahead)));
    }
  });
}

double softmax_block_flops(const SoftmaxShape& shape) {
  return 2.0 * shape.visible_pairs() * static_cast<double>(shape.heads * (shape.d_k + shape.d_v));
}

double merge_softmax_flops(const SoftmaxShape& shape) {
  return 3.0 * static_cast<double>(shape.q_tokens * shape.heads * shape.d_v);
}

double softmax_block_bytes(const SoftmaxShape& shape, std::int64_t element) {
  const std::int64_t query = element * shape.d_k + 4 * (shape.d_v + 1);
  const std::int64_t key = element * (shape.d_k + shape.d_v);
  return static_cast<double>(shape.heads * (shape.q_tokens * query + shape.k_tokens * key));
}

double merge_softmax_bytes(const SoftmaxShape& shape) {
  return 4.0 * 3.0 * static_cast<double>(shape.q_tokens * shape.heads * (shape.d_v + 1));
}

}  // namespace baton
