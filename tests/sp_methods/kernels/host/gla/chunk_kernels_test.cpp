// SPDX-License-Identifier: Apache-2.0
// The chunk kernels against the oracle, on one rank and on emulated ranks whose maps are folded by
// hand.
//
//   every rank: chunk_states, intra_output
//   P_p = a_p (.) P_{p-1} + S-_p in order;               inter_output with P_{p-1}
//   every rank: chunk_state_gradients, intra_gradients
//   E_{p-1} = a_p (.) E_p + D-_p in reverse order;       inter_gradients with P_{p-1} and E_p
//
// Cost: the oracle's, once a problem.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "sp_methods/kernels/gla_chunks.hpp"
#include "tests/sp_methods/kernels/gla_problem.hpp"

namespace baton::test {
namespace {

/// The memory of one rank's state pass, and what arrives from other ranks.
struct StateRoom {
  explicit StateRoom(const LayerShape& s)
      : states(size(s.heads * s.chunks() * s.d_k * s.d_v), NAN),
        decays(size(s.heads * s.chunks() * s.d_k), NAN),
        map_decay(size(s.heads * s.d_k), NAN),
        map_state(size(s.heads * s.d_k * s.d_v), NAN) {}

  static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
  /// Points `x` to the part that belongs to the heads of a call.
  template <class Operands>
  void set_outputs(Operands& x, const LayerShape& s, const Work& work) {
    const auto head = work.first_head, edges = head * s.chunks();
    x.states = states.data() + edges * s.d_k * s.d_v;
    x.decays = decays.data() + edges * s.d_k;
    x.map_decay = map_decay.data() + head * s.d_k;
    x.map_state = map_state.data() + head * s.d_k * s.d_v;
  }
  ChunkEdges<OnHost> edges(const LayerShape& s, const Work& work) const {
    const auto head = work.first_head, edges = head * s.chunks();
    return {states.data() + edges * s.d_k * s.d_v, decays.data() + edges * s.d_k,
            incoming.empty() ? nullptr : incoming.data() + head * s.d_k * s.d_v};
  }

  std::vector<float> states, decays, map_decay, map_state;
  std::vector<float> incoming;  // [heads, d_k, d_v]; empty on the outermost rank
};

/// What the next rank receives: this rank's map applied to what it received itself.
std::vector<float> handed_on(const StateRoom& rank, const LayerShape& s) {
  std::vector<float> out = rank.map_state;
  for (std::size_t i = 0; i < out.size() && !rank.incoming.empty(); ++i) {
    out[i] += rank.map_decay[i / static_cast<std::size_t>(s.d_v)] * rank.incoming[i];
  }
  return out;
}

struct Ranks {
  std::vector<RankTokens> tokens;
  std::vector<StateRoom> before, after;
};

/// Head groups: each kernel is called once a group.
using Groups = std::vector<Work>;

Ranks state_passes(const Tensors& tensors, const LayerShape& whole, int count, const Groups& groups) {
  Ranks out;
  for (int p = 0; p < count; ++p) {
    const auto [shape, first] = out.tokens.emplace_back(rank_tokens(whole, p, count));
    const GlaInputs in = tensors.inputs(whole, first);
    const float* d_o = tensors.d_o.data() + first * whole.heads * whole.d_v;
    auto& before = out.before.emplace_back(shape);
    auto& after = out.after.emplace_back(shape);
    for (const Work& work : groups) {
      ChunkStates::Operands<OnHost> states{.in = in};
      before.set_outputs(states, shape, work);
      ChunkStates::on_host(states, {shape, work});
      ChunkStateGradients::Operands<OnHost> gradients{.in = in, .d_o = d_o};
      after.set_outputs(gradients, shape, work);
      ChunkStateGradients::on_host(gradients, {shape, work});
    }
    if (p > 0) before.incoming = handed_on(out.before[size_t(p) - 1], shape);
  }
  for (int p = count - 2; p >= 0; --p) {
    out.after[size_t(p)].incoming = handed_on(out.after[size_t(p) + 1], whole);
  }
  return out;
}

Results<float> run(const Tensors& tensors, const LayerShape& whole, int count,
                   const Groups& groups = {Work{}}) {
  Results<float> out = room(whole);
  const Ranks ranks = state_passes(tensors, whole, count, groups);
  for (size_t p = 0; p < ranks.tokens.size(); ++p) {
    const auto& [shape, first] = ranks.tokens[p];
    const GlaInputs in = tensors.inputs(whole, first);
    float* o = out.o.data() + first * whole.heads * whole.d_v;
    const float* d_o = tensors.d_o.data() + first * whole.heads * whole.d_v;
    const GlaGradients gradients = gradients_at(out, whole, first);
    for (const Work& work : groups) {
      const auto before = ranks.before[p].edges(shape, work), after = ranks.after[p].edges(shape, work);
      IntraOutput::on_host({.in = in, .o = o}, {shape, work});
      InterOutput::on_host({.in = in, .before = before, .o = o}, {shape, work});
      IntraGradients::on_host({.in = in, .d_o = d_o, .out = gradients}, {shape, work});
      InterGradients::on_host({.in = in, .d_o = d_o, .before = before, .after = after, .out = gradients},
                              {shape, work});
    }
  }
  return out;
}

TEST(chunk_kernels, agree_with_the_recurrence_on_any_number_of_ranks) {
  for (const Problem& problem : problems()) {
    const Tensors tensors = draw(problem);
    const auto oracle = reference(tensors, problem.shape);
    for (const int count : {1, 2, 3, 4, 8}) {
      expect_close(run(tensors, problem.shape, count), oracle, problem,
                   "chunk kernels, ranks " + std::to_string(count));
    }
  }
}

TEST(chunk_kernels, solve_a_held_out_problem) {
  for (int i = 0; i < 5; ++i) {
    const Problem problem = held_out();
    std::printf("held out: %s\n", problem.name().c_str());
    const Tensors tensors = draw(problem);
    const auto oracle = reference(tensors, problem.shape);
    for (const int count : {1, 4}) {
      expect_close(run(tensors, problem.shape, count), oracle, problem,
                   "held out, ranks " + std::to_string(count));
    }
  }
}

TEST(chunk_kernels, give_the_same_bits_by_head_groups_and_on_threads) {
  const Problem problem{{150, 5, 16, 24, 32, GateKind::vector}, Gates::layer, 0.0F, 3};
  const Tensors tensors = draw(problem);
  const auto at_once = run(tensors, problem.shape, 2);
  for (const Groups& groups : {Groups{{0, -1, 3}}, Groups{{0, 2, 1}, {2, 3, 2}}}) {
    const auto other = run(tensors, problem.shape, 2, groups);
    EXPECT_EQ(at_once.o, other.o);
    EXPECT_EQ(at_once.dq, other.dq);
    EXPECT_EQ(at_once.dk, other.dk);
    EXPECT_EQ(at_once.dv, other.dv);
    EXPECT_EQ(at_once.dg, other.dg);
  }
}

TEST(chunk_kernels, costs_of_one_chunk_are_those_of_its_products) {
  const LayerShape s{64, 1, 128, 96, 64, GateKind::vector};
  EXPECT_EQ(ChunkStates::flops({s}), 2.0 * 64 * 128 * 96);
  EXPECT_EQ(InterOutput::flops({s}), 2.0 * 64 * 128 * 96);
  EXPECT_EQ(IntraOutput::flops({s}), 2.0 * 64 * 64 * (128 + 96));
  EXPECT_EQ(IntraGradients::flops({s}), 2.0 * 64 * 64 * (3 * 128 + 2 * 96));
  EXPECT_EQ(InterGradients::flops({s}), 6.0 * 64 * 128 * 96);
  LayerShape short_last = s;
  short_last.tokens = 96;
  EXPECT_EQ(IntraOutput::flops({short_last}), 2.0 * (64 * 64 + 32 * 32) * (128 + 96));
}

}  // namespace
}  // namespace baton::test
