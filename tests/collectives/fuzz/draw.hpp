// SPDX-License-Identifier: Apache-2.0
// Schedules of the six verbs, drawn from bytes. They are valid at first, and then some steps are
// changed, so that most of them are almost right.
//
//   draw the ranks and what their buffers are
//   draw events in one order for all ranks: a message, or a local step of one rank
//   change some steps: drop, repeat, swap or move them, draw their peer or their slices anew
//   record what is left by the verbs
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/schedule/schedule.hpp"

namespace baton {

/// Numbers from bytes. Behind the last byte every number is the least that was asked for.
class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  /// A number in [least, most], which must hold at most 256.
  int pick(int least, int most) {
    return at_ < bytes_.size() ? least + bytes_[at_++] % (most - least + 1) : least;
  }
  /// True in one of `n` cases.
  bool once_in(int n) { return pick(0, n - 1) == n - 1; }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

/// Schedules, one a rank. Some of their steps may be wrong.
struct DrawnSchedules {
  std::vector<Schedule> schedules;
  /// For each rank the numbers of the steps that were recorded right behind a fence.
  std::vector<std::vector<int>> fences;
};

/// The most ranks that schedules are drawn for.
inline constexpr int most_drawn_ranks = 4;

/// Draws schedules that the verbs take, whether they can run or not.
DrawnSchedules draw_schedules(Bytes bytes);

/// A native that no executor has.
inline constexpr const char* unknown_native = "unknown_native";

}  // namespace baton
