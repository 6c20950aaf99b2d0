// SPDX-License-Identifier: Apache-2.0
// The device bodies under a low-rank rule against the token recurrence in double precision, in the
// way of the test of delta rules (delta/comparison.cuh).
//
// Cost: the oracle's, on as many threads as there are problems.
#include <gtest/gtest.h>

#include <future>
#include <vector>

#include "collectives/executors/cuda/ranks.cuh"
#include "tests/sp_methods/kernels/device/delta/comparison.cuh"
#include "tests/sp_methods/kernels/device/low_rank/layer_rank.cuh"
#include "tests/sp_methods/kernels/low_rank_problem.hpp"

namespace {

using namespace baton;
using namespace baton::test;

/// The inputs of a layer, tensors of numbers that bf16 holds.
LowRankTensors drawn(const DeviceProblem& problem) {
  LowRankTensors x = draw_low_rank(problem.layer);
  for (auto* tensor : {&x.of.of.q, &x.of.of.k, &x.of.of.v, &x.of.of.g, &x.of.of.d_o, &x.a, &x.b})
    for (float& value : *tensor) value = from_bf16(to_bf16(value));
  return x;
}

void expect_solved(const DeviceProblem& problem, const LowRankOracle& oracle) {
  const LowRankLayerMemory memory(problem.layer.shape);
  const LowRankTensors x = drawn(problem);
  const Tensors& of = x.of.of;
  write(memory.of.q, of.q), write(memory.of.k, of.k), write(memory.of.v, of.v), write(memory.of.g, of.g);
  write(memory.of.d_o, of.d_o), write(memory.a, x.a), write(memory.b, x.b);
  const Comparison comparison(problem);
  const bool one_gate = problem.layer.shape.gate == GateKind::scalar;  // a sum over channels
  expect_passes(
      comparison, memory, x.of,
      {oracle.matrix, oracle.final, oracle.d_before, oracle.o, oracle.dq, oracle.dk, oracle.dv, oracle.dg},
      one_gate ? product_tolerance : device_tolerance);
  comparison.expect("da", read(memory.da), oracle.da, product_tolerance);
  comparison.expect("db", read(memory.db), oracle.db, product_tolerance);
}

Refusal lacks_what_layers_need() {
  if (Refusal lack = lacks_gpus(1)) return lack;
  return lacks_low_rank_room({{64, 1, 64, 64, 64, GateKind::none}, {}, Dtype::bf16});
}

TEST(LowRankDevice, LayersAgreeWithTheRecurrence) {
  if (const Refusal lack = lacks_what_layers_need()) GTEST_SKIP() << lack.reason();
  const auto all = device_problems();
  std::vector<std::future<LowRankOracle>> oracles;
  for (const DeviceProblem& problem : all)
    oracles.push_back(std::async(std::launch::async,
                                 [&problem] { return LowRankOracle(drawn(problem), problem.layer.shape); }));
  for (std::size_t i = 0; i < all.size(); ++i) expect_solved(all[i], oracles[i].get());
}

/// The correction of an output reads neither k nor v, and the gradient of a state neither.
TEST(LowRankDevice, PassesWithoutValuesDoNotReadThem) {
  if (const Refusal lack = lacks_what_layers_need()) GTEST_SKIP() << lack.reason();
  const DeviceProblem problem{{{100, 2, 64, 64, 64, GateKind::vector}, 0.3F, 38}, 1};
  const LayerShape& s = problem.layer.shape;
  const LowRankLayerMemory memory(s);
  const LowRankTensors x = drawn(problem);
  write(memory.of.q, x.of.of.q), write(memory.of.g, x.of.of.g), write(memory.of.d_o, x.of.of.d_o);
  write(memory.a, x.a), write(memory.b, x.b);
  const LowRankRank rank(memory, s, {}, 0);
  LowRankInputs<OnDevice> in = rank.in();
  in.of.k = in.of.v = nullptr;
  const Chunks p{s, {}, Dtype::bf16};
  cuda(on_device<LowRankMap>({}, {.in = in, .map_matrix = rank.map_matrix.at()}, p));
  cuda(on_device<LowRankCorrection>({}, {.in = in, .correction = rank.correction()}, p));
  cuda(on_device<LowRankStateGradients>(
      {}, {.in = in, .d_o = memory.of.d_o.at(), .map_state = rank.map_gradient.at()}, p));
  cuda(cudaDeviceSynchronize());
  for (const auto& numbers : {rank.map_matrix.host(), rank.map_gradient.host(), read(memory.correction)})
    for (const float number : numbers) ASSERT_TRUE(std::isfinite(number));
}

TEST(LowRankDevice, OtherTypesAndWidthsAreRefused) {
  const LayerShape narrow{64, 1, 32, 128, 64, GateKind::none}, fits{64, 1, 128, 128, 64, GateKind::none};
  for (const auto& p : {Chunks{narrow, {}, Dtype::bf16}, Chunks{fits, {}, Dtype::f32}})
    for (const Kernel& kernel :
         {kernel_of<LowRankMap>(p), kernel_of<LowRankOutput>(p), kernel_of<LowRankGradients>(p)})
      EXPECT_EQ(unsupported_on_device(kernel).reason(),
                "the device body of " + kernel.name + " is for bf16 tensors, d_k and d_v of 64 and 128");
}

}  // namespace
