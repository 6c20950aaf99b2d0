// SPDX-License-Identifier: Apache-2.0
// Which receive belongs to which send, over all ranks: message number n from a to b is the n-th send and the
// n-th receive.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "collectives/schedule/schedule.hpp"

namespace baton {

/// Steps of all ranks counted through, and the message pairs among them.
class Matching {
 public:
  /// Throws ScheduleError where a send or receive has no partner or the sizes differ.
  Matching(const std::string& collective, std::span<const Schedule> schedules);

  /// The number of all steps.
  int steps() const { return first_.back(); }
  /// The number of step `index` of `rank` among all steps.
  int number(int rank, int index) const { return first_[rank] + index; }
  /// The partner of a message step, -1 for any other step.
  int partner(int number) const { return partner_[number]; }
  /// The rank of a step.
  int rank(int number) const;
  const Step& step(int number) const;
  /// "collective: rank 1, step 4 (recv, all_scan.cpp:31)".
  std::string name(int number) const;

 private:
  void pair_messages();

  std::string collective_;
  std::span<const Schedule> schedules_;
  std::vector<int> first_;
  std::vector<int> partner_;
};

}  // namespace baton
