// SPDX-License-Identifier: Apache-2.0
// The device bodies of gated linear attention against the double-precision oracle: layers whose
// ranks run one after another on one GPU.
//
//   every rank: segment states and their gradients, scans
//   the host folds the maps both ways
//   every rank: output, gradients
//   |got - oracle| / |oracle| in the Frobenius norm of o, dq, dk, dv, dg; memory starts as NaN
//
// Cost: the oracle's, on as many threads as there are problems.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <future>
#include <random>
#include <string>

#include "collectives/executors/cuda/ranks.cuh"
#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/slice.hpp"
#include "tests/sp_methods/kernels/device/gla/layer_rank.cuh"
#include "tests/sp_methods/kernels/gla_problem.hpp"

namespace {

using namespace baton;
using test::Gates;

constexpr double tolerance = 5e-3;

/// A layer, and how it is cut.
struct DeviceProblem {
  test::Problem layer;
  int ranks, segments, groups = 1;

  std::string name() const {
    return layer.name() + ", ranks " + std::to_string(ranks) + ", segments " + std::to_string(segments) +
           ", groups " + std::to_string(groups);
  }
};

/// The inputs of a layer, each a number that bf16 holds.
test::Tensors drawn(const DeviceProblem& problem) {
  test::Tensors tensors = test::draw(problem.layer);
  for (auto* tensor : {&tensors.q, &tensors.k, &tensors.v, &tensors.g, &tensors.d_o})
    for (float& value : *tensor) value = from_bf16(to_bf16(value));
  return tensors;
}

void write(const DeviceArray<Bf16>& into, const std::vector<float>& from) {
  std::vector<Bf16> narrow;
  for (const float value : from) narrow.push_back(__float2bfloat16(value));
  cuda(cudaMemcpy(into.at(), narrow.data(), narrow.size() * sizeof(Bf16), cudaMemcpyHostToDevice));
}

std::vector<float> read(const DeviceArray<Bf16>& from) {
  std::vector<float> wide;
  for (const Bf16 value : from.host()) wide.push_back(__bfloat162float(value));
  return wide;
}

/// Folds the maps of the ranks before each one, in the given order: the state that comes in there.
void exchange(std::vector<std::unique_ptr<Rank>>& ranks, bool forward) {
  std::vector<float> carry;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Rank& rank = *ranks[forward ? i : ranks.size() - 1 - i];
    const PassMemory& pass = forward ? rank.before : rank.after;
    const auto decay = pass.map_decay.host(), state = pass.map_state.host();
    if (!carry.empty()) (forward ? rank.prefix : rank.suffix) = std::make_unique<DeviceArray<float>>(carry);
    carry.resize(state.size(), 0.0F);
    for (std::size_t e = 0; e < state.size(); ++e)
      carry[e] = decay[e / size(rank.cut.shape.d_v)] * carry[e] + state[e];
  }
}

/// Runs a head group on ranks in a row.
void run_group(const LayerMemory& memory, const DeviceProblem& problem, const Work& work) {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int r = 0; r < problem.ranks; ++r) {
    const auto [share, first] = test::rank_tokens(problem.layer.shape, r, problem.ranks);
    const int segments = static_cast<int>(std::min<std::int64_t>(problem.segments, share.chunks()));
    ranks.push_back(std::make_unique<Rank>(memory, share, work, first, segments));
  }
  for (auto& rank : ranks) {
    rank->segment_states();
    rank->scan_segments(rank->before);
    rank->segment_state_gradients();
    rank->scan_segments(rank->after);
  }
  exchange(ranks, true);
  exchange(ranks, false);
  for (auto& rank : ranks) {
    rank->segment_output();
    rank->chunk_starts();
    rank->segment_gradients();
  }
  cuda(cudaDeviceSynchronize());
}

void expect_solved(const DeviceProblem& problem, const test::Results<double>& oracle) {
  const test::Tensors tensors = drawn(problem);
  const LayerMemory memory(problem.layer.shape);
  write(memory.q, tensors.q), write(memory.k, tensors.k), write(memory.v, tensors.v);
  write(memory.g, tensors.g), write(memory.d_o, tensors.d_o);
  for (int g = 0; g < problem.groups; ++g)
    run_group(memory, problem, group_of(problem.layer.shape, g, problem.groups));
  const auto error = [&](const char* name, const DeviceArray<Bf16>& got,
                         const std::vector<double>& expected) {
    if (expected.empty()) return;
    const double relative = test::relative_error(read(got), expected);
    EXPECT_LE(relative, tolerance) << name << ", " << problem.name();
    std::printf("%s %.1e  ", name, relative);
  };
  error("o", memory.o, oracle.o);
  error("dq", memory.dq, oracle.dq);
  error("dk", memory.dk, oracle.dk);
  error("dv", memory.dv, oracle.dv);
  error("dg", memory.dg, oracle.dg);
  std::printf("%s\n", problem.name().c_str());
}

DeviceProblem random_problem(std::mt19937& random) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  DeviceProblem p;
  p.layer.shape = {pick(1, 1500),   pick(1, 3), 64 * pick(1, 2),
                   64 * pick(1, 2), 64,         static_cast<GateKind>(pick(0, 2))};
  p.layer.gates = static_cast<Gates>(pick(0, 5));
  p.layer.constant = -0.1F * static_cast<float>(pick(0, 90));
  p.layer.seed = static_cast<unsigned>(random());
  p.ranks = p.layer.shape.tokens < 200 ? 1 : pick(1, 4);
  p.segments = pick(1, 6);
  p.groups = pick(1, static_cast<int>(p.layer.shape.heads));
  return p;
}

/// One rank and ranks in a row, chunks that are not full, gates of every strength, and random
/// layers.
std::vector<DeviceProblem> problems(unsigned seed) {
  std::vector<DeviceProblem> out;
  const auto vector = GateKind::vector;
  out.push_back({{{64, 1, 128, 128, 64, vector}, Gates::layer, 0, seed}, 1, 1});
  out.push_back({{{256, 1, 128, 128, 64, vector}, Gates::layer, 0, seed}, 1, 1});
  out.push_back({{{1000, 2, 128, 128, 64, vector}, Gates::layer, 0, seed}, 1, 4});
  for (const GateKind kind : {GateKind::vector, GateKind::scalar, GateKind::none})
    for (const std::int64_t d_k : {64, 128})
      for (const std::int64_t d_v : {64, 128})
        out.push_back({{{777, 2, d_k, d_v, 64, kind}, Gates::layer, 0, seed + 1}, 2, 3});
  for (const GateKind kind : {GateKind::vector, GateKind::scalar}) {
    for (const Gates gates : {Gates::unit_normal, Gates::near_zero, Gates::near_one, Gates::mixed})
      out.push_back({{{600, 2, 128, 128, 64, kind}, gates, 0, seed + 2}, 2, 3});
    for (const float constant : {-1.0F, -1.8F, -2.5F, -5.0F, -8.0F})
      out.push_back({{{600, 2, 128, 128, 64, kind}, Gates::constant, constant, seed + 3}, 2, 3});
  }
  std::mt19937 random(seed);
  for (int i = 0; i < 12; ++i) out.push_back(random_problem(random));
  out.push_back({{{4096, 16, 128, 128, 64, vector}, Gates::layer, 0, seed + 4}, 1, 8});
  return out;
}

TEST(GlaDevice, LayersAgreeWithTheOracle) {
  if (const Refusal lack = lacks_gpus(1)) GTEST_SKIP() << lack.reason();
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  const auto all = problems(seed);
  std::vector<std::future<test::Results<double>>> oracles;
  for (const DeviceProblem& problem : all)
    oracles.push_back(std::async(
        std::launch::async, [&problem] { return test::reference(drawn(problem), problem.layer.shape); }));
  for (std::size_t i = 0; i < all.size(); ++i) expect_solved(all[i], oracles[i].get());
}

TEST(GlaDevice, ASecondBodyOfAKernelIsRefused) {
  EXPECT_THROW(device_body<SegmentOutput>(segment_output), UsageError);
}

}  // namespace
