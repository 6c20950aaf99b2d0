// SPDX-License-Identifier: Apache-2.0
// The device bodies of gated linear attention against the double-precision oracle: layers whose
// ranks run one after another on one GPU.
//
//   every rank: segment states and their gradients, scans
//   the host folds the maps both ways
//   every rank: output; gradients, with states before chunks in segments and with true ones
//   |got - oracle| / |oracle| in the Frobenius norm of o, dq, dk, dv, dg; memory starts as NaN
//
// Cost: the oracle's, on as many threads as there are problems.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <future>
#include <random>
#include <string>

#include "collectives/executors/cuda/ranks.cuh"
#include "collectives/schedule/errors.hpp"
#include "sp_methods/kernels/device/gla/state_pieces.cuh"
#include "tests/held_out_seed.hpp"
#include "tests/sp_methods/kernels/device/gla/device_problem.cuh"
#include "tests/sp_methods/kernels/device/gla/layer_rank.cuh"
#include "tests/sp_methods/kernels/gla_problem.hpp"

namespace {

using namespace baton;
using test::Gates;

constexpr double tolerance = 5e-3;

using Ranks = std::vector<std::unique_ptr<Rank>>;

/// Folds the maps of the ranks before each one, in the given order: the state that comes in there.
void fold_maps(const Ranks& ranks, bool forward) {
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

/// Runs a head group on ranks in a row up to the gradients; leaves what those need.
Ranks run_group(const LayerMemory& memory, const DeviceProblem& problem, const Work& work) {
  Ranks ranks;
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
  fold_maps(ranks, true);
  fold_maps(ranks, false);
  for (auto& rank : ranks) {
    rank->segment_output();
    rank->chunk_starts();
    rank->segment_starts();
  }
  cuda(cudaDeviceSynchronize());
  return ranks;
}

/// The gradients of a layer, from true states before chunks or from those in segments.
void run_gradients(const Ranks& ranks, bool starts_are_true) {
  for (auto& rank : ranks) {
    if (starts_are_true) rank->true_chunk_starts();
    rank->segment_gradients(starts_are_true);
  }
  cuda(cudaDeviceSynchronize());
}

/// Writes a problem's inputs.
void write_inputs(const LayerMemory& memory, const DeviceProblem& problem) {
  const test::Tensors tensors = drawn(problem);
  write(memory.q, tensors.q), write(memory.k, tensors.k), write(memory.v, tensors.v);
  write(memory.g, tensors.g), write(memory.d_o, tensors.d_o);
}

void expect_results(const LayerMemory& memory, const DeviceProblem& problem,
                    const test::Results<double>& oracle, const char* what) {
  const auto error = [&](const char* name, const auto& got, auto tensor) {
    if ((oracle.*tensor).empty()) return;
    const double relative =
        test::bf16_error(read(got), oracle, tensor, drawn(problem), problem.layer.shape, tolerance);
    EXPECT_LE(relative, tolerance) << name << ", " << problem.name() << ", " << what;
    std::printf("%s %.1e  ", name, relative);
  };
  error("o", memory.o, &test::Results<double>::o);
  error("dq", memory.dq, &test::Results<double>::dq);
  error("dk", memory.dk, &test::Results<double>::dk);
  error("dv", memory.dv, &test::Results<double>::dv);
  error("dg", memory.dg, &test::Results<double>::dg);
  std::printf("%s, %s\n", problem.name().c_str(), what);
}

void expect_solved(const DeviceProblem& problem, const test::Results<double>& oracle) {
  const LayerMemory memory(problem.layer.shape);
  write_inputs(memory, problem);
  std::vector<Ranks> groups;
  for (int g = 0; g < problem.groups; ++g)
    groups.push_back(run_group(memory, problem, group_of(problem.layer.shape, g, problem.groups)));
  for (const bool starts_are_true : {false, true}) {
    for (const auto* gradient : {&memory.dq, &memory.dk, &memory.dv, &memory.dg})
      cuda(cudaMemset(gradient->at(), 0xff, size(gradient->count()) * sizeof(Bf16)));
    for (const Ranks& ranks : groups) run_gradients(ranks, starts_are_true);
    expect_results(memory, problem, oracle, starts_are_true ? "true starts" : "starts in segments");
  }
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
  const auto vector = GateKind::vector;
  std::vector<DeviceProblem> out{{{{64, 1, 128, 128, 64, vector}, Gates::layer, 0, seed}, 1, 1},
                                 {{{256, 1, 128, 128, 64, vector}, Gates::layer, 0, seed}, 1, 1},
                                 {{{1000, 2, 128, 128, 64, vector}, Gates::layer, 0, seed}, 1, 4}};
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
  // dg of the first two, of scalar gates, is a difference of terms 4.4 and 3.0 times as large; the
  // last chunks of the others have one token or three, and all of their gates are strong.
  out.push_back({{{6, 1, 64, 64, 64, GateKind::scalar}, Gates::layer, 0, 2073578948}, 1, 5});
  out.push_back({{{811, 1, 128, 128, 64, GateKind::scalar}, Gates::near_zero, 0, 3152863783}, 1, 2});
  out.push_back({{{65, 3, 128, 64, 64, vector}, Gates::near_one, 0, 1545412921}, 1, 1});
  out.push_back({{{964, 3, 64, 128, 64, vector}, Gates::near_one, 0, 2931344254}, 3, 3});
  out.push_back({{{3, 1, 128, 128, 64, vector}, Gates::near_one, 0, 5}, 1, 1});
  out.push_back({{{131, 1, 128, 128, 64, vector}, Gates::near_one, 0, 5}, 1, 3});
  // One strong chunk within a gentle segment: the last that a backward pass meets, one between.
  for (const GateKind kind : {GateKind::vector, GateKind::scalar})
    for (const std::int64_t token : {20, 200})
      out.push_back({{{600, 2, 128, 128, 64, kind}, Gates::layer, 0, seed + 5}, 1, 2, 1, token});
  std::mt19937 random(seed);
  for (int i = 0; i < 12; ++i) out.push_back(random_problem(random));
  out.push_back({{{4096, 16, 128, 128, 64, vector}, Gates::layer, 0, seed + 4}, 1, 8});
  return out;
}

TEST(GlaDevice, LayersAgreeWithTheOracle) {
  if (const Refusal lack = lacks_gpus(1)) GTEST_SKIP() << lack.reason();
  const auto all = problems(static_cast<unsigned>(held_out_seed()));
  std::vector<std::future<test::Results<double>>> oracles;
  for (const DeviceProblem& problem : all)
    oracles.push_back(std::async(
        std::launch::async, [&problem] { return test::reference(drawn(problem), problem.layer.shape); }));
  for (std::size_t i = 0; i < all.size(); ++i) expect_solved(all[i], oracles[i].get());
}

/// A state before a chunk twice: from its segment and what was there before, and in one sweep.
class ComparedStarts {
 public:
  explicit ComparedStarts(const Rank& rank)
      : cut_(rank.cut),
        chunks_(read(rank.starts)),
        segments_(read(rank.segment_starts_)),
        decays_(rank.decays.host()) {
    rank.true_chunk_starts();
    cuda(cudaDeviceSynchronize());
    expected_ = read(rank.starts);
  }

  /// Elements that differ by more than bf16 rounds, of all heads; the first of them goes into the
  /// test's message.
  int wrong(std::string& first) const {
    const std::int64_t heads = cut_.work.heads(cut_.shape), chunks = cut_.shape.chunks();
    int count = 0;
    for (std::int64_t head = 0; head < heads; ++head)
      for (std::int64_t segment = 0; segment < cut_.count; ++segment)
        for (std::int64_t n = chunks * segment / cut_.count; n < chunks * (segment + 1) / cut_.count; ++n)
          count += wrong_of(head * chunks + n, head * cut_.count + segment, first);
    return count;
  }

 private:
  std::int64_t place_of(std::int64_t row, std::int64_t column) const {
    const auto width = static_cast<int>(cut_.shape.d_v), r = static_cast<int>(row);
    return pair_in_pieces(width, r, static_cast<int>(column / 2 * 2)) + column % 2;
  }
  int wrong_of(std::int64_t chunk, std::int64_t segment, std::string& first) const {
    const std::int64_t d_v = cut_.shape.d_v, state = cut_.shape.d_k * d_v;
    int count = 0;
    for (std::int64_t i = 0; i < state; ++i) {
      const std::int64_t at = place_of(i / d_v, i % d_v);
      const float own = chunks_[size(chunk * state + at)], before = segments_[size(segment * state + at)];
      const float decay = decays_[size(chunk * cut_.shape.d_k + i / d_v)];
      const float expected = expected_[size(chunk * state + at)];
      const float most = 0.01F * (std::abs(own) + std::abs(decay * before)) + 1e-6F;
      if (std::abs(own + decay * before - expected) <= most) continue;
      if (++count == 1 && first.empty())
        first = "chunk " + std::to_string(chunk) + " of all heads, segment " + std::to_string(segment) +
                ", row " + std::to_string(i / d_v) + ", column " + std::to_string(i % d_v) + ": " +
                std::to_string(own) + " + " + std::to_string(decay) + " x " + std::to_string(before) +
                ", must be " + std::to_string(expected);
    }
    return count;
  }

  const Segments& cut_;
  std::vector<float> chunks_, segments_, decays_, expected_;
};

TEST(GlaDevice, StartsInSegmentsMakeTrueStarts) {
  if (const Refusal lack = lacks_gpus(1)) GTEST_SKIP() << lack.reason();
  for (const GateKind kind : {GateKind::vector, GateKind::scalar, GateKind::none})
    for (const Gates gates : {Gates::layer, Gates::near_one, Gates::near_zero, Gates::mixed})
      for (const auto& [d_k, d_v] : {std::pair{128, 128}, std::pair{128, 64}, std::pair{64, 128}}) {
        const DeviceProblem problem{{{1200, 2, d_k, d_v, 64, kind}, gates, 0, 7}, 2, 3};
        const LayerMemory memory(problem.layer.shape);
        write_inputs(memory, problem);
        for (const auto& rank : run_group(memory, problem, {})) {
          std::string first;
          EXPECT_EQ(ComparedStarts(*rank).wrong(first), 0)
              << problem.name() << ", from token " << rank->token << ": " << first;
        }
      }
}

/// Ranks and segments that a sequence is cut into must not show in its gradients.
TEST(GlaDevice, ACutSequenceHasTheGradientsOfTheWhole) {
  if (const Refusal lack = lacks_gpus(1)) GTEST_SKIP() << lack.reason();
  for (const Gates gates : {Gates::layer, Gates::near_one, Gates::near_zero, Gates::mixed}) {
    std::vector<double> whole[4];
    for (const auto& [ranks, segments] : {std::pair{1, 1}, std::pair{1, 5}, std::pair{3, 2}}) {
      const DeviceProblem problem{{{1300, 2, 128, 128, 64, GateKind::vector}, gates, 0, 11}, ranks, segments};
      const LayerMemory memory(problem.layer.shape);
      write_inputs(memory, problem);
      run_gradients(run_group(memory, problem, {}), false);
      const DeviceArray<Bf16>* gradients[] = {&memory.dq, &memory.dk, &memory.dv, &memory.dg};
      for (int i = 0; i < 4; ++i) {
        const std::vector<float> got = read(*gradients[i]);
        if (ranks * segments == 1) whole[i].assign(got.begin(), got.end());
        const double difference = test::relative_error(got, whole[i]);
        std::printf("%.1e  ", difference);
        EXPECT_LE(difference, 1.5 * tolerance)  // both are rounded
            << "gradient " << i << " of dq, dk, dv, dg, " << problem.name();
      }
      std::printf("%s, dq dk dv dg from those of one segment\n", problem.name().c_str());
    }
  }
}

TEST(GlaDevice, ASecondBodyOfAKernelIsRefused) {
  EXPECT_EXIT(device_body<SegmentOutput>(nullptr), testing::ExitedWithCode(2), "segment_output");
}

}  // namespace
