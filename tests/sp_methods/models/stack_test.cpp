// SPDX-License-Identifier: Apache-2.0
// Schedules of models: blocks share working memory and nothing that is kept, and sharded weights
// are gathered once a pass.
#include "sp_methods/models/stack.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "collectives/executors/nccl/plan.hpp"
#include "collectives/schedule/check.hpp"
#include "sp_methods/models/kernels/gates.hpp"
#include "sp_methods/models/kernels/state_space.hpp"

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

Stack mamba(const char* method) {
  Stack mamba = stack(2);
  mamba.linear = &find_method(method);
  mamba.shape.linear = {.form = LinearForm::mamba,
                        .heads = 4,
                        .qk_heads = 2,
                        .gate = GateKind::scalar,
                        .gate_rank = 0,
                        .conv = 4};
  return mamba;
}

TEST(Stack, StepsOfMamba2ScaleValuesAndDAddsThemToTheOutput) {
  // softplus of log(e - 1) is 1, and of log(e^2 - 1) it is 2.
  const float one = std::log(std::expm1(1.0F)), two = std::log(std::expm1(2.0F));
  const StepRows p{.tokens = 1, .heads = 2, .width = 2, .factor = 3};
  std::vector<float> x{1, 2, 3, 4}, z{one, two - 5}, bias{0, 5}, v(4), skip{10, 100}, o{1, 1, 1, 1};
  kernel_of<ScaleHeads>(p).body({.writes = {v}, .reads = {x, z, bias, {}}});
  const std::vector<float> stepped{3, 6, 18, 24};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(v[i], stepped[i], 1e-5) << i;
  kernel_of<ScaleHeads>(p).body({.writes = {o}, .reads = {x, {}, skip, o}});
  EXPECT_EQ(o, (std::vector<float>{31, 61, 901, 1201}));
  std::vector<float> d_v{1, 1, 0, 2}, d_o{1, 0, 1, 0}, d_x(4), d_delta(2), d_skip(2);
  kernel_of<StepGradients>(p).body({.writes = {d_x, d_delta, d_skip}, .reads = {x, z, bias, skip, d_v, d_o}});
  const std::vector<float> of_x{13, 3, 100, 12};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(d_x[i], of_x[i], 1e-4) << i;
  EXPECT_EQ(d_delta, (std::vector<float>{9, 24}));
  EXPECT_EQ(d_skip, (std::vector<float>{1, 3}));
}

TEST(Stack, BlocksOfMamba2ExchangeRowsBesideTheirMethod) {
  EXPECT_FALSE(unsupported(mamba("ulysses"), 2)) << "whose gradients of the convolution are not its own";
  EXPECT_FALSE(unsupported(mamba("lasp1_as_released"), 3));
  EXPECT_EQ(claimed_bytes(mamba("zeco"), {.ranks = 2}), std::nullopt);
  Stack forward = mamba("zeco");
  forward.has_backward = false;
  std::int64_t sent = 0;
  const Schedule schedule = build(forward, 0, 2);
  for (const Step& step : schedule.steps())
    if (step.verb == Verb::send) sent += step.reads[0].count;
  const LinearLayers& of = forward.shape.linear;
  const std::int64_t halo = 3 * (2 * of.qk_heads * of.d_k + of.heads * of.d_v);
  EXPECT_EQ(sent, 2 * (halo + of.heads * of.d_k * of.d_v));
}

TEST(Stack, NormsOfGroupsDivideEachByItsOwnRoot) {
  std::vector<float> x{3, 4, 0.3F, 0.4F}, weight{1, 2, 10, 20}, y(4);
  kernel_of<RmsNorm>({.count = 1, .width = 4, .groups = 2}).body({.writes = {y}, .reads = {x, weight}});
  const float root = std::sqrt(12.5F);
  const std::vector<float> right{3 / root, 8 / root, 30 / root, 80 / root};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(y[i], right[i], 1e-5) << i;
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
