// SPDX-License-Identifier: Apache-2.0
// The softmax blocks and their merge against dense softmax attention, in both layouts and orders of
// arrival.
//
//   every rank p: out = 0, lse = -inf;  merge every rank's block;  delta;  gradients of every block
//
// Cost: the oracle's, once a problem.
#include <gtest/gtest.h>

#include <cmath>

#include "sp_methods/kernels/ring_contracts.hpp"
#include "tests/sp_methods/kernels/gla_problem.hpp"

namespace baton::test {
namespace {

enum class Layout { contiguous, zigzag };

/// One rank's tensors, gathered from and scattered to global positions.
struct RankRows {
  Positions positions;
  std::vector<float> q, k, v, d_o, out, lse, delta, dq, dk, dv;
};

std::vector<float> gather(const std::vector<float>& x, const Positions& at, std::int64_t tokens,
                          std::int64_t width) {
  std::vector<float> out;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const auto row = x.begin() + at.at(t) * width;
    out.insert(out.end(), row, row + width);
  }
  return out;
}

void scatter(std::vector<float>& x, const std::vector<float>& rows, const Positions& at, std::int64_t width) {
  for (std::int64_t t = 0; t * width < std::ssize(rows); ++t) {
    std::copy_n(rows.begin() + t * width, width, x.begin() + at.at(t) * width);
  }
}

class SoftmaxRing {
 public:
  SoftmaxRing(const Tensors& x, const GlaShape& s, int count, Layout layout)
      : s_(s), tokens_(s.tokens / count) {
    for (int p = 0; p < count; ++p) {
      const Positions at =
          layout == Layout::zigzag ? zigzag_positions(p, count, tokens_) : contiguous_positions(p, tokens_);
      ranks_.push_back({at, gather(x.q, at, tokens_, s.heads * s.d_k),
                        gather(x.k, at, tokens_, s.heads * s.d_k), gather(x.v, at, tokens_, s.heads * s.d_v),
                        gather(x.d_o, at, tokens_, s.heads * s.d_v),
                        std::vector<float>(size_t(tokens_ * s.heads * s.d_v)),
                        std::vector<float>(size_t(tokens_ * s.heads), -INFINITY),
                        std::vector<float>(size_t(tokens_ * s.heads)),
                        std::vector<float>(size_t(tokens_ * s.heads * s.d_k)),
                        std::vector<float>(size_t(tokens_ * s.heads * s.d_k)),
                        std::vector<float>(size_t(tokens_ * s.heads * s.d_v))});
    }
  }

  Results<float> run(bool own_first) {
    for (size_t p = 0; p < ranks_.size(); ++p) {
      forward(p, own_first);
      backward(p);
    }
    Results<float> out = room(s_);
    for (const RankRows& r : ranks_) {
      scatter(out.o, r.out, r.positions, s_.heads * s_.d_v);
      scatter(out.dq, r.dq, r.positions, s_.heads * s_.d_k);
      scatter(out.dk, r.dk, r.positions, s_.heads * s_.d_k);
      scatter(out.dv, r.dv, r.positions, s_.heads * s_.d_v);
    }
    return out;
  }

 private:
  SoftmaxShape shape(size_t p, size_t j) const {
    return {tokens_, tokens_, s_.heads, s_.d_k, s_.d_v, ranks_[p].positions, ranks_[j].positions};
  }

  void forward(size_t p, bool own_first) {
    std::vector<float> out(ranks_[p].out.size(), NAN), lse(ranks_[p].lse.size(), NAN);
    for (size_t hop = 0; hop < ranks_.size(); ++hop) {
      const size_t j = (p + ranks_.size() - hop - (own_first ? 0 : 1)) % ranks_.size();
      SoftmaxBlock::on_host({.in = {ranks_[p].q.data(), ranks_[j].k.data(), ranks_[j].v.data()},
                             .out = out.data(),
                             .lse = lse.data()},
                            shape(p, j));
      MergeSoftmax::on_host({.out = ranks_[p].out.data(),
                             .lse = ranks_[p].lse.data(),
                             .block_out = out.data(),
                             .block_lse = lse.data()},
                            shape(p, j));
    }
  }

  void backward(size_t p) {
    RankRows& r = ranks_[p];
    SoftmaxDelta::on_host({.d_o = r.d_o.data(), .out = r.out.data(), .delta = r.delta.data()}, shape(p, p));
    for (RankRows& other : ranks_)
      SoftmaxBlockGradients::on_host({.in = {r.q.data(), other.k.data(), other.v.data()},
                                      .d_o = r.d_o.data(),
                                      .lse = r.lse.data(),
                                      .delta = r.delta.data(),
                                      .dq = r.dq.data(),
                                      .dk = other.dk.data(),
                                      .dv = other.dv.data()},
                                     shape(p, size_t(&other - ranks_.data())));
  }

  GlaShape s_;
  std::int64_t tokens_;
  std::vector<RankRows> ranks_;
};

TEST(softmax_block, agrees_with_dense_softmax_in_both_layouts) {
  for (const GlaShape& shape :
       {GlaShape{192, 2, 32, 48, 64, GateKind::none}, GlaShape{96, 1, 8, 4, 64, GateKind::none},
        GlaShape{768, 2, 64, 64, 64, GateKind::none}}) {
    const Problem problem{shape, Gates::layer, 0.0F, 21};
    const Tensors tensors = draw(problem);
    const auto oracle = softmax_reference(tensors, shape);
    for (const int count : {1, 2, 3, 4, 8}) {
      for (const bool own_first : {true, false}) {
        expect_close(SoftmaxRing(tensors, shape, count, Layout::contiguous).run(own_first), oracle, problem,
                     "softmax contiguous, ranks " + std::to_string(count));
        expect_close(SoftmaxRing(tensors, shape, count, Layout::zigzag).run(own_first), oracle, problem,
                     "softmax zigzag, ranks " + std::to_string(count));
      }
    }
  }
}

TEST(softmax_block, large_scores_do_not_overflow) {
  const Problem problem{{128, 1, 16, 16, 64, GateKind::none}, Gates::layer, 0.0F, 22};
  Tensors tensors = draw(problem);
  for (float& q : tensors.q) q *= 50.0F;
  const auto oracle = softmax_reference(tensors, problem.shape);
  const auto results = SoftmaxRing(tensors, problem.shape, 4, Layout::zigzag).run(true);
  EXPECT_LT(relative_error(results.o, oracle.o), 2e-5);
}

TEST(softmax_block, visible_pairs_of_all_blocks_are_the_causal_triangle) {
  double pairs = 0;
  for (int p = 0; p < 4; ++p) {
    double of_rank = 0;
    for (int j = 0; j < 4; ++j) {
      of_rank += SoftmaxShape{16, 16, 1, 1, 1, zigzag_positions(p, 4, 16), zigzag_positions(j, 4, 16)}
                     .visible_pairs();
    }
    EXPECT_EQ(of_rank, 64.0 * 65.0 / 2.0 / 4.0);
    pairs += of_rank;
  }
  EXPECT_EQ(pairs, 64.0 * 65.0 / 2.0);
}

/// 10 queries and 20 keys, 2 heads, d_k 3, d_v 5.
TEST(softmax_block, tensors_have_bytes_of_their_type_and_sums_have_four) {
  SoftmaxShape s{10, 20, 2, 3, 5, contiguous_positions(1, 20), contiguous_positions(0, 20)};
  const double q = 60, k = 120, v = 200, out = 100, d_o = 100, row = 20;
  for (const Dtype dtype : {Dtype::bf16, Dtype::f32}) {
    s.dtype = dtype;
    const auto element = static_cast<double>(bytes_of(dtype));
    EXPECT_EQ(SoftmaxBlock::bytes(s), element * (q + k + v) + 4 * (out + row));
    EXPECT_EQ(SoftmaxDelta::bytes(s), element * d_o + 4 * (out + row));
    EXPECT_EQ(SoftmaxBlockGradients::bytes(s), element * (q + k + v + d_o) + 4 * (2 * row + 2 * (q + k + v)));
  }
  EXPECT_EQ(MergeSoftmax::bytes(s), 4 * 3 * (out + row));
}

}  // namespace
}  // namespace baton::test
