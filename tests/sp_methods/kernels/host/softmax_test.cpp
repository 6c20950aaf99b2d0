// SPDX-License-Identifier: Apache-2.0
// The softmax blocks and their merge against dense softmax attention, in all layouts and both
// orders of arrival.
//
//   every rank p: out = 0, lse = -inf;  merge every rank's block;  delta;  gradients of every block
//
// Cost: the oracle's, once a problem.
#include "sp_methods/kernels/softmax.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/sp_methods/kernels/gla_problem.hpp"

namespace baton::test {
namespace {

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
  SoftmaxRing(const Tensors& x, const LayerShape& s, int count, Layout layout, const Mask& mask = {})
      : s_(s), mask_(mask), tokens_(s.tokens / count) {
    for (int p = 0; p < count; ++p) {
      const Positions at = Cut{layout, count, tokens_}.positions(p);
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
    SoftmaxShape shape{tokens_, tokens_, s_.heads, s_.d_k, s_.d_v, ranks_[p].positions, ranks_[j].positions};
    shape.mask = mask_;
    return shape;
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
                                     {shape(p, size_t(&other - ranks_.data()))});
  }

  LayerShape s_;
  Mask mask_;
  std::int64_t tokens_;
  std::vector<RankRows> ranks_;
};

TEST(softmax_block, agrees_with_dense_softmax_in_every_layout) {
  for (const LayerShape& shape :
       {LayerShape{192, 2, 32, 48, 64, GateKind::none}, LayerShape{96, 1, 8, 4, 64, GateKind::none},
        LayerShape{768, 2, 64, 64, 64, GateKind::none}}) {
    const Problem problem{shape, Gates::layer, 0.0F, 21};
    const Tensors tensors = draw(problem);
    const auto oracle = softmax_reference(tensors, shape);
    for (const int count : {1, 2, 3, 4, 8}) {
      for (const bool own_first : {true, false}) {
        for (const auto& [name, layout] : {std::pair{"contiguous", Layout::contiguous},
                                           {"zigzag", Layout::zigzag},
                                           {"striped", Layout::striped}})
          expect_close(SoftmaxRing(tensors, shape, count, layout).run(own_first), oracle, problem,
                       std::string("softmax ") + name + ", ranks " + std::to_string(count));
      }
    }
  }
}

/// Of 4 ranks with 16 tokens each. All pairs of ranks have half of their pairs of tokens, with the
/// diagonal where the keys come first.
TEST(softmax_block, striped_tokens_balance_every_block) {
  for (int p = 0; p < 4; ++p)
    for (int j = 0; j < 4; ++j) {
      const SoftmaxShape s{16,
                           16,
                           1,
                           1,
                           1,
                           Cut{Layout::striped, 4, 16}.positions(p),
                           Cut{Layout::striped, 4, 16}.positions(j)};
      EXPECT_EQ(s.visible_pairs(), j <= p ? 16.0 * 17.0 / 2.0 : 16.0 * 15.0 / 2.0);
      EXPECT_EQ(s.q_positions.at(3), p + 12);
    }
}

/// x [tokens, heads, width] with every head `times` times.
std::vector<float> repeated(const std::vector<float>& x, std::int64_t width, int times) {
  std::vector<float> out;
  for (auto row = x.begin(); row != x.end(); row += width)
    for (int i = 0; i < times; ++i) out.insert(out.end(), row, row + width);
  return out;
}

/// out, dq, dk and dv of the second of two ranks over the block of the first one.
Results<float> solved_block(const SoftmaxShape& s, const Tensors& x) {
  const auto count = [](std::int64_t tokens, std::int64_t heads, std::int64_t width) {
    return std::vector<float>(static_cast<size_t>(tokens * heads * width));
  };
  Results<float> out{count(s.q_tokens, s.heads, s.d_v),
                     count(s.q_tokens, s.heads, s.d_k),
                     count(s.k_tokens, s.key_heads(), s.d_k),
                     count(s.k_tokens, s.key_heads(), s.value_width()),
                     {}};
  std::vector<float> lse = count(s.q_tokens, s.heads, 1), delta = lse;
  const SoftmaxInputs<OnHost> in{x.q.data(), x.k.data(), x.v.data()};
  SoftmaxBlock::on_host({.in = in, .out = out.o.data(), .lse = lse.data()}, s);
  SoftmaxDelta::on_host({.d_o = x.d_o.data(), .out = out.o.data(), .delta = delta.data()}, s);
  SoftmaxBlockGradients::on_host({.in = in,
                                  .d_o = x.d_o.data(),
                                  .lse = lse.data(),
                                  .delta = delta.data(),
                                  .dq = out.dq.data(),
                                  .dk = out.dk.data(),
                                  .dv = out.dv.data()},
                                 {s});
  return out;
}

TEST(softmax_block, heads_that_share_keys_do_what_repeated_keys_do) {
  constexpr int shared = 3;
  const SoftmaxShape whole{150, 140, 6, 8, 12, Positions::run(150, 150), Positions::run(0, 140)};
  SoftmaxShape grouped = whole;
  grouped.kv_heads = whole.heads / shared;
  const Tensors all = draw({{150, 6, 8, 12, 64, GateKind::none}, Gates::layer, 0.0F, 23});
  Tensors few = all;
  few.k.resize(static_cast<size_t>(140 * 2 * 8));
  few.v.resize(static_cast<size_t>(140 * 2 * 12));
  Tensors many = few;
  many.k = repeated(few.k, 8, shared);
  many.v = repeated(few.v, 12, shared);
  const Results<float> got = solved_block(grouped, few), expected = solved_block(whole, many);
  EXPECT_EQ(got.o, expected.o);
  EXPECT_EQ(got.dq, expected.dq);
  std::vector<double> dk(got.dk.size()), dv(got.dv.size());
  for (size_t i = 0; i < expected.dk.size(); ++i) dk[i / 8 / shared * 8 + i % 8] += expected.dk[i];
  for (size_t i = 0; i < expected.dv.size(); ++i) dv[i / 12 / shared * 12 + i % 12] += expected.dv[i];
  EXPECT_LT(relative_error(got.dk, dk), 1e-6);
  EXPECT_LT(relative_error(got.dv, dv), 1e-6);
}

TEST(softmax_block, latent_keys_do_what_copies_of_their_first_columns_do) {
  constexpr std::int64_t d_k = 9, d_v = 6, keys = 140;
  const SoftmaxShape apart{150,        keys, 4, d_k, d_v, Positions::run(150, 150), Positions::run(0, keys),
                           Dtype::f32, 2};
  SoftmaxShape latent = apart;
  latent.latent = true;
  Tensors x = draw({{150, 4, d_k, d_v, 64, GateKind::none}, Gates::layer, 0.0F, 24});
  x.k.resize(keys * 2 * d_k);
  Tensors whole = x;
  x.v.clear();
  whole.v.clear();
  for (auto row = x.k.begin(); row != x.k.end(); row += d_k) whole.v.insert(whole.v.end(), row, row + d_v);
  const Results<float> got = solved_block(latent, x), expected = solved_block(apart, whole);
  EXPECT_EQ(got.o, expected.o);
  EXPECT_EQ(got.dq, expected.dq);
  std::vector<double> dk(expected.dk.begin(), expected.dk.end());
  for (size_t i = 0; i < expected.dv.size(); ++i) dk[i / d_v * d_k + i % d_v] += expected.dv[i];
  EXPECT_LT(relative_error(got.dk, dk), 1e-6);
  EXPECT_EQ(SoftmaxBlock::bytes(apart) - SoftmaxBlock::bytes(latent), 4.0 * keys * 2 * d_v);
  EXPECT_EQ(SoftmaxBlock::flops(latent), SoftmaxBlock::flops(apart));
}

TEST(softmax_block, large_scores_do_not_overflow) {
  const Problem problem{{128, 1, 16, 16, 64, GateKind::none}, Gates::layer, 0.0F, 22};
  Tensors tensors = draw(problem);
  for (float& q : tensors.q) q *= 50.0F;
  const auto oracle = softmax_reference(tensors, problem.shape);
  const auto results = SoftmaxRing(tensors, problem.shape, 4, Layout::zigzag).run(true);
  EXPECT_LT(relative_error(results.o, oracle.o), 2e-5);
}

TEST(softmax_block, a_window_as_long_as_the_sequence_gives_the_causal_bits) {
  const Problem problem{{96, 2, 16, 16, 64, GateKind::none}, Gates::layer, 0.0F, 23};
  const Tensors tensors = draw(problem);
  const Layout layout = Layout::contiguous;
  const auto causal = SoftmaxRing(tensors, problem.shape, 3, layout).run(true);
  const auto windowed = SoftmaxRing(tensors, problem.shape, 3, layout, {.window = 96}).run(true);
  EXPECT_EQ(causal.o, windowed.o);
  EXPECT_EQ(causal.dk, windowed.dk);
}

/// 10 queries and 20 keys, d_k 3, d_v 5: 2 heads of keys, and as many of queries or twice as many.
TEST(softmax_block, tensors_have_bytes_of_their_type_and_sums_have_four) {
  for (const std::int64_t heads : {2, 4})
    for (const Dtype dtype : {Dtype::bf16, Dtype::f32}) {
      const SoftmaxShape s{10, 20, heads, 3, 5, Positions::run(20, 20), Positions::run(0, 20), dtype, 2};
      const auto row = static_cast<double>(10 * heads), element = static_cast<double>(bytes_of(dtype));
      const double q = row * 3, out = row * 5, d_o = out, k = 120, v = 200;
      EXPECT_EQ(SoftmaxBlock::bytes(s), element * (q + k + v) + 4 * (out + row));
      EXPECT_EQ(SoftmaxDelta::bytes(s), element * d_o + 4 * (out + row));
      EXPECT_EQ(SoftmaxBlockGradients::bytes({s}),
                element * (q + k + v + d_o) + 4 * (2 * row + 2 * (q + k + v)));
      EXPECT_EQ(MergeSoftmax::bytes(s), 4 * 3 * (out + row));
    }
}

}  // namespace
}  // namespace baton::test
