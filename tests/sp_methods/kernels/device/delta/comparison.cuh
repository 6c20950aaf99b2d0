// SPDX-License-Identifier: Apache-2.0
// What the tests of the device bodies under a delta rule and under a low-rank rule share: layers
// whose ranks run one after another on one GPU, the fold of their maps, and the comparison with an
// oracle.
//
//   |got - oracle| / |oracle| in the Frobenius norm; memory starts as NaN
//
// Cost: that of the ranks.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/sp_methods/kernels/delta_problem.hpp"
#include "tests/sp_methods/kernels/device/delta/layer_rank.cuh"

namespace baton::test {

inline constexpr double device_tolerance = 5e-3;
/// Tolerance of gradients that are products of two rounded tensors.
inline constexpr double product_tolerance = 6e-3;
/// A matrix is rounded once a chunk.
inline constexpr double matrix_tolerance = 2e-2;
inline constexpr double least_norm = 1e-20;

/// A layer, and how it is cut.
struct DeviceProblem {
  DeltaProblem layer;
  int ranks = 1, groups = 1;

  std::string name() const {
    return layer.name() + ", ranks " + std::to_string(ranks) + ", groups " + std::to_string(groups);
  }
};

inline void write(const DeviceArray<Bf16>& into, const std::vector<float>& from) {
  std::vector<Bf16> narrow;
  for (const float value : from) narrow.push_back(__float2bfloat16(value));
  cuda(cudaMemcpy(into.at(), narrow.data(), narrow.size() * sizeof(Bf16), cudaMemcpyHostToDevice));
}
inline void write(const DeviceArray<float>& into, const std::vector<float>& from) {
  cuda(cudaMemcpy(into.at(), from.data(), from.size() * sizeof(float), cudaMemcpyHostToDevice));
}
inline std::vector<float> read(const DeviceArray<Bf16>& from) {
  std::vector<float> wide;
  for (const Bf16 value : from.host()) wide.push_back(__bfloat162float(value));
  return wide;
}
inline void forget(const DeviceArray<Bf16>& x) {
  cuda(cudaMemset(x.at(), 0xff, size(x.count()) * sizeof(Bf16)));
}

/// Heads [first, first + count) of numbers a head.
inline std::vector<float> heads_of(const std::vector<float>& x, const LayerShape& s, const Work& work) {
  const std::int64_t each = static_cast<std::int64_t>(x.size()) / s.heads;
  return {x.begin() + work.first_head * each, x.begin() + (work.first_head + work.heads(s)) * each};
}

/// The states [heads, d_v, d_k] behind a map's tokens; backward the map is A transposed.
inline std::vector<float> mapped(const std::vector<float>& states, const std::vector<float>& matrices,
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

/// The ranks of a layer whose memory is `Memory`, with the same heads.
template <class Memory>
using Ranks = std::vector<std::unique_ptr<MatrixRank<Memory>>>;

/// What the folded maps of a head group's ranks make of the states at the ends.
struct Folded {
  std::vector<float> final, d_before;
};

/// Makes the maps of ranks in a row and the states that come to each.
template <class Memory>
Folded fold(const Ranks<Memory>& ranks, const DeltaTensors& x) {
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
  const DeviceProblem& problem() const { return problem_; }
  ~Comparison() { std::printf("%s\n", problem_.name().c_str()); }

  void expect(const char* name, const std::vector<float>& got, const std::vector<double>& expected,
              double most = device_tolerance) const {
    if (expected.empty()) return;
    double norm = 0;
    for (const double value : expected) norm += value * value;
    norm = std::sqrt(norm);
    const double error = relative_error(got, expected) * std::min(1.0, norm / least_norm);
    EXPECT_LE(error, most) << name << ", " << problem_.name();
    std::printf("%s %.1e  ", name, error);
  }

 private:
  const DeviceProblem& problem_;
};

template <class Memory>
Ranks<Memory> ranks_of(const Memory& memory, const DeviceProblem& problem, const Work& work) {
  Ranks<Memory> ranks;
  for (int r = 0; r < problem.ranks; ++r) {
    const auto [share, first] = rank_tokens(problem.layer.shape, r, problem.ranks);
    ranks.push_back(std::make_unique<MatrixRank<Memory>>(memory, share, work, first));
  }
  return ranks;
}

inline void append(std::vector<float>& into, const std::vector<float>& from) {
  into.insert(into.end(), from.begin(), from.end());
}

/// What the oracles of both rules make of a layer.
struct PassResults {
  const std::vector<double>&matrices, &final, &d_before, &o, &dq, &dk, &dv, &dg;
};

/// Expects both passes of a layer, whose inputs are in `memory`, to agree with the oracle.
template <class Memory>
void expect_passes(const Comparison& comparison, const Memory& memory, const DeltaTensors& x,
                   const PassResults& oracle, double dg_tolerance = device_tolerance) {
  const DeviceProblem& problem = comparison.problem();
  std::vector<Ranks<Memory>> groups;
  std::vector<float> final, d_before, matrices;
  for (int g = 0; g < problem.groups; ++g) {
    groups.push_back(ranks_of(memory, problem, group_of(problem.layer.shape, g, problem.groups)));
    const Folded folded = fold<Memory>(groups.back(), x);
    append(final, folded.final), append(d_before, folded.d_before);
    append(matrices, groups.back().front()->map_matrix.host());
    for (std::size_t r = 1; r < groups.back().size(); r += 2) groups.back()[r]->keep_again();
  }
  if (problem.ranks == 1) comparison.expect("A", matrices, oracle.matrices, matrix_tolerance);
  comparison.expect("state", final, oracle.final);
  comparison.expect("d_before", d_before, oracle.d_before);
  const auto each = [&](const auto& call) {
    for (const auto& group : groups)
      for (const auto& rank : group) call(*rank);
    cuda(cudaDeviceSynchronize());
  };
  each([](const auto& rank) { rank.output(); });
  comparison.expect("o", read(memory.of.o), oracle.o);
  forget(memory.of.o);
  each([](const auto& rank) { rank.output(true), rank.corrected(); });
  comparison.expect("o corrected", read(memory.of.o), oracle.o);
  each([](const auto& rank) { rank.gradients(); });
  comparison.expect("dq", read(memory.of.dq), oracle.dq);
  comparison.expect("dk", read(memory.of.dk), oracle.dk);
  comparison.expect("dv", read(memory.of.dv), oracle.dv);
  comparison.expect("dg", read(memory.of.dg), oracle.dg, dg_tolerance);
}

/// The layers every device body must solve: all gates from weak to strong, short last chunks, ranks
/// and groups of heads; and equal gates, as strong as those of RWKV-7 and as contracts take them.
inline std::vector<DeviceProblem> device_problems() {
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
  for (const GateKind kind : {GateKind::vector, GateKind::scalar})
    for (const float gate : {0.6F, 20.0F}) {
      out.push_back({{{150, 2, 64, 64, 64, kind}, gate, 36, true}, 2});
      out.push_back({{{257, 2, 128, 128, 64, kind}, gate, 37, true}, 1});
    }
  return out;
}

}  // namespace baton::test
