// SPDX-License-Identifier: Apache-2.0
// In which order a rank's host enqueues its steps, and on which of two streams. Host code that
// needs no GPU.
//
// Compute steps have a stream of their own, so that an exchange can overlap them; everything else
// goes between ranks or waits for what does, and shares the other stream. An operation waits for
// one of the other stream by an event.
#pragma once

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "collectives/schedule/schedule.hpp"

namespace baton {

/// Steps that are enqueued at once: one compute step, or some steps of the exchange.
struct LaunchOperation {
  /// Indices of the steps in the schedule, in order.
  std::vector<int> steps;
  /// True if the operation runs on the stream of compute steps.
  bool computes = false;
  /// The operation of the other stream that this operation waits for; -1 if there is none, or if an
  /// earlier wait covers it.
  int waits_for = -1;
  /// The first instruction of the operation in a peer program.
  int first = 0;
  /// The instruction behind the last one of the operation in a peer program.
  int last = 0;
  /// True for an exchange of a peer program during which a compute step may run.
  bool overlaps_compute = false;
};

/// Collects the operations of one rank, in the order of enqueuing.
class LaunchPlanner {
 public:
  /// Makes a planner of `schedule`, which must outlive it.
  explicit LaunchPlanner(const Schedule& schedule)
      : schedule_(schedule), operation_of_(schedule.steps().size(), -1) {}

  /// The last operation added so far of the other stream that `steps` wait for; -1 for none.
  int awaited(const std::vector<int>& steps, bool computes) const {
    int last = -1;
    for (int step : steps)
      for (int before : schedule_.steps()[step].waits_for) {
        const int operation = operation_of_[before];
        if (operation >= 0 && operations_[operation].computes != computes) last = std::max(last, operation);
      }
    return last;
  }

  /// The last compute operation added so far whose step was recorded before `step`; -1 for none.
  int compute_before(int step) const {
    int last = -1;
    for (int i = 0; i < static_cast<int>(operations_.size()); ++i)
      if (operations_[i].computes && operations_[i].steps[0] < step) last = i;
    return last;
  }

  /// True if the stream of compute steps (`computes`), or else that of exchanges, has waited for
  /// `operation` of the other stream or for a later one.
  bool has_awaited(bool computes, int operation) const { return operation <= awaited_[computes]; }

  /// Appends an operation that waits for operation `awaited` of the other stream. Returns its
  /// number.
  int add(std::vector<int> steps, bool computes, int awaited) {
    const int number = static_cast<int>(operations_.size());
    for (int step : steps) operation_of_[step] = number;
    operations_.push_back({.steps = std::move(steps),
                           .computes = computes,
                           .waits_for = has_awaited(computes, awaited) ? -1 : awaited});
    awaited_[computes] = std::max(awaited_[computes], awaited);
    return number;
  }

  /// Appends `steps` to an operation.
  void extend(int operation, const std::vector<int>& steps) {
    for (int step : steps) operation_of_[step] = operation;
    auto& all = operations_[operation].steps;
    all.insert(all.end(), steps.begin(), steps.end());
  }

  std::vector<LaunchOperation>& operations() { return operations_; }

 private:
  const Schedule& schedule_;
  std::vector<LaunchOperation> operations_;
  std::vector<int> operation_of_;       // of each step, -1 before it is added
  std::array<int, 2> awaited_{-1, -1};  // by `computes`: the last operation of the other stream waited for
};

}  // namespace baton
