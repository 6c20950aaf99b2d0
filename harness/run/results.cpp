// SPDX-License-Identifier: Apache-2.0
#include "harness/run/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "harness/machine/system.hpp"
#include "harness/process/world.hpp"

namespace baton {
namespace {

/// The word and the exit code for cases that ended so.
struct Verdict {
  Outcome outcome;
  const char* word;
  int code;
};
constexpr std::array verdicts{Verdict{Outcome::wrong, "wrong", ExitCode::wrong},
                              Verdict{Outcome::invalid, "its schedule is wrong", ExitCode::schedule},
                              Verdict{Outcome::failed, "failed", ExitCode::failed}};

}  // namespace

Outcome outcome_of(const Result& result) {
  if (result.has("failed"))
    return result.whole("exit_code") == ExitCode::schedule ? Outcome::invalid : Outcome::failed;
  if (result.has("skipped")) return Outcome::skipped;
  return result.whole("wrong") > 0 ? Outcome::wrong : Outcome::timed;
}

void Results::start_launch(int launch) {
  starts_ = launch == launch_ ? starts_ + 1 : 1;
  launch_ = launch;
  have_met_ = false;
  running_.reset();
}

void Results::end(int index, Result result) {
  if (running_ == index) running_.reset();
  if (outcome_of(result) != Outcome::timed) given_up_.insert(index);
  results_.insert_or_assign({launch_, index}, std::move(result));
}

const Result* Results::result(int launch, int index) const {
  const auto found = results_.find({launch, index});
  return found == results_.end() ? nullptr : &found->second;
}

int Results::last_launch(int index) const {
  int launch = launch_;
  while (launch > 0 && result(launch, index) == nullptr) --launch;
  return launch;
}

bool Results::is_settled(int launch, int index) const {
  return given_up_.contains(index) || result(launch, index) != nullptr;
}

bool Results::is_complete(int launch, int cases) const {
  for (int index = 0; index < cases; ++index)
    if (!is_settled(launch, index)) return false;
  return true;
}

std::vector<int> Results::unsettled(int cases) const {
  std::vector<int> all;
  for (int index = 0; index < cases; ++index)
    if (!is_settled(index)) all.push_back(index);
  if (is_reversed()) std::reverse(all.begin(), all.end());
  return all;
}

int Results::summary(const std::vector<Case>& cases) const {
  std::string lines;
  int count = 0, code = 0;
  for (const Verdict& verdict : verdicts)
    for (int index = 0; index < static_cast<int>(cases.size()); ++index)
      for (int launch = 1; launch <= launch_; ++launch) {
        const Result* found = result(launch, index);
        if (found == nullptr || outcome_of(*found) != verdict.outcome) continue;
        ++count;
        if (code == 0) code = verdict.code;
        lines += fmt::format("baton: {}: {}: {}\n", cases[index].name(), verdict.word, found->reason());
      }
  if (count > 0) fmt::print(stderr, "baton: {} of {} cases gave no time\n{}", count, cases.size(), lines);
  const auto is_skipped = [](const auto& entry) { return outcome_of(entry.second) == Outcome::skipped; };
  if (results_.empty() || !std::all_of(results_.begin(), results_.end(), is_skipped)) return code;
  fmt::print(stderr, "baton: nothing was timed, since all rows were skipped: {}\n",
             one_line(results_.begin()->second.reason(), 200));
  return ExitCode::skipped;
}

}  // namespace baton
