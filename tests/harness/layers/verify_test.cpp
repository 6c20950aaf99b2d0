// SPDX-License-Identifier: Apache-2.0
#include "harness/layers/verify.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>

#include "harness/layers/workload.hpp"
#include "harness/process/world.hpp"

namespace {

using namespace baton;

constexpr int ranks = 3;
const LayerShape share{20, 4, 8, 8, 8, GateKind::vector};

/// A method's workload on local ranks, and a way to spoil its outputs before they are compared.
class LayerRun {
 public:
  explicit LayerRun(const std::string& method, Pass pass = Pass::both, const LayerShape& shape = share,
                    Rule rule = Rule::decay, GateDraw gates = GateDraw::mixed)
      : workload_(
            operator_workload(find_method(method), {.share = shape, .rule = rule, .pass = pass}, {gates})),
        schedules_(workload_->build({.ranks = ranks})),
        executor_(find_executor("local").make(ranks)) {
    executor_->prepare(schedules_);
  }

  Comparison compare(
      Oracles& oracles, const std::function<void(Executor&)>& spoil = [](Executor&) {}) {
    workload_->load(*executor_, schedules_, seed_, oracles);
    executor_->run();
    spoil(*executor_);
    return workload_->compare(*executor_, schedules_, seed_, oracles);
  }
  LayerRun& with_seed(std::uint64_t seed) {
    seed_ = seed;
    return *this;
  }
  Slice output(const std::string& name, int rank = 1) const { return schedules_[rank].buffer(name); }

 private:
  std::shared_ptr<const Workload> workload_;
  std::vector<Schedule> schedules_;
  std::unique_ptr<Executor> executor_;
  std::uint64_t seed_ = 5;
};

class LayerVerify : public testing::Test {
 protected:
  World world_{nullptr, nullptr};
  Oracles oracles_{world_.all()};
};

TEST_F(LayerVerify, FindsNothingWrongInAnyMethodOrPass) {
  for (const SpMethod* method : sp_methods())
    for (Pass pass : {Pass::forward, Pass::backward, Pass::both}) {
      if (method->attention == Attention::softmax) continue;
      if (method->unsupported && method->unsupported({.share = share, .pass = pass}, ranks)) continue;
      const Comparison found = LayerRun(method->name, pass).compare(oracles_);
      EXPECT_EQ(found.wrong, 0) << method->name << ": " << found.first;
      EXPECT_EQ(found.tokens, 20);
      EXPECT_EQ(found.heads, (std::vector<std::int64_t>{0, 1, 2, 3})) << "a small layer";
    }
}

TEST_F(LayerVerify, TensorsOfKeysHaveTheHeadsOfKeys) {
  const LayerShape grouped{20, 4, 8, 8, 8, GateKind::none, 2};
  for (const SpMethod* method : sp_methods()) {
    if (method->unsupported && method->unsupported({.share = grouped, .pass = Pass::both}, ranks)) continue;
    LayerRun run(method->name, Pass::both, grouped);
    const std::int64_t tokens = tokens_of(*method, 0, ranks, 20);
    EXPECT_EQ(run.output("dq", 0).count, tokens * 4 * 8);
    EXPECT_EQ(run.output("dk", 0).count, tokens * 2 * 8);
    EXPECT_EQ(run.compare(oracles_).wrong, 0) << method->name;
    const Comparison found = run.compare(oracles_, [&](Executor& executor) {
      executor.write(0, run.output("dk", 0).part(8, 8), std::vector<float>(8, 0.0F));
    });
    EXPECT_EQ(found.first.rfind("rank 0, dk: relative error", 0), 0u) << found.first;
  }
}

TEST_F(LayerVerify, NamesWhatWasNotWrittenAndWhatIsNoNumber) {
  LayerRun run("zeco");
  for (const auto& [value, text] : {std::pair{poison, "rank 1, dk: element 7 was not written"},
                                    std::pair{NAN, "rank 1, dk: element 7 is nan"}}) {
    const Comparison found = run.compare(oracles_, [&, spoiled = value](Executor& executor) {
      executor.write(1, run.output("dk").part(7, 1), {&spoiled, 1});
    });
    EXPECT_EQ(found.wrong, 1);
    EXPECT_EQ(found.first, text);
  }
}

TEST_F(LayerVerify, OneWrongRowIsFoundInF32) {
  LayerRun run("zeco");
  const Comparison found = run.compare(oracles_, [&](Executor& executor) {
    executor.write(1, run.output("o").part(64, 8), std::vector<float>(8, 0.0F));
  });
  EXPECT_EQ(found.wrong, 1);
  EXPECT_NE(found.first.find("rank 1, o: relative error"), std::string::npos) << found.first;
}

/// In layers of so few numbers a tensor of one in ten to a hundred of them cancels to almost
/// nothing.
TEST_F(LayerVerify, ResultsThatCancelAreRight) {
  const LayerShape few{2, 2, 2, 5, 1, GateKind::scalar}, one{1, 1, 16, 16, 1, GateKind::scalar};
  LayerRun ring("ring_attention", Pass::backward, few, Rule::decay, GateDraw::strong);
  LayerRun delta("zeco", Pass::both, one, Rule::delta, GateDraw::strong);
  for (LayerRun* run : {&ring, &delta})
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      const Comparison found = run->with_seed(seed).compare(oracles_);
      EXPECT_EQ(found.wrong, 0) << seed << ": " << found.first;
      EXPECT_LE(found.relative_error, found.tolerance);
    }
}

TEST_F(LayerVerify, FaultsInResultsThatCancelAreSeen) {
  const LayerShape few{2, 2, 2, 5, 1, GateKind::scalar};
  LayerRun run("ring_attention", Pass::backward, few, Rule::decay, GateDraw::strong);
  const Slice slice = run.output("dg");
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Comparison found = run.with_seed(seed).compare(oracles_, [&](Executor& executor) {
      std::vector<float> dg(slice.count);
      executor.read(dg, 1, slice);
      for (float& x : dg) x *= 1.01F;
      executor.write(1, slice, dg);
    });
    EXPECT_EQ(found.wrong, 1) << seed;
  }
}

/// Terms of an unknown size.
double unknown(const std::string&, std::int64_t) { return 0; }

LayerSketch sketch_of(double error, std::size_t at) {
  LayerSketch sketch{.method = "first", .tensors = {{"o", std::vector<double>(4000)}}};
  for (std::size_t i = 0; i < 4000; ++i) sketch.tensors["o"][i] = i % 7 + 1.0;
  sketch.tensors["o"][at] += error;
  return sketch;
}

TEST(LayerSketches, OfTwoMethodsAgreeOrNameTheHead) {
  EXPECT_EQ(compare_sketches(sketch_of(0, 0), sketch_of(0, 0), 1000, 1e-3, unknown).wrong, 0);
  const Comparison found = compare_sketches(sketch_of(5, 4 * 100 + 2), sketch_of(0, 0), 1000, 1e-3, unknown);
  EXPECT_EQ(found.wrong, 1);
  EXPECT_EQ(found.first.rfind("o of head 2: 3.5e-02 from the result of first", 0), 0u) << found.first;
}

TEST(LayerSketches, HeadsCountAsLargeAsTheirTerms) {
  const auto terms = [](double norm) { return [norm](const std::string&, std::int64_t) { return norm; }; };
  EXPECT_EQ(compare_sketches(sketch_of(5, 402), sketch_of(0, 0), 1000, 1e-3, terms(1e2)).wrong, 1);
  EXPECT_EQ(compare_sketches(sketch_of(5, 402), sketch_of(0, 0), 1000, 1e-3, terms(1e5)).wrong, 0);
}

TEST(LayerSketches, HaveAPlaceForEveryTokenWhateverItsRank) {
  const LayerProblem problem{.share = {4, 2, 3, 3, 4, GateKind::none}, .ranks = 2};
  const LayerInputValues values(problem);
  LayerSketch straight, zigzag;
  for (int rank : {0, 1}) {
    for (const auto& [sketch, positions] : {std::pair{&straight, Positions::run(rank * 4, 4)},
                                            std::pair{&zigzag, Cut{Layout::zigzag, 2, 4}.positions(rank)}}) {
      std::vector<float> rows(problem.share.tokens * 2 * 3);
      values.fill("v", positions, 0, rows);
      sketch->begin("o", problem);
      sketch->add("o", 0, rows, problem, positions);
    }
  }
  EXPECT_EQ(straight.tensors, zigzag.tensors);
}

TEST(LayerSketches, AMethodThatDiffersFromTheFirstIsWrongInHeadsThatNobodySolved) {
  // Sketches of all heads are kept by the first method; the second one's differ in a single head.
  LayerSketch first = sketch_of(0, 0), second = first;
  for (std::size_t i = 3; i < 4000; i += 4) second.tensors["o"][i] *= 1.01;
  EXPECT_EQ(compare_sketches(second, first, 1000, 1e-3, unknown).wrong, 1);
}

TEST(OracleWork, DrawsAtLeastOneHeadByTheSeed) {
  const World world(nullptr, nullptr);
  LayerProblem large{.share = {1 << 16, 16, 128, 128, 64, GateKind::vector}, .ranks = 16, .seed = 1};
  const auto one = oracle_work(world.all(), large).heads;
  EXPECT_EQ(one.size(), 1u);
  EXPECT_EQ(one, oracle_work(world.all(), large).heads);
  bool differs = false;
  for (large.seed = 2; large.seed < 10; ++large.seed) differs |= oracle_work(world.all(), large).heads != one;
  EXPECT_TRUE(differs);
}

TEST(OracleWork, HasAHeadThatKeepsAStateUnderADeltaRule) {
  const World world(nullptr, nullptr);
  LayerProblem large{.share = {1 << 16, 16, 128, 128, 64, GateKind::scalar},
                     .ranks = 16,
                     .gates = GateDraw::mixed,
                     .rule = Rule::delta};
  for (large.seed = 1; large.seed < 10; ++large.seed) {
    const auto heads = oracle_work(world.all(), large).heads;
    ASSERT_EQ(heads.size(), 1u);
    EXPECT_EQ(large.kind_of_gate(heads[0]), 0u) << large.seed;
  }
}

TEST(OracleWork, DrawsAllHeadsThatShareKeys) {
  const World world(nullptr, nullptr);
  const LayerProblem large{
      .attention = Attention::softmax, .share = {1 << 16, 16, 128, 128, 64, GateKind::none, 4}, .ranks = 16};
  const auto heads = oracle_work(world.all(), large).heads;
  ASSERT_EQ(heads.size(), 4u);
  EXPECT_EQ(heads[0] % 4, 0);
  EXPECT_EQ(heads[3], heads[0] + 3);
}

TEST(LayerTolerance, GrowsWithTheRanksOnAWireThatRounds) {
  EXPECT_EQ(layer_tolerance(Dtype::f32, 0, 64), 2e-5);
  EXPECT_EQ(layer_tolerance(Dtype::f32, 0, 64, Rule::delta), 1e-5);
  EXPECT_EQ(layer_tolerance(Dtype::bf16, 0, 64), 5e-3);
  EXPECT_EQ(layer_tolerance(Dtype::bf16, 0, 64, Rule::delta), 5e-3);
  EXPECT_EQ(layer_tolerance(Dtype::bf16, 0, 64, Rule::delta, 1), 1.5e-2);
  EXPECT_EQ(layer_tolerance(Dtype::bf16, 0, 64, Rule::low_rank), 6e-3);
  EXPECT_EQ(layer_tolerance(Dtype::f32, 0, 64, Rule::delta, 1), 1e-5);
  const double four = layer_tolerance(Dtype::f32, bf16_roundoff, 4);
  const double sixteen = layer_tolerance(Dtype::f32, bf16_roundoff, 16);
  EXPECT_GT(sixteen, 2 * four) << "as a random walk";
  EXPECT_LT(sixteen, 4 * four) << "as a sum";
}

}  // namespace
