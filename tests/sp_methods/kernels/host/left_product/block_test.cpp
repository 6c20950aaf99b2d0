// SPDX-License-Identifier: Apache-2.0
// The left-product kernels against the oracle, on emulated ranks whose blocks circulate by hand.
//
//   every rank p: own block, then blocks of ranks p-1, p-2, .. with the decay between extended
//   every rank, last to first: its returned gradients, and the boundary gate sums of later ranks
//
// Cost: the oracle's, once a problem.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "sp_methods/kernels/left_product.hpp"
#include "tests/sp_methods/kernels/gla_problem.hpp"

namespace baton::test {
namespace {

/// One rank's circulating block, the gradients of that block, and its boundary gate sum.
struct RankRoom {
  explicit RankRoom(const LayerShape& s)
      : k(size_t(s.tokens * s.heads * s.d_k)),
        decay(size_t(s.heads * s.d_k)),
        dk(k.size()),
        dv(size_t(s.tokens * s.heads * s.d_v)),
        boundary_gate_sum(decay.size()) {}
  std::vector<float> k, decay, dk, dv, boundary_gate_sum;
};

class Ring {
 public:
  Ring(const Tensors& tensors, const LayerShape& whole, int count)
      : tensors_(tensors), whole_(whole), out_(room(whole)) {
    for (int p = 0; p < count; ++p) {
      tokens_.push_back(rank_tokens(whole, p, count));
      rooms_.emplace_back(tokens_.back().shape);
      LeftProductKeys::on_host(
          {.in = inputs(size_t(p)), .k = rooms_.back().k.data(), .decay = rooms_.back().decay.data()},
          parameters(size_t(p)));
    }
  }

  Results<float> run() {
    for (size_t p = 0; p < rooms_.size(); ++p) visit_blocks(p);
    std::vector<float> later(rooms_[0].decay.size(), 0.0F);
    for (size_t p = rooms_.size(); p-- > 0;) {
      RankRoom& own = rooms_[p];
      const GlaGradients out = gradients(p);
      LeftProductHomeGradients::on_host({.in = inputs(p),
                                         .out = out,
                                         .boundary_gate_sum = own.boundary_gate_sum.data(),
                                         .returned_dk = own.dk.data(),
                                         .returned_dv = own.dv.data()},
                                        parameters(p));
      if (out.dg != nullptr)
        LeftProductEdgeGradients::on_host({.later = later.data(), .dg = out.dg}, {parameters(p)});
      for (size_t i = 0; i < later.size(); ++i) later[i] += own.boundary_gate_sum[i];
    }
    return out_;
  }

 private:
  LeftProduct parameters(size_t p, size_t block = 0) const {
    return {.shape = tokens_[p].shape, .block_tokens = tokens_[block].shape.tokens};
  }
  GlaInputs inputs(size_t p) const { return tensors_.inputs(whole_, tokens_[p].first); }
  GlaGradients gradients(size_t p) { return gradients_at(out_, whole_, tokens_[p].first); }

  void visit_blocks(size_t p) {
    const auto row = tokens_[p].first * whole_.heads;
    float* o = out_.o.data() + row * whole_.d_v;
    const float* d_o = tensors_.d_o.data() + row * whole_.d_v;
    const GlaGradients out = gradients(p);
    LeftProductOwnBlock::on_host({.in = inputs(p), .o = o}, parameters(p));
    LeftProductOwnGradients::on_host({.in = inputs(p), .d_o = d_o, .out = out}, parameters(p));
    std::vector<float> between(rooms_[p].decay.size(), 1.0F);
    for (size_t j = p; j-- > 0;) {
      RankRoom& other = rooms_[j];
      const KeyBlock<OnHost> block{other.k.data(), inputs(j).v};
      const float* decay = j + 1 == p ? nullptr : between.data();
      LeftProductBlock::on_host({.in = inputs(p), .block = block, .between = decay, .o = o},
                                parameters(p, j));
      LeftProductBlockGradients::on_host({.in = inputs(p),
                                          .d_o = d_o,
                                          .block = block,
                                          .between = decay,
                                          .dq = out.dq,
                                          .dg = out.dg,
                                          .boundary_gate_sum = rooms_[p].boundary_gate_sum.data(),
                                          .block_dk = other.dk.data(),
                                          .block_dv = other.dv.data()},
                                         parameters(p, j));
      ExtendDecay::on_host({.between = between.data(), .decay = other.decay.data()}, parameters(p));
    }
  }

  const Tensors& tensors_;
  LayerShape whole_;
  Results<float> out_;
  std::vector<RankTokens> tokens_;
  std::vector<RankRoom> rooms_;
};

TEST(left_product, agrees_with_the_recurrence_on_any_number_of_ranks) {
  for (const Problem& problem : problems()) {
    const Tensors tensors = draw(problem);
    const auto oracle = reference(tensors, problem.shape);
    for (const int count : {1, 2, 3, 4, 8}) {
      expect_close(Ring(tensors, problem.shape, count).run(), oracle, problem,
                   "left product, ranks " + std::to_string(count));
    }
  }
}

TEST(left_product, solves_a_held_out_problem) {
  for (int i = 0; i < 5; ++i) {
    const Problem problem = held_out();
    std::printf("held out: %s\n", problem.name().c_str());
    const Tensors tensors = draw(problem);
    const auto oracle = reference(tensors, problem.shape);
    expect_close(Ring(tensors, problem.shape, 4).run(), oracle, problem, "held out left product, ranks 4");
  }
}

}  // namespace
}  // namespace baton::test
