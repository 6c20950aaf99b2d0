// SPDX-License-Identifier: Apache-2.0
// The device kernels against the double-precision oracle: random layers, their ranks one after another on one
// device.
//
//   every rank: segment states and gradients, scans;  the host folds the maps both ways;  every rank: output, gradients
//   |got - oracle| / |oracle| in the Frobenius norm, of o, dq, dk, dv, dg; what was not written is NaN
//
// Cost: the oracle's, a thread for every head.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <future>
#include <random>
#include <string>

#include "micro/gla_device_rank.cuh"
#include "sp_methods/kernels/reference/gla.hpp"

namespace baton {

inline constexpr double tolerance = 5e-3;

enum class Gates { layer, unit_normal, constant, near_zero, near_one, mixed };

struct Problem {
  GlaShape shape;
  Gates gates;
  float constant;
  int ranks, segments;
  unsigned seed;
  int groups = 1;
};

inline std::string name(const Problem& p) {
  const char* gates[] = {"layer", "unit_normal", "constant", "near_zero", "near_one", "mixed"};
  const char* kinds[] = {"vector", "scalar", "none"};
  char text[160];
  std::snprintf(
      text, sizeof text, "%-6s %-11s %5.2f T=%-5d H=%-2d d_k=%-3d d_v=%-3d P=%d G=%d groups=%d seed=%u",
      kinds[static_cast<int>(p.shape.gate)], gates[static_cast<int>(p.gates)], p.constant,
      static_cast<int>(p.shape.tokens), static_cast<int>(p.shape.heads), static_cast<int>(p.shape.d_k),
      static_cast<int>(p.shape.d_v), p.ranks, p.segments, p.groups, p.seed);
  return text;
}

inline float draw_gate(const Problem& p, std::mt19937& random, std::int64_t i) {
  std::normal_distribution<float> normal;
  const auto log_sigmoid = [&] { return -std::log1p(std::exp(-normal(random))); };
  switch (p.gates) {
    case Gates::layer: return log_sigmoid() / 16.0F;
    case Gates::unit_normal: return std::max(log_sigmoid(), -5.0F);
    case Gates::constant: return p.constant;
    case Gates::near_zero: return -1e-6F * std::abs(normal(random));
    case Gates::near_one: return -20.0F - 10.0F * std::abs(normal(random));
    case Gates::mixed: return i % 3 == 0 ? -12.0F : log_sigmoid() / 16.0F;
  }
  return 0.0F;
}

/// A layer's inputs, rounded to bf16.
struct HostInputs {
  std::vector<Bf16> q, k, v, g, d_o;

  explicit HostInputs(const Problem& p) {
    std::mt19937 random(p.seed);
    std::normal_distribution<float> normal;
    const auto rows = p.shape.tokens * p.shape.heads;
    const auto fill = [&](std::vector<Bf16>& x, std::int64_t width) {
      for (std::int64_t i = 0; i < rows * width; ++i) x.push_back(__float2bfloat16(normal(random)));
    };
    fill(q, p.shape.d_k);
    fill(k, p.shape.d_k);
    fill(v, p.shape.d_v);
    fill(d_o, p.shape.d_v);
    for (std::int64_t i = 0; i < rows * p.shape.gate_width(); ++i)
      g.push_back(__float2bfloat16(draw_gate(p, random, i)));
  }
};

inline std::vector<double> head_of(const std::vector<Bf16>& x, std::int64_t head, std::int64_t heads,
                                   std::int64_t width) {
  std::vector<double> out;
  if (width == 0) return out;
  for (std::size_t row = size(head * width); row < x.size(); row += size(heads * width))
    for (std::int64_t c = 0; c < width; ++c) out.push_back(__bfloat162float(x[row + size(c)]));
  return out;
}

struct HeadResults {
  std::vector<double> o, dq, dk, dv, dg;
};

inline HeadResults oracle_of_head(const HostInputs& x, const GlaShape& s, std::int64_t head) {
  const auto q = head_of(x.q, head, s.heads, s.d_k), k = head_of(x.k, head, s.heads, s.d_k);
  const auto v = head_of(x.v, head, s.heads, s.d_v), d_o = head_of(x.d_o, head, s.heads, s.d_v);
  const auto g = head_of(x.g, head, s.heads, s.gate_width());
  const ReferenceInputs in{q, k, v, g, {}};
  const auto gradients = gla_reference_backward(in, d_o, {}, s);
  return {gla_reference_forward(in, s).o, gradients.dq, gradients.dk, gradients.dv, gradients.dg};
}

/// Sums of squares of an error and of what it is relative to.
struct ErrorSum {
  double difference = 0, norm = 0;
  bool finite = true;

  void add(const std::vector<double>& got, const std::vector<double>& oracle) {
    for (std::size_t i = 0; i < oracle.size(); ++i) {
      difference += (got[i] - oracle[i]) * (got[i] - oracle[i]);
      norm += oracle[i] * oracle[i];
      finite = finite && std::isfinite(got[i]);
    }
  }
  double relative() const {
    if (!finite) return INFINITY;
    return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
  }
};

/// What comes in at each rank: the fold of the maps of those before it in the given order.
inline void hand_on(std::vector<std::unique_ptr<Rank>>& ranks, bool forward) {
  std::vector<float> carry;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Rank& rank = *ranks[forward ? i : ranks.size() - 1 - i];
    const PassMemory& pass = forward ? rank.before : rank.after;
    const auto decay = pass.map_decay.host(), state = pass.map_state.host();
    if (!carry.empty()) (forward ? rank.prefix : rank.suffix) = std::make_unique<DeviceArray<float>>(carry);
    carry.resize(state.size(), 0.0F);
    for (std::size_t e = 0; e < state.size(); ++e)
      carry[e] = decay[e / size(rank.call.shape.d_v)] * carry[e] + state[e];
  }
}

/// Runs a head group of a problem on ranks in a row, all on this device.
inline void run_ranks(const LayerMemory& memory, const Problem& p, const Work& work) {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int r = 0; r < p.ranks; ++r) {
    const auto first = p.shape.tokens * r / p.ranks;
    GlaShape share = p.shape;
    share.tokens = p.shape.tokens * (r + 1) / p.ranks - first;
    const int segments = static_cast<int>(std::min<std::int64_t>(p.segments, (share.tokens + 63) / 64));
    ranks.push_back(std::make_unique<Rank>(memory, share, work, first, segments));
  }
  for (auto& rank : ranks) {
    rank->segment_states();
    rank->scan(rank->before);
    rank->segment_gradients();
    rank->scan(rank->after);
  }
  hand_on(ranks, true);
  hand_on(ranks, false);
  for (auto& rank : ranks) {
    rank->output();
    rank->chunk_states();
    rank->gradients();
  }
  must(cudaDeviceSynchronize());
}

/// Prints one line; true if every error is within the tolerance.
inline bool check(const Problem& p, const HostInputs& x, std::vector<std::future<HeadResults>>& oracle) {
  LayerMemory memory(p.shape);
  const auto put = [](const DeviceArray<Bf16>& into, const std::vector<Bf16>& from) {
    must(cudaMemcpy(into.at(), from.data(), from.size() * sizeof(Bf16), cudaMemcpyHostToDevice));
  };
  put(memory.q, x.q), put(memory.k, x.k), put(memory.v, x.v), put(memory.g, x.g), put(memory.d_o, x.d_o);
  for (int g = 0; g < p.groups; ++g) run_ranks(memory, p, group_of(p.shape, g, p.groups));
  const GlaShape& s = p.shape;
  const std::vector<Bf16> got[] = {memory.o.host(), memory.dq.host(), memory.dk.host(), memory.dv.host(),
                                   memory.dg.host()};
  const std::int64_t widths[] = {s.d_v, s.d_k, s.d_k, s.d_v, s.gate_width()};
  ErrorSum errors[5];
  for (std::int64_t h = 0; h < s.heads; ++h) {
    const HeadResults head = oracle[size(h)].get();
    const std::vector<double>* want[] = {&head.o, &head.dq, &head.dk, &head.dv, &head.dg};
    for (int i = 0; i < 5; ++i) errors[i].add(head_of(got[i], h, s.heads, widths[i]), *want[i]);
  }
  bool good = true;
  std::printf("%s ", name(p).c_str());
  for (const auto& error : errors) {
    std::printf(" %.1e", error.relative());
    good = good && error.relative() <= tolerance;
  }
  std::printf("%s\n", good ? "" : "  WRONG");
  return good;
}

inline Problem random_problem(std::mt19937& random) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  Problem p;
  p.shape = {pick(1, 1500),   pick(1, 3), 64 * pick(1, 2),
             64 * pick(1, 2), 64,         static_cast<GateKind>(pick(0, 2))};
  p.gates = static_cast<Gates>(pick(0, 5));
  p.constant = -0.1F * static_cast<float>(pick(0, 90));
  p.ranks = p.shape.tokens < 200 ? 1 : pick(1, 4);
  p.segments = pick(1, 6);
  p.seed = static_cast<unsigned>(random());
  p.groups = pick(1, static_cast<int>(p.shape.heads));
  return p;
}

inline std::vector<Problem> problems(unsigned seed) {
  std::vector<Problem> out;
  std::mt19937 random(seed);
  const auto vector = GateKind::vector;
  out.push_back({{64, 1, 128, 128, 64, vector}, Gates::layer, 0, 1, 1, seed});
  out.push_back({{256, 1, 128, 128, 64, vector}, Gates::layer, 0, 1, 1, seed});
  out.push_back({{1000, 2, 128, 128, 64, vector}, Gates::layer, 0, 1, 4, seed});
  for (const GateKind kind : {GateKind::vector, GateKind::scalar, GateKind::none}) {
    for (const std::int64_t d_k : {64, 128})
      for (const std::int64_t d_v : {64, 128})
        out.push_back({{777, 2, d_k, d_v, 64, kind}, Gates::layer, 0, 2, 3, seed + 1});
  }
  for (const GateKind kind : {GateKind::vector, GateKind::scalar}) {
    for (const Gates gates : {Gates::unit_normal, Gates::near_zero, Gates::near_one, Gates::mixed})
      out.push_back({{600, 2, 128, 128, 64, kind}, gates, 0, 2, 3, seed + 2});
    for (const float constant : {-1.0F, -1.8F, -2.5F, -5.0F, -8.0F})
      out.push_back({{600, 2, 128, 128, 64, kind}, Gates::constant, constant, 2, 3, seed + 3});
  }
  for (int i = 0; i < 12; ++i) out.push_back(random_problem(random));
  out.push_back({{4096, 16, 128, 128, 64, vector}, Gates::layer, 0, 1, 8, seed + 4});
  return out;
}

/// Checks every problem; the oracle's heads run on all cores meanwhile.
inline bool check_all(unsigned seed) {
  std::printf("check, seed %u; relative errors of o dq dk dv dg\n", seed);
  const auto all = problems(seed);
  std::vector<std::unique_ptr<HostInputs>> inputs;
  std::vector<std::vector<std::future<HeadResults>>> oracles(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    inputs.push_back(std::make_unique<HostInputs>(all[i]));
    for (std::int64_t h = 0; h < all[i].shape.heads; ++h)
      oracles[i].push_back(
          std::async(std::launch::async, oracle_of_head, std::cref(*inputs[i]), all[i].shape, h));
  }
  int wrong = 0;
  for (std::size_t i = 0; i < all.size(); ++i) wrong += check(all[i], *inputs[i], oracles[i]) ? 0 : 1;
  std::printf("%zu problems, %d wrong\n", all.size(), wrong);
  return wrong == 0;
}

}  // namespace baton
