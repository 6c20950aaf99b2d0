// SPDX-License-Identifier: Apache-2.0
// Every registered method against the double-precision recurrence over the whole sequence: each
// pass, mode and gate kind, several rank counts, scans and head groups. What takes packed documents
// has some, what has softmax attention runs without a causal mask too, and what knows a rule with
// matrices runs all of it under that rule too.
// States come in and go out in three of four problems that may have them.
//
//   every_method_test local|mpi [GoogleTest's flags]
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "collectives/collective.hpp"
#include "collectives/schedule/check.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/cases/case.hpp"
#include "harness/layers/draw.hpp"
#include "harness/layers/verify.hpp"
#include "sp_methods/layer_oracle.hpp"
#include "tests/held_out_seed.hpp"
#include "tests/launched_tests.hpp"
#include "tests/sp_methods/method_problems.hpp"

namespace {

using namespace baton;
using namespace baton::test;

/// The oracle of a layer, which methods, passes and modes share.
const LayerOracle& oracle_of(const LayerProblem& problem) {
  static std::map<std::string, LayerOracle> solved;
  if (solved.size() == 2000) solved.clear();  // 10,000 took 860 MB
  return solved.try_emplace(oracle_key(problem), problem).first->second;
}

/// Fills the inputs of this process's ranks, poisons the outputs, runs twice and compares.
class EveryMethod : public testing::Test {
 public:
  EveryMethod(ExecutorsUnderTest& executors, Problem problem)
      : executors_(executors), problem_(std::move(problem)) {}

  void TestBody() override {
    const auto& [method, layer, ranks, gates, seed] = problem_;
    if (!executors_.have(ranks)) GTEST_SKIP() << "too few ranks were launched";
    const Team& team = executors_.team(ranks);
    if (!team.is_member()) return;
    if (const Refusal refusal = method->unsupported(layer, ranks)) GTEST_SKIP() << refusal.reason();
    const auto schedules = build_all(*method, layer, ranks);
    ASSERT_NO_THROW(check(method->name, schedules));
    Executor& executor = executors_.on(ranks);
    if (const Refusal refusal = executor.unsupported(schedules)) {
      // Only on a device may a kernel have no body; only a native may be at home on one executor
      // alone.
      ASSERT_TRUE(executor.device() != nullptr || implementation_of(schedules) != "schedule")
          << refusal.reason();
      GTEST_SKIP() << refusal.reason();
    }
    executor.prepare(schedules);
    for (int round = 0; round < 2; ++round) {  // each with inputs of its own
      const LayerOracle& oracle =
          oracle_of({method->attention, layer.share, ranks, problem_.is_alone(), gates, seed + round,
                     layer.dtype, layer.rule, layer.starts, layer.segmented, layer.mask, layer.states});
      write_layer(executor, schedules, *method, oracle);
      executor.synchronise();
      executor.run();
      const Comparison comparison = compare_layer(executor, schedules, *method, oracle);
      EXPECT_EQ(team.sum(comparison.wrong), 0) << team.first(comparison.first);
    }
  }

 private:
  ExecutorsUnderTest& executors_;
  Problem problem_;
};

/// d_k != d_v; one head and a chunk that does not divide the tokens; one chunk a rank. Heads of
/// softmax attention share keys two by two, or all of them, and these may be latent.
std::vector<LayerShape> shapes(Attention attention, GateKind gate) {
  std::vector<LayerShape> all{{24, 2, 8, 12, 8, gate}, {22, 1, 12, 4, 8, gate}, {10, 4, 4, 8, 16, gate}};
  if (attention == Attention::linear) return all;
  for (const std::int64_t kv_heads : {4, 1}) all.push_back({20, 8, 4, 6, 8, gate, kv_heads});
  all.push_back({18, 8, 7, 5, 8, gate, 1, true});
  return all;
}

Problem held_out(const SpMethod& method, bool latent = false) {
  Problem problem{.method = &method, .layer = {}, .ranks = 3, .seed = held_out_seed()};
  std::mt19937_64 random(problem.seed);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  problem.layer.share = {2 * pick(1, 40), pick(1, 4),  pick(1, 40),
                         pick(1, 40),     pick(1, 70), GateKind{pick(0, 2)}};
  if (method.attention == Attention::softmax) {
    problem.layer.share.gate = GateKind::none;
    problem.layer.share.kv_heads = problem.layer.share.heads;
    problem.layer.share.heads *= pick(1, 3);
  }
  if (latent) {
    problem.layer.share.latent = true;
    problem.layer.share.kv_heads = 1;
    problem.layer.share.d_k += problem.layer.share.d_v;
  }
  problem.layer.pass = Pass::both;
  problem.gates = pick(0, 1) == 0 ? GateDraw::layer : GateDraw::strong;
  return problem;
}

/// Packed documents of a few tokens, and of more than a rank has: starts lie within chunks, at a
/// rank's border, or nowhere in a rank.
void add_packed(std::vector<Problem>& all, const SpMethod& method, int ranks) {
  if (!method.packs) return;
  for (const std::int64_t mean : {4, 30})
    for (GateKind gate : {GateKind::vector, GateKind::scalar, GateKind::none})
      for (const bool segmented : {false, true}) {
        if (segmented && gate == GateKind::none) continue;
        const std::size_t first = all.size();
        add_variants(all, method, {24, 2, 8, 12, 8, gate}, ranks, segmented);
        for (std::size_t i = first; i < all.size(); ++i)
          all[i].layer.starts = drawn_starts(mean, 24, ranks, 10 + i);
      }
}

/// Head groups, and every exclusive scan in the place of the method's own. Softmax methods have no
/// scans, and grids of ranks, which need 4 of them.
void add_choices(std::vector<Problem>& all, const SpMethod& method) {
  const bool has_gates = method.attention == Attention::linear;
  const int ranks = has_gates ? 3 : 4;
  const GateKind gate = has_gates ? GateKind::vector : GateKind::none;
  const Layer layer{.share = {12, 4, 6, 8, 8, gate}, .pass = Pass::both, .blocks = 3};
  for (int groups : {2, 4, 1, -2}) {  // below 2 in segments
    if (groups < 2 && !has_gates) return;
    all.push_back({&method, layer, ranks});
    all.back().layer.groups = std::abs(groups);
    all.back().layer.segmented = groups < 2;
  }
  if (method.scan.empty()) return;
  for (const Collective* scan : collectives()) {
    if (scan->kind != Kind::exclusive_scan) continue;
    for (const bool is_packed : {false, method.packs}) {
      all.push_back(is_packed ? Problem(all.back()) : Problem{&method, layer, ranks});
      all.back().layer.scan = scan->name;
      if (is_packed) all.back().layer.starts = drawn_starts(10, layer.share.tokens, ranks, 3);
    }
  }
}

/// Sizes from which on a loop, a buffer or a pipeline does something else: more than 20 heads and
/// 16 full blocks, more than 4096 tokens, several chunks in each of two segments.
void add_large(std::vector<Problem>& all, const SpMethod& method) {
  const bool has_gates = method.attention == Attention::linear;
  const GateKind gate = has_gates ? GateKind::vector : GateKind::none;
  const Layer heads{.share = {12, 22, 4, 6, 4, gate}, .pass = Pass::both, .blocks = 16};
  const Layer tokens{.share = {4100, 1, 4, 4, 64, gate}, .pass = Pass::both};
  Layer segments{.share = {40, 2, 4, 6, 4, gate}, .pass = Pass::both, .segmented = has_gates};
  segments.kernels.blocks = 4;
  for (const Layer& layer : {heads, tokens, segments}) all.push_back({&method, layer, 2});
}

/// What a device has kernels for: bf16, in segments, d_k and d_v of 64 and 128, a short last chunk.
/// Every pass and mode on one shape, both passes on the others: a problem takes a tenth of a second
/// to solve in double precision.
void add_device_problems(std::vector<Problem>& all, const SpMethod& method) {
  const bool has_gates = method.attention == Attention::linear;
  for (int ranks : {1, 2, 4})
    for (GateKind gate : {GateKind::vector, GateKind::scalar, GateKind::none})
      for (const LayerShape& shape :
           {LayerShape{200, 2, 64, 128, 64, gate}, LayerShape{150, 3, 128, 64, 64, gate}}) {
        if (!has_gates && gate != GateKind::none) continue;
        const std::size_t first = all.size();
        if (gate == (has_gates ? GateKind::vector : GateKind::none) && shape.d_k == 64)
          add_variants(all, method, shape, ranks, true);
        else
          all.push_back(
              {&method, {.share = shape, .pass = Pass::both, .segmented = true}, ranks, GateDraw::strong});
        for (std::size_t i = first; i < all.size(); ++i) all[i].layer.dtype = Dtype::bf16;
        if (!method.packs || gate == GateKind::none) continue;
        all.push_back(all.back());
        all.back().layer.starts = drawn_starts(40, shape.tokens, ranks, all.size());
      }
  Problem random = held_out(method);
  random.layer.dtype = Dtype::bf16;
  random.layer.segmented = true;
  random.layer.share = {random.layer.share.tokens * 8, 4, 128, 128, 64, random.layer.share.gate};
  random.layer.groups = method.scan.empty() ? 1 : 2;
  random.layer.kernels.blocks = 8;  // several chunks in a segment
  all.push_back(random);
}

/// The problems in f32 of a method that knows a rule with matrices, under it; on one process at all
/// rank counts. Gates as a layer makes them would hide a wrong matrix. A low-rank layer has a gate
/// for each channel.
std::vector<Problem> under_rule(Rule rule, const SpMethod& method, std::vector<Problem> all, bool is_local) {
  if (std::find(method.rules.begin(), method.rules.end(), rule) == method.rules.end()) return {};
  for (int ranks : {5, 6, 7})
    for (GateKind gate : {GateKind::vector, GateKind::scalar, GateKind::none})
      if (is_local) add_variants(all, method, {24, 2, 8, 12, 8, gate}, ranks, false);
  std::erase_if(all, [rule](const Problem& problem) {
    return problem.layer.segmented || problem.layer.dtype != Dtype::f32 ||
           (rule == Rule::low_rank && problem.layer.share.gate != GateKind::vector);
  });
  for (Problem& problem : all) {
    problem.layer.rule = rule;
    if (problem.gates == GateDraw::layer) problem.gates = GateDraw::mixed;
  }
  return all;
}

/// Gives a method that shares heads among ranks as many as that takes, and states if it takes them.
void fit(Problem& problem, States states) {
  const auto takes = [&](const Layer& one) { return !problem.method->unsupported(one, problem.ranks); };
  Layer more = problem.layer;
  more.share.heads *= problem.ranks;
  more.share.kv_heads *= problem.ranks;
  if (!takes(problem.layer) && takes(more)) problem.layer = more;
  more = problem.layer;
  more.states = states;
  if (takes(more)) problem.layer = more;
}

std::vector<Problem> problems(const std::string& executor) {
  const bool is_local = !find_executor(executor).process_per_rank;
  const bool is_on_devices = executor == "nccl" || executor == "peer";
  std::vector<Problem> of_all;
  for (const SpMethod* method : sp_methods()) {
    std::vector<Problem> all;
    for (int ranks : is_local ? std::vector{1, 2, 3, 4, 8} : std::vector{1, 2, 3, 4})
      for (GateKind gate : {GateKind::vector, GateKind::scalar, GateKind::none})
        for (const LayerShape& shape : shapes(method->attention, gate))
          for (bool segmented : {false, true})
            if (!segmented || method->attention == Attention::linear)
              add_variants(all, *method, shape, ranks, segmented);
    for (int ranks : {1, 2, 3, 4}) {
      add_packed(all, *method, ranks);
      add_masks(all, *method, ranks);
      add_padded(all, *method, ranks);
    }
    if (is_on_devices) add_device_problems(all, *method);
    // A native runs where its executor is.
    if (!is_local) add_choices(all, *method);
    add_large(all, *method);
    all.push_back(held_out(*method));
    if (method->attention == Attention::softmax) all.push_back(held_out(*method, true));
    of_all.insert(of_all.end(), all.begin(), all.end());
    for (const Rule rule : {Rule::delta, Rule::low_rank}) {
      if (is_on_devices) continue;
      const auto under = under_rule(rule, *method, all, is_local);
      of_all.insert(of_all.end(), under.begin(), under.end());
    }
  }
  for (std::size_t i = 0; i < of_all.size(); ++i) fit(of_all[i], States(i % 4));
  return of_all;
}

}  // namespace

int main(int argc, char** argv) {
  return launched_tests(argc, argv, [](ExecutorsUnderTest& executors) {
    if (executors.world().rank() == 0) fmt::print("held-out seed {}\n", held_out_seed());
    for (const Problem& problem : problems(executors.name()))
      testing::RegisterTest(
          problem.method->name.c_str(), problem.name().c_str(), nullptr, nullptr, __FILE__, __LINE__,
          [&executors, problem]() -> testing::Test* { return new EveryMethod(executors, problem); });
  });
}
