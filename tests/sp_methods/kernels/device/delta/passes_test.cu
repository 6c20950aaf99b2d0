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

#include <cstdio>
#include <future>
#include <string>
#include <vector>

#include "collectives/executors/cuda/ranks.cuh"
#include "collectives/schedule/slice.hpp"
#include "tests/sp_methods/kernels/delta_problem.hpp"
#include "tests/sp_methods/kernels/device/delta/layer_rank.cuh"

namespace {

using namespace baton;
using test::DeltaProblem;
using test::DeltaTensors;

constexpr double tolerance = 5e-3;
/// dbeta is a product of two rounded tensors, and a matrix is rounded once a chunk.
constexpr double strength_tolerance = 6e-3, matrix_tolerance = 2e-2;
constexpr double least_norm = 1e-20;

/// A layer, and how it is cut.
struct DeviceProblem {
  DeltaProblem layer;
  int ranks = 1, groups = 1;

  std::string name() const {
    return layer.name() + ", ranks " + std::to_string(ranks) + ", groups " + std::to_string(groups);
  }
};

/// The inputs of a layer, tensors of numbers that bf16 holds.
DeltaTensors drawn(const DeviceProblem& problem) {
  DeltaTensors x = test::draw(problem.layer);
  for (auto* tensor : {&x.of.q, &x.of.k, &x.of.v, &x.of.g, &x.of.d_o, &x.beta})
    for (float& value : *tensor) value = from_bf16(to_bf16(value));
  return x;
}

struct Oracle {
  test::DeltaResults<double> results;
  std::vector<double> matrices;
};
Oracle oracle_of(const DeviceProblem& problem) {
  const DeltaTensors x = drawn(problem);
  return {test::delta_reference(x, problem.layer.shape), test::delta_matrices(x, problem.layer.shape)};
}

void write(const DeviceArray<Bf16>& into, const std::vector<float>& from) {
  std::vector<Bf16> narrow;
  for (const float value : from) narrow.push_back(__float2bfloat16(value));
  cuda(cudaMemcpy(into.at(), narrow.data(), narrow.size() * sizeof(Bf16), cudaMemcpyHostToDevice));
}
void write(const DeviceArray<float>& into, const std::vector<float>& from) {
  cuda(cudaMemcpy(into.at(), from.data(), from.size() * sizeof(float), cudaMemcpyHostToDevice));
}
std::vector<float> read(const DeviceArray<Bf16>& from) {
  std::vector<float> wide;
  for (const Bf16 value : from.host()) wide.push_back(__bfloat162float(value));
  return wide;
}
void forget(const DeviceArray<Bf16>& x) { cuda(cudaMemset(x.at(), 0xff, size(x.count()) * sizeof(Bf16))); }

/// Heads [first, first + count) of numbers a head.
std::vector<float> heads_of(const std::vector<float>& x, const LayerShape& s, const Work& work) {
  const std::int64_t each = static_cast<std::int64_t>(x.size()) / s.heads;
  return {x.begin() + work.first_head * each, x.begin() + (work.first_head + work.heads(s)) * each};
}

/// The states [heads, d_v, d_k] behind a map's tokens; backward the map is A transposed.
std::vector<float> mapped(const std::vector<float>& states, const std::vector<float>& matrices,
                          const std::vector<float>& added, const LayerShape& s, bool forward) {
  std::vector<float> out(states.size());
  for (std::size_t row = 0; row < states.size() / size(s.d_k); ++row)
    for (std::int64_t c = 0; c < s.d_k; ++c) {
      const float* matrix = matrices.data() + static_cast<std::int64_t>(row) / s.d_v * s.d_k * s.d_k;
      double sum = added[row * size(s.d_k) + size(c)];
      for (std::int64_t i = 0; i < s.d_k; ++i)
        sum += matrix[forward ? c * s.d_k + i : i * s.d_k + c] * states[row * size(s.d_k) + size(i)];
      out[row * size(s.d_k) + size(c)] = static_cast<float>(sum);
    }
  return out;
}

using Ranks = std::vector<std::unique_ptr<DeltaRank>>;

/// What the folded maps of a head group's ranks make of the states at the ends.
struct Folded {
  std::vector<float> final, d_before;
};

/// Makes the maps of ranks in a row and the states that come to each.
Folded fold(const Ranks& ranks, const DeltaTensors& x) {
  const Chunks& any = ranks.front()->share;
  Folded carry{heads_of(x.before, any.shape, any.work), heads_of(x.after, any.shape, any.work)};
  for (const auto& rank : ranks) {
    rank->map();
    rank->state_gradients();
  }
  for (const auto& rank : ranks) {
    write(rank->before, carry.final);
    carry.final = mapped(carry.final, rank->map_matrix.host(), rank->map_state.host(), any.shape, true);
  }
  for (auto rank = ranks.rbegin(); rank != ranks.rend(); ++rank) {
    write((*rank)->after, carry.d_before);
    carry.d_before =
        mapped(carry.d_before, (*rank)->map_matrix.host(), (*rank)->map_gradient.host(), any.shape, false);
  }
  return carry;
}

class Comparison {
 public:
  explicit Comparison(const DeviceProblem& problem) : problem_(problem) {}
  ~Comparison() { std::printf("%s\n", problem_.name().c_str()); }

  void expect(const char* name, const std::vector<float>& got, const std::vector<double>& expected,
              double most = tolerance) const {
    if (expected.empty()) return;
    double norm = 0;
    for (const double value : expected) norm += value * value;
    norm = std::sqrt(norm);
    const double error = test::relative_error(got, expected) * std::min(1.0, norm / least_norm);
    EXPECT_LE(error, most) << name << ", " << problem_.name();
    std::printf("%s %.1e  ", name, error);
  }

 private:
  const DeviceProblem& problem_;
};

/// Writes a problem's inputs.
void write_inputs(const DeltaLayerMemory& memory, const DeltaTensors& x) {
  write(memory.of.q, x.of.q), write(memory.of.k, x.of.k), write(memory.of.v, x.of.v);
  write(memory.of.g, x.of.g), write(memory.of.d_o, x.of.d_o), write(memory.beta, x.beta);
}

Ranks ranks_of(const DeltaLayerMemory& memory, const DeviceProblem& problem, const Work& work) {
  Ranks ranks;
  for (int r = 0; r < problem.ranks; ++r) {
    const auto [share, first] = test::rank_tokens(problem.layer.shape, r, problem.ranks);
    ranks.push_back(std::make_unique<DeltaRank>(memory, share, work, first));
  }
  return ranks;
}

void append(std::vector<float>& into, const std::vector<float>& from) {
  into.insert(into.end(), from.begin(), from.end());
}

void expect_solved(const DeviceProblem& problem, const Oracle& oracle) {
  const LayerShape& s = problem.layer.shape;
  const DeltaLayerMemory memory(s);
  const DeltaTensors x = drawn(problem);
  write_inputs(memory, x);
  std::vector<Ranks> groups;
  std::vector<float> final, d_before, matrices;
  for (int g = 0; g < problem.groups; ++g) {
    groups.push_back(ranks_of(memory, problem, group_of(s, g, problem.groups)));
    const Folded folded = fold(groups.back(), x);
    append(final, folded.final), append(d_before, folded.d_before);
    append(matrices, groups.back().front()->map_matrix.host());
  }
  const Comparison comparison(problem);
  if (problem.ranks == 1) comparison.expect("A", matrices, oracle.matrices, matrix_tolerance);
  comparison.expect("state", final, oracle.results.final);
  comparison.expect("d_before", d_before, oracle.results.d_before);
  const auto each = [&](const auto& call) {
    for (const Ranks& group : groups)
      for (const auto& rank : group) call(*rank);
    cuda(cudaDeviceSynchronize());
  };
  each([](const DeltaRank& rank) { rank.output(); });
  comparison.expect("o", read(memory.of.o), oracle.results.of.o);
  forget(memory.of.o);
  each([](const DeltaRank& rank) { rank.output(true), rank.corrected(); });
  comparison.expect("o corrected", read(memory.of.o), oracle.results.of.o);
  each([](const DeltaRank& rank) { rank.gradients(); });
  comparison.expect("dq", read(memory.of.dq), oracle.results.of.dq);
  comparison.expect("dk", read(memory.of.dk), oracle.results.of.dk);
  comparison.expect("dv", read(memory.of.dv), oracle.results.of.dv);
  comparison.expect("dg", read(memory.of.dg), oracle.results.of.dg);
  comparison.expect("dbeta", read(memory.dbeta), oracle.results.dbeta, strength_tolerance);
}

std::vector<DeviceProblem> problems() {
  std::vector<DeviceProblem> out;
  for (const GateKind kind : {GateKind::vector, GateKind::scalar, GateKind::none})
    for (const float gate : {0.02F, 0.3F, 3.0F, 8.0F}) {
      if (kind == GateKind::none && gate > 0.02F) continue;
      out.push_back({{{192, 2, 128, 128, 64, kind}, gate, 31}, 1});
      out.push_back({{{330, 3, 64, 128, 64, kind}, gate, 32}, 3});
      out.push_back({{{201, 2, 128, 64, 16, kind}, gate, 33}, 2, 2});
      out.push_back({{{43, 2, 64, 64, 64, kind}, gate, 34}, 1});
      out.push_back({{{1300, 1, 128, 128, 64, kind}, gate, 35}, 4});
    }
  return out;
}

Refusal lacks_what_layers_need() {
  if (Refusal lack = lacks_gpus(1)) return lack;
  return lacks_delta_room({{64, 1, 64, 64, 64, GateKind::none}, {}, Dtype::bf16});
}

TEST(DeltaDevice, LayersAgreeWithTheRecurrence) {
  if (const Refusal lack = lacks_what_layers_need()) GTEST_SKIP() << lack.reason();
  const auto all = problems();
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
      const Ranks all = ranks_of(memory, problem, {});
      fold(all, x);
      for (const auto& rank : all) rank->output(), rank->gradients();
      cuda(cudaDeviceSynchronize());
      const DeviceArray<Bf16>* results[] = {&memory.of.o,  &memory.of.dq, &memory.of.dk,
                                            &memory.of.dv, &memory.of.dg, &memory.dbeta};
      for (std::size_t i = 0; i < std::size(results); ++i) {
        const std::vector<float> got = read(*results[i]);
        if (ranks == 1) whole.emplace_back(got.begin(), got.end());
        EXPECT_LE(test::relative_error(got, whole[i]), 1.5 * tolerance)  // both are rounded
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
