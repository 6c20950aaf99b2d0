// SPDX-License-Identifier: Apache-2.0
// The row of a case that ended its launch, and what several of them say of the others.
#pragma once

#include <string>
#include <vector>

#include "harness/cases/case.hpp"
#include "harness/process/launch.hpp"
#include "harness/record/facts.hpp"

namespace baton {

/// The failure of the case called `name`, which a launch had begun when it ended: why the launch
/// ended, the rank and the step that the report of it names, and where another rank was.
Failure failure_of(const LaunchEnd& end, const std::string& name);

/// Cases that ended launches, one after the other. After three alike, all others like them are
/// given up: each might take as long as the time limit.
class FailuresInARow {
 public:
  /// Cases are alike that have one executor and number of ranks, and one name too if `by_name`.
  FailuresInARow(const std::vector<Case>& cases, bool by_name) : cases_(cases), by_name_(by_name) {}

  void clear() { failed_.clear(); }
  /// Adds a case. Returns those that are given up with it, itself included; mostly none.
  std::vector<int> add(int index);
  /// Why they are given up, once `add` has returned some.
  std::string reason() const;

 private:
  bool are_alike(int one, int other) const;

  const std::vector<Case>& cases_;
  bool by_name_;
  std::vector<int> failed_;
};

}  // namespace baton
