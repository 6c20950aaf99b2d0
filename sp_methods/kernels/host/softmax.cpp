// SPDX-License-Identifier: Apache-2.0
// Host bodies and costs of the softmax kernels.
//
//   forward, for query tiles, for key tiles that are visible:
//       z = s q k^T;  m' = max(m, rowmax z);  p = e^{z - m'}
//       l = l e^{m - m'} + rowsum p;  o = o e^{m - m'} + p v
//   at the end:  out = o / l,  lse = m + log l
//
// Tiles on the mask's border are computed whole, and what is hidden is set to zero.
// Source: Dao, "FlashAttention-2", 2023, algorithms 1 and 2.
#include "sp_methods/kernels/softmax.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "sp_methods/kernels/host/products.hpp"

namespace baton {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr Index tile_tokens = 128;

/// Calls body(queries) for the query tiles of a rank.
template <class Body>
void for_query_tiles(const SoftmaxShape& shape, const Body& body) {
  for (Index i = 0; i < shape.q_tokens; i += tile_tokens)
    body(Tokens{i, std::min(tile_tokens, shape.q_tokens - i)});
}

/// Calls body(keys) for the key tiles that queries `rows` see, in order.
template <class Body>
void for_visible_tiles(const SoftmaxShape& shape, Tokens rows, const Body& body) {
  const Index visible = shape.visible(rows.first + rows.count - 1);
  for (Index j = shape.hidden(rows.first); j < visible; j += tile_tokens)
    body(Tokens{j, std::min(tile_tokens, visible - j)});
}

/// The columns of a tile of keys that local query i sees.
Tokens visible_columns(const SoftmaxShape& shape, Index i, Tokens columns) {
  const auto inside = [&](Index key) { return std::clamp<Index>(key - columns.first, 0, columns.count); };
  const Index first = inside(shape.hidden(i));
  return {first, inside(shape.visible(i)) - first};
}

/// Rows of one head's values or their gradients, from v or from the first columns of latent keys k.
auto value_rows(auto* k, auto* v, Tokens t, Index head, const SoftmaxShape& shape) {
  const Index width = shape.latent ? shape.d_k : shape.d_v;
  auto rows = head_rows(shape.latent ? k : v, t, head, shape.key_heads(), width);
  return decltype(rows){rows.data(), t.count, shape.d_v, Eigen::OuterStride<>(rows.outerStride())};
}

/// Replaces the `seen` scores z of a row by e^{z - shift}, the others by zero.
void exponentiate(Eigen::Ref<Eigen::RowVectorXf> z, Tokens seen, float shift) {
  z.head(seen.first).setZero();
  auto scores = z.segment(seen.first, seen.count);
  scores = (scores.array() - shift).max(-80.0F).exp();
  z.tail(z.size() - seen.first - seen.count).setZero();
}

/// The online softmax of one tile of queries.
class RunningSoftmax {
 public:
  void start(Index rows, Index d_v) {
    out_.setZero(rows, d_v);
    max_.setConstant(rows, -infinity);
    sum_.setZero(rows);
  }

  /// Adds one key tile with scores `z`, which become its probabilities before normalisation.
  void add(Tile& z, const ConstTileRef& v, const SoftmaxShape& shape, Tokens rows, Tokens columns) {
    for (Index i = 0; i < rows.count; ++i) {
      const Tokens seen = visible_columns(shape, rows.first + i, columns);
      if (seen.count == 0) {
        z.row(i).setZero();
        continue;
      }
      const float max = std::max(max_(i), z.row(i).segment(seen.first, seen.count).maxCoeff());
      const float keep = std::exp(max_(i) - max);
      exponentiate(z.row(i), seen, max);
      max_(i) = max;
      sum_(i) = sum_(i) * keep + z.row(i).sum();
      if (keep != 1.0F) out_.row(i) *= keep;
    }
    add_product(out_, z, v);
  }

  /// Writes the rows of `out`, and lse with `stride` numbers from one row to the next.
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

/// Adds one head's gradients, tile by tile.
class HeadGradients {
 public:
  HeadGradients(const SoftmaxBlockGradients::Operands<OnHost>& x, const SoftmaxShape& shape, Index head)
      : x_(x), shape_(shape), head_(head) {}

  void add(Tokens rows);

 private:
  auto query_rows(auto* x, Tokens t, Index width) const {
    return head_rows(x, t, head_, shape_.heads, width);
  }
  auto key_rows(auto* x, Tokens t, Index width) const {
    return head_rows(x, t, head_ / shape_.group_heads(), shape_.key_heads(), width);
  }

  void add_tile(Tokens rows, Tokens columns) {
    const auto d_o = query_rows(x_.d_o, rows, shape_.d_v), k = key_rows(x_.in.k, columns, shape_.d_k);
    set_product(p_, q_, transposed(k));
    for (Index i = 0; i < rows.count; ++i) {
      const Tokens seen = visible_columns(shape_, rows.first + i, columns);
      exponentiate(p_.row(i), seen, x_.lse[(rows.first + i) * shape_.heads + head_]);
    }
    const Index key_head = head_ / shape_.group_heads();
    add_product(value_rows(x_.dk, x_.dv, columns, key_head, shape_), transposed(p_), d_o);
    set_product(z_, d_o, transposed(value_rows(x_.in.k, x_.in.v, columns, key_head, shape_)));
    for (Index i = 0; i < rows.count; ++i)
      z_.row(i).array() -= x_.delta[(rows.first + i) * shape_.heads + head_];
    z_.array() *= p_.array();
    add_product(query_rows(x_.dq, rows, shape_.d_k), z_, k, shape_.scale());
    add_product(key_rows(x_.dk, columns, shape_.d_k), transposed(z_), q_);
  }

  const SoftmaxBlockGradients::Operands<OnHost>& x_;
  const SoftmaxShape& shape_;
  Index head_;
  Tile q_, p_, z_;
};

void HeadGradients::add(Tokens rows) {
  q_ = shape_.scale() * query_rows(x_.in.q, rows, shape_.d_k);
  for_visible_tiles(shape_, rows, [&](Tokens columns) { add_tile(rows, columns); });
}

/// Number of elements of a tensor with one row of `width` a query and head.
double query_elements(const SoftmaxShape& shape, std::int64_t width) {
  return static_cast<double>(shape.q_tokens * shape.heads * width);
}
/// Number of elements of a tensor with one row of `width` a key that is read and key head.
double key_elements(const SoftmaxShape& shape, std::int64_t width) {
  return static_cast<double>(shape.seen_keys() * shape.key_heads() * width);
}

/// Tokens of positions with stride 1, as two runs of the sequence.
std::array<Tokens, 2> runs_of(const Positions& positions, std::int64_t tokens) {
  const std::int64_t split = std::min(positions.split, tokens);
  return {{{positions.first, split}, {positions.second, tokens - split}}};
}

/// Number of pairs (query, key) of two runs in which the query sees the key.
double pairs_of_runs(const Tokens& queries, const Tokens& keys) {
  const auto pairs_up_to = [count = static_cast<double>(keys.count)](Index ahead) {
    const auto seen = static_cast<double>(std::max<Index>(ahead, 0));
    return seen <= count ? seen * (seen + 1) / 2 : count * (count + 1) / 2 + (seen - count) * count;
  };
  const Index ahead = queries.first - keys.first;
  return pairs_up_to(ahead + queries.count) - pairs_up_to(ahead);
}

}  // namespace

double SoftmaxShape::visible_pairs() const {
  if (mask.kind == MaskKind::full && !mask.starts)
    return static_cast<double>(q_tokens) * static_cast<double>(visible(0));
  double pairs = 0;
  if (q_positions.stride == 1 && k_positions.stride == 1 && !mask.starts) {
    for (const Tokens& queries : runs_of(q_positions, q_tokens))
      for (const Tokens& keys : runs_of(k_positions, k_tokens)) {
        pairs += pairs_of_runs(queries, keys);
        if (mask.has_window()) pairs -= pairs_of_runs({queries.first - mask.window, queries.count}, keys);
      }
    return pairs;
  }
  for (std::int64_t i = 0; i < q_tokens; ++i) pairs += static_cast<double>(visible(i) - hidden(i));
  return pairs;
}

double SoftmaxBlock::flops(const SoftmaxShape& s) {
  return s.visible_pairs() * static_cast<double>(s.heads * 2 * (s.d_k + s.d_v));
}
double SoftmaxBlock::bytes(const SoftmaxShape& s) {
  const std::int64_t element = bytes_of(s.dtype);
  return query_elements(s, element * s.d_k + bytes_of(s.out_dtype) * s.d_v + 4) +
         key_elements(s, element * (s.d_k + s.value_width()));
}
void SoftmaxBlock::on_host(const Operands<OnHost>& x, const SoftmaxShape& shape) {
  Tile q, z;
  RunningSoftmax softmax;
  for (Index head = 0; head < shape.heads; ++head) {
    const Index key_head = head / shape.group_heads();
    for_query_tiles(shape, [&](Tokens rows) {
      q = shape.scale() * head_rows(x.in.q, rows, head, shape.heads, shape.d_k);
      softmax.start(rows.count, shape.d_v);
      for_visible_tiles(shape, rows, [&](Tokens columns) {
        z.noalias() = q * head_rows(x.in.k, columns, key_head, shape.key_heads(), shape.d_k).transpose();
        softmax.add(z, value_rows(x.in.k, x.in.v, columns, key_head, shape), shape, rows, columns);
      });
      softmax.finish(head_rows(x.out, rows, head, shape.heads, shape.d_v),
                     x.lse + rows.first * shape.heads + head, shape.heads);
    });
  }
}

double MergeSoftmax::flops(const SoftmaxShape& s) { return 3.0 * query_elements(s, s.d_v); }
double MergeSoftmax::bytes(const SoftmaxShape& s) {
  return query_elements(s, (2 * 4 + bytes_of(s.out_dtype)) * s.d_v + 3 * 4);
}
void MergeSoftmax::on_host(const Operands<OnHost>& x, const SoftmaxShape& shape) {
  const Index d_v = shape.d_v;
  for (Index i = 0; i < shape.q_tokens * shape.heads; ++i) {
    if (x.block_lse[i] == -infinity) continue;
    Eigen::Map<Eigen::ArrayXf> row(x.out + i * d_v, d_v);
    const Eigen::Map<const Eigen::ArrayXf> block(x.block_out + i * d_v, d_v);
    const float ahead = x.block_lse[i] - x.lse[i];
    row -= (row - block) / (1.0F + std::exp(-ahead));
    x.lse[i] = std::max(x.lse[i], x.block_lse[i]) + std::log1p(std::exp(-std::abs(ahead)));
  }
}

double SoftmaxDelta::flops(const SoftmaxShape& s) { return 2.0 * query_elements(s, s.d_v); }
double SoftmaxDelta::bytes(const SoftmaxShape& s) {
  return query_elements(s, (bytes_of(s.dtype) + bytes_of(s.out_dtype)) * s.d_v + 4);
}
void SoftmaxDelta::on_host(const Operands<OnHost>& x, const SoftmaxShape& shape) {
  for (Index i = 0; i < shape.q_tokens * shape.heads; ++i)
    x.delta[i] = matrix_at(x.d_o, i, 1, shape.d_v).cwiseProduct(matrix_at(x.out, i, 1, shape.d_v)).sum();
}

double SoftmaxBlockGradients::flops(const SoftmaxGradientsShape& s) {
  return s.visible_pairs() * static_cast<double>(s.heads * (6 * s.d_k + 4 * s.d_v));
}
double SoftmaxBlockGradients::bytes(const SoftmaxGradientsShape& s) {
  const std::int64_t element = bytes_of(s.dtype);
  return query_elements(s, element * (s.d_k + s.d_v) + s.dq.bytes() * s.d_k + 2 * 4) +
         key_elements(s, (element + s.keys.bytes()) * (s.d_k + s.value_width()));
}
void SoftmaxBlockGradients::on_host(const Operands<OnHost>& x, const SoftmaxGradientsShape& shape) {
  const Index keys = shape.k_tokens * shape.key_heads();
  if (shape.dq.sets) std::fill_n(x.dq, shape.q_tokens * shape.heads * shape.d_k, 0.0F);
  if (shape.keys.sets) {
    std::fill_n(x.dk, keys * shape.d_k, 0.0F);
    std::fill_n(x.dv, keys * shape.value_width(), 0.0F);
  }
  for (Index head = 0; head < shape.heads; ++head) {
    HeadGradients gradients(x, shape, head);
    for_query_tiles(shape, [&](Tokens rows) { gradients.add(rows); });
  }
}

}  // namespace baton
