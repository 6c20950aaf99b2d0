// SPDX-License-Identifier: Apache-2.0
// What softmax methods compute in each turn, counted from their schedules.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "collectives/schedule/check.hpp"
#include "sp_methods/kernels/softmax.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton::test {

/// A layer of equal widths, whose tensors have all the same size.
inline Layer softmax_layer(Pass pass, Dtype dtype = Dtype::f32, Mode mode = Mode::overlapped) {
  return {.share = {128, 2, 64, 64, 64, GateKind::none}, .pass = pass, .mode = mode, .dtype = dtype};
}

/// Elements of one rank's tensor, and of its lse, in `softmax_layer`.
inline constexpr std::int64_t tensor_elements = 128 * 2 * 64, lse_elements = 128 * 2;

inline std::vector<Schedule> schedules_of(const char* method, const Layer& layer, int ranks) {
  return build_all(find_method(method), layer, ranks);
}

/// Bytes that each rank sends.
inline std::vector<std::int64_t> sent_bytes(const char* method, const Layer& layer, int ranks) {
  std::vector<std::int64_t> bytes;
  for (const Traffic& rank : check(method, schedules_of(method, layer, ranks)).ranks)
    bytes.push_back(rank.sent_bytes);
  return bytes;
}

inline std::int64_t sum(const std::vector<std::int64_t>& of_ranks) {
  std::int64_t sum = 0;
  for (const std::int64_t bytes : of_ranks) sum += bytes;
  return sum;
}

/// The steps of a rank that work on a pair of ranks, in the order of recording.
inline std::vector<int> work_steps(const Schedule& s) {
  std::vector<int> steps;
  for (int i = 0; i < static_cast<int>(s.steps().size()); ++i) {
    const Step& step = s.steps()[i];
    if (step.verb != Verb::compute) continue;
    const std::string& name = s.kernels()[step.body].name;
    if (name == SoftmaxBlock::name || name == SoftmaxBlockGradients::name) steps.push_back(i);
  }
  return steps;
}

/// Pairs of a query and a key that the mask leaves, for each of these steps.
inline std::vector<double> visible_pairs(const Schedule& s) {
  std::vector<double> pairs;
  for (const int step : work_steps(s)) {
    const Kernel& kernel = s.kernels()[s.steps()[step].body];
    pairs.push_back((kernel.name == SoftmaxBlock::name ? parameters_of<SoftmaxBlock>(kernel)
                                                       : parameters_of<SoftmaxBlockGradients>(kernel))
                        .visible_pairs());
  }
  return pairs;
}

/// Pairs that ranks compute, and those that they have time for while the busiest rank of each turn
/// works. A rank that idles does so after its last turn.
struct TurnTime {
  double worked = 0, available = 0;

  double idle() const { return available - worked; }
};

inline TurnTime turn_time(const std::vector<Schedule>& schedules) {
  TurnTime time;
  std::vector<double> busiest;
  for (const Schedule& s : schedules) {
    const std::vector<double> pairs = visible_pairs(s);
    if (pairs.size() > busiest.size()) busiest.resize(pairs.size(), 0.0);
    for (std::size_t turn = 0; turn < pairs.size(); ++turn) {
      time.worked += pairs[turn];
      busiest[turn] = std::max(busiest[turn], pairs[turn]);
    }
  }
  for (const double pairs : busiest) time.available += pairs * static_cast<double>(schedules.size());
  return time;
}

}  // namespace baton::test
