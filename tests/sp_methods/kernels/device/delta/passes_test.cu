// SPDX-License-Identifier: Apache-2.0
// The device bodies under a delta rule against the token recurrence in double precision: layers
// whose ranks run one after another on one GPU.
//
//   every rank: its map and the gradient of its state
//   the host folds the maps both ways, from a state before the first token and a gradient behind
//   the last
//   every rank: output, output corrected, gradients
//   |got - oracle| / |oracle| in the Frobenius norm; memory starts as NaN
//
// Cost: the oracle's, on as many threads as there are problems.
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "collectives/executors/cuda/ranks.cuh"
#include "collectives/schedule/slice.hpp"
#include "tests/sp_methods/kernels/device/delta/comparison.cuh"

namespace {

using namespace baton;
using namespace baton::test;

/// The inputs of a layer, tensors of numbers that bf16 holds.
DeltaTensors drawn(const DeviceProblem& problem) {
  DeltaTensors x = draw(problem.layer);
  for (auto* tensor : {&x.of.q, &x.of.k, &x.of.v, &x.of.g, &x.of.d_o, &x.beta})
    for (float& value : *tensor) value = from_bf16(to_bf16(value));
  return x;
}

struct Oracle {
  DeltaResults<double> results;
  std::vector<double> matrices;
};
Oracle oracle_of(const DeviceProblem& problem) {
  const DeltaTensors x = drawn(problem);
  return {delta_reference(x, problem.layer.shape), delta_matrices(x, problem.layer.shape)};
}

/// Writes a problem's inputs.
void write_inputs(const DeltaLayerMemory& memory, const DeltaTensors& x) {
  write(memory.of.q, x.of.q), write(memory.of.k, x.of.k), write(memory.of.v, x.of.v);
  write(memory.of.g, x.of.g), write(memory.of.d_o, x.of.d_o), write(memory.beta, x.beta);
}

void expect_solved(const DeviceProblem& problem, const Oracle& oracle) {
  const DeltaLayerMemory memory(problem.layer.shape);
  const DeltaTensors x = drawn(problem);
  write_inputs(memory, x);
  const auto& [of, dbeta, final, d_before] = oracle.results;
  const Comparison comparison(problem);
  expect_passes(comparison, memory, x, {oracle.matrices, final, d_before, of.o, of.dq, of.dk, of.dv, of.dg});
  comparison.expect("dbeta", read(memory.dbeta), dbeta, product_tolerance);
}

Refusal lacks_what_layers_need() {
  if (Refusal lack = lacks_gpus(1)) return lack;
  return lacks_delta_room({{64, 1, 64, 64, 64, GateKind::none}, {}, Dtype::bf16});
}

TEST(DeltaDevice, LayersAgreeWithTheRecurrence) {
  if (const Refusal lack = lacks_what_layers_need()) GTEST_SKIP() << lack.reason();
  const auto all = device_problems();
  std::vector<std::future<Oracle>> oracles;
  for (const DeviceProblem& problem : all)
    oracles.push_back(std::async(std::launch::async, [&problem] { return oracle_of(problem); }));
  for (std::size_t i = 0; i < all.size(); ++i) expect_solved(all[i], oracles[i].get());
}

/// Ranks that a sequence is cut into must not show in its output and gradients.
TEST(DeltaDevice, ACutSequenceHasTheResultsOfTheWhole) {
  if (const Refusal lack = lacks_what_layers_need()) GTEST_SKIP() << lack.reason();
  for (const float gate : {0.02F, 0.3F, 8.0F}) {
    std::vector<std::vector<double>> whole;
    for (const int ranks : {1, 3}) {
      const DeviceProblem problem{{{900, 2, 128, 128, 64, GateKind::vector}, gate, 41}, ranks};
      const DeltaLayerMemory memory(problem.layer.shape);
      const DeltaTensors x = drawn(problem);
      write_inputs(memory, x);
      const auto all = ranks_of(memory, problem, {});
      fold<DeltaLayerMemory>(all, x);
      for (const auto& rank : all) rank->output(), rank->gradients();
      cuda(cudaDeviceSynchronize());
      const DeviceArray<Bf16>* results[] = {&memory.of.o,  &memory.of.dq, &memory.of.dk,
                                            &memory.of.dv, &memory.of.dg, &memory.dbeta};
      for (std::size_t i = 0; i < std::size(results); ++i) {
        const std::vector<float> got = read(*results[i]);
        if (ranks == 1) whole.emplace_back(got.begin(), got.end());
        EXPECT_LE(relative_error(got, whole[i]), 1.5 * device_tolerance)  // both are rounded
            << "result " << i << " of o, dq, dk, dv, dg, dbeta, " << problem.name();
      }
    }
  }
}

TEST(DeltaDevice, OtherTypesAndWidthsAreRefused) {
  const LayerShape narrow{64, 1, 32, 128, 64, GateKind::none}, fits{64, 1, 128, 128, 64, GateKind::none};
  for (const auto& p : {Chunks{narrow, {}, Dtype::bf16}, Chunks{fits, {}, Dtype::f32}})
    for (const Kernel& kernel :
         {kernel_of<DeltaMap>(p), kernel_of<DeltaOutput>(p), kernel_of<DeltaGradients>(p)})
      EXPECT_EQ(unsupported_on_device(kernel).reason(),
                "the device body of " + kernel.name + " is for bf16 tensors, d_k and d_v of 64 and 128");
}

}  // namespace
