// SPDX-License-Identifier: Apache-2.0
// Schedules of models: blocks share working memory and nothing that is kept, and sharded weights
// are gathered once a pass.
#include "sp_methods/models/stack.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "collectives/executors/nccl/plan.hpp"
#include "collectives/schedule/check.hpp"
#include "sp_methods/models/kernels/gates.hpp"

namespace baton {
namespace {

Stack stack(int layers) {
  Stack stack;
  stack.linear = &find_method("zeco");
  stack.tokens = 32;
  stack.shape.layers.assign(layers, Attention::linear);
  return stack;
}

std::int64_t scratch_bytes(const Stack& stack) { return footprint(build(stack, 0, 2)).scratch; }

TEST(Stack, EveryFurtherBlockAddsWhatItKeepsAlone) {
  const ModelShape shape = stack(1).shape;
  const LinearLayers& of = shape.linear;
  const std::int64_t values = of.heads * of.d_v, keys = of.heads * of.d_k;
  // x of the next layer, q, k, g, v, u, o, t, h, a, b, and the state before the rank.
  const std::int64_t kept =
      32 * (2 * shape.width + 3 * keys + 3 * values + of.gate_rank + 2 * shape.mlp) + keys * of.d_v;
  EXPECT_EQ(scratch_bytes(stack(4)) - scratch_bytes(stack(3)), 4 * kept);
}

TEST(Stack, AForwardPassAloneHasTheMemoryOfOneLayerAndNoGradients) {
  Stack forward = stack(3);
  forward.has_backward = false;
  Stack longer = stack(9);
  longer.has_backward = false;
  EXPECT_EQ(scratch_bytes(longer), scratch_bytes(forward));
  for (const bool has_head : {false, true}) {
    forward.has_head = has_head;
    std::vector<std::string> outputs;
    const Schedule schedule = build(forward, 0, 2);
    for (const Buffer& buffer : schedule.buffers())
      if (buffer.role == Role::output) outputs.push_back(buffer.name);
    EXPECT_EQ(outputs, std::vector<std::string>{has_head ? "losses" : "y"});
  }
}

TEST(Stack, AForwardPassAloneGathersEachLayersShardsOnce) {
  Stack sharded = stack(4);
  sharded.shards_weights = true;
  sharded.has_backward = false;
  const Schedule schedule = build(sharded, 0, 2);
  const auto& regions = schedule.regions();
  EXPECT_EQ(std::count(regions.begin(), regions.end(), "ring_all_gather"), 4);
  EXPECT_EQ(std::count(regions.begin(), regions.end(), "ring_reduce_scatter"), 0);
}

TEST(Stack, AForwardPassAloneLeavesTheTensorsOfTheLastLayerOfEachKind) {
  Stack forward = stack(1);
  forward.softmax = &find_method("ring_attention_softmax");
  forward.shape.layers = {Attention::linear, Attention::linear, Attention::softmax};
  EXPECT_TRUE(forward.leaves_tensors(0));
  forward.has_backward = false;
  EXPECT_FALSE(forward.leaves_tensors(0));
  EXPECT_TRUE(forward.leaves_tensors(1));
  EXPECT_TRUE(forward.leaves_tensors(2));
  EXPECT_EQ(3 * forward.flops_per_token(5), forward.shape.flops_per_token(5, false));
}

TEST(Stack, ShardedWeightsAreGatheredOnceAPassAndNotAgainAtTheTurn) {
  Stack sharded = stack(4);
  sharded.shards_weights = true;
  const Schedule schedule = build(sharded, 0, 2);
  const auto& regions = schedule.regions();
  // Four forward, and backward those of the first two: the last two are still there.
  EXPECT_EQ(std::count(regions.begin(), regions.end(), "ring_all_gather"), 6);
  EXPECT_EQ(std::count(regions.begin(), regions.end(), "ring_reduce_scatter"), 4);
}

TEST(Stack, WeightsOfTheNextLayerTravelBesideThisOnesWork) {
  Stack sharded = stack(3);
  sharded.shards_weights = true;
  sharded.layer.mode = Mode::compute_only;
  const Schedule schedule = build(sharded, 0, 2);
  int gathered = 0, first_product = -1;
  for (int i = 0; i < static_cast<int>(schedule.steps().size()) && first_product < 0; ++i) {
    const Step& step = schedule.steps()[i];
    gathered += step.verb == Verb::recv;
    if (step.verb == Verb::compute) first_product = i;
  }
  EXPECT_EQ(gathered, 2);  // of layers 0 and 1, before any work
  const auto& waits = schedule.steps()[first_product].waits_for;
  EXPECT_TRUE(
      std::all_of(waits.begin(), waits.end(), [](int step) { return step < 3; }));  // of layer 0 alone
}

TEST(Stack, NoStateSharesAGroupOfNcclWithShardedWeights) {
  Stack sharded = stack(3);
  sharded.shards_weights = true;
  const std::vector schedules{build(sharded, 0, 3), build(sharded, 1, 3), build(sharded, 2, 3)};
  const auto groups = nccl_groups(schedules);
  for (int rank = 0; rank < 3; ++rank) {
    std::map<int, std::set<std::string>> regions;
    for (int i = 0; const Step& step : schedules[rank].steps()) {
      if (step.is_message()) regions[groups[rank][i]].insert(schedules[rank].regions()[step.region]);
      ++i;
    }
    for (const auto& [group, names] : regions) EXPECT_EQ(names.size(), 1) << rank << ", group " << group;
  }
}

TEST(Stack, TheWholeSequenceIsRunForwardOnly) {
  Stack whole = stack(2);
  whole.linear = &whole_sequence();
  EXPECT_EQ(unsupported(whole, 2).reason(), "the whole sequence is run forward only");
  whole.has_backward = false;
  EXPECT_FALSE(unsupported(whole, 2));
  whole.layer.mode = Mode::compute_only;
  EXPECT_TRUE(unsupported(whole, 2)) << "other ranks' rows would be missing";
}

TEST(Stack, OnlyTheMixerOfLinearLayersRunsTheWholeSequence) {
  Stack whole = stack(1);
  whole.linear = &whole_sequence();
  whole.has_backward = false;
  whole.layer.dtype = Dtype::bf16;
  const Schedule schedule = build(whole, 1, 4);
  EXPECT_EQ(schedule.buffer("q_0").count, 4 * 32 * whole.shape.linear.heads * whole.shape.linear.d_k);
  EXPECT_EQ(schedule.buffer("u_0").count, 32 * whole.shape.linear.heads * whole.shape.linear.d_v);
  EXPECT_EQ(schedule.buffer("a_0").count, 32 * whole.shape.mlp);
  std::int64_t sent = 0;
  for (const Step& step : schedule.steps())
    if (step.verb == Verb::send) sent += step.reads[0].bytes();
  EXPECT_EQ(sent, 3 * 32 * whole.shape.width * 2);
}

TEST(Stack, RefusesMethodsThatMoveTokensOrKeepOtherHeads) {
  Stack moved = stack(1);
  moved.linear = &find_method("zeco_zigzag");
  EXPECT_NE(unsupported(moved, 2).reason().find("contiguous"), std::string::npos);
  Stack heads = stack(1);
  heads.shape.layers = {Attention::softmax};
  heads.softmax = &find_method("ulysses_softmax");
  EXPECT_NE(unsupported(heads, 2).reason().find("keeps the output"), std::string::npos);
  EXPECT_FALSE(unsupported(stack(1), 2));
  heads.has_backward = false;
  EXPECT_FALSE(unsupported(heads, 2)) << "nothing is kept for a backward pass";
}

TEST(Stack, SlopesOfLightningAttentionAreThoseOfALiBiAndBecomeFlatterFromLayerToLayer) {
  std::vector<float> g(16);
  kernel_of<FixedGates>({.count = 2, .width = 8, .constant = 1}).body({.writes = {g}, .reads = {}});
  for (int i = 0; i < 16; ++i) EXPECT_FLOAT_EQ(g[i], -1.0F / static_cast<float>(2 << (i % 8))) << i;
  Stack lightning = stack(3);
  lightning.shape.linear.form = LinearForm::lightning;
  lightning.shape.linear.gate = GateKind::scalar;
  std::vector<float> factors;
  const Schedule schedule = build(lightning, 0, 1);
  for (const Kernel& kernel : schedule.kernels())
    if (kernel.name == FixedGates::name) factors.push_back(parameters_of<FixedGates>(kernel).constant);
  ASSERT_EQ(factors.size(), 3U);
  EXPECT_NEAR(factors[0], 1, 2e-5);
  EXPECT_NEAR(factors[1], 0.5, 2e-5);
  EXPECT_NEAR(factors[2], 0, 2e-5);
  EXPECT_GT(factors[2], 0) << "the last layer's state fades too";
}

TEST(ModelShape, CountsWeightsAndFlops) {
  ModelShape shape;
  shape.width = 10;
  shape.mlp = 20;
  shape.linear = {.heads = 2, .d_k = 3, .d_v = 5, .gate = GateKind::none, .output_gate = OutputGate::none};
  shape.layers = {Attention::linear};
  shape.vocabulary = 7;
  const std::int64_t matrices = 10 * (6 + 6 + 10) + 10 * 10 + 3 * 10 * 20;
  EXPECT_EQ(shape.parameters(Attention::linear), matrices + 10 + 5 + 10);
  EXPECT_EQ(shape.parameters(true), matrices + 25 + 2 * 70 + 10);
  EXPECT_EQ(shape.flops_per_token(0, false), 6.0 * static_cast<double>(matrices) + 12.0 * 2 * 3 * 5);
}

}  // namespace
}  // namespace baton
