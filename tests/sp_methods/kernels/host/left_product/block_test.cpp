// SPDX-License-Identifier: Apache-2.0
// The left-product blocks against the oracle, on emulated ranks whose blocks go round by hand.
//
//   every rank p: own block, then blocks of ranks p-1, p-2, .. with the decay between growing
//   every rank, last to first: gradients back at home, edges of later ranks summed
//
// Cost: the oracle's, once a problem.
#include "sp_methods/kernels/host/left_product/block.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "sp_methods/kernels/host/left_product/gradients.hpp"
#include "tests/sp_methods/kernels/gla_problem.hpp"

namespace baton::test {
namespace {

/// One rank's travelling block, its gradients, and its edge.
struct RankRoom {
  explicit RankRoom(const GlaShape& s)
      : k(size_t(s.tokens * s.heads * s.d_k)),
        decay(size_t(s.heads * s.d_k)),
        dk(k.size()),
        dv(size_t(s.tokens * s.heads * s.d_v)),
        edge(decay.size()) {}
  KeyBlockGradients gradients() { return {dk.data(), dv.data()}; }
  std::vector<float> k, decay, dk, dv, edge;
};

class Ring {
 public:
  Ring(const Tensors& tensors, const GlaShape& whole, int count)
      : tensors_(tensors), whole_(whole), out_(room(whole)) {
    for (int p = 0; p < count; ++p) {
      tokens_.push_back(rank_tokens(whole, p, count));
      rooms_.emplace_back(tokens_.back().shape);
      left_product_keys(rooms_.back().k.data(), rooms_.back().decay.data(), inputs(size_t(p)),
                        shape(size_t(p)));
    }
  }

  Results<float> run() {
    for (size_t p = 0; p < rooms_.size(); ++p) visit_blocks(p);
    std::vector<float> later(rooms_[0].edge.size(), 0.0F);
    for (size_t p = rooms_.size(); p-- > 0;) {
      RankRoom& home = rooms_[p];
      const GlaGradients out = gradients_at(out_, whole_, tokens_[p].first);
      left_product_home_gradients(out, home.edge.data(), home.gradients(), inputs(p), shape(p));
      left_product_edge_gradients(out.dg, later.data(), shape(p));
      for (size_t i = 0; i < later.size(); ++i) later[i] += home.edge[i];
    }
    return out_;
  }

 private:
  const GlaShape& shape(size_t p) const { return tokens_[p].shape; }
  GlaInputs inputs(size_t p) const { return tensors_.inputs(whole_, tokens_[p].first); }

  void visit_blocks(size_t p) {
    const auto row = tokens_[p].first * whole_.heads;
    float* o = out_.o.data() + row * whole_.d_v;
    const float* d_o = tensors_.d_o.data() + row * whole_.d_v;
    const GlaGradients out = gradients_at(out_, whole_, tokens_[p].first);
    left_product_own_block(o, inputs(p), shape(p));
    left_product_own_gradients(out, inputs(p), d_o, shape(p));
    std::vector<float> between(rooms_[p].decay.size(), 1.0F);
    for (size_t j = p; j-- > 0;) {
      const KeyBlock block{rooms_[j].k.data(), inputs(j).v, shape(j).tokens};
      const float* decay = j + 1 == p ? nullptr : between.data();
      left_product_block(o, inputs(p), block, decay, shape(p));
      left_product_block_gradients(out, rooms_[p].edge.data(), rooms_[j].gradients(), inputs(p), d_o, block,
                                   decay, shape(p));
      extend_decay(between.data(), rooms_[j].decay.data(), whole_);
    }
  }

  const Tensors& tensors_;
  GlaShape whole_;
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
