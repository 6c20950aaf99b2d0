// SPDX-License-Identifier: Apache-2.0
// The standard error of a launch, taken apart line by line: reports of its ranks, what the launcher
// says of a failure, and the rest, which passes through.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace baton {

class ErrorLines {
 public:
  /// Reads on; `text` may end within a line.
  void add(std::string_view text);
  /// The signal that the launcher says a process died of, such as "signal 9 (Killed)"; may be
  /// empty.
  const std::string& signal() const { return signal_; }
  /// The rank that the launcher says died.
  std::optional<int> dead_rank() const { return dead_rank_; }
  /// The launcher's own words in one line: the first of its lines and of its notices that name a
  /// cause. Empty if there are none.
  std::string launcher_words() const;

 private:
  void take();
  void take_notice();
  void take_death(std::size_t at);
  void pass_on() const;
  bool is_of_launcher() const;

  std::string line_;
  bool in_notice_ = false;
  std::string notice_;              // the one that is being read
  std::string cause_, cause_line_;  // the first notice and the first line that name a cause
  std::string any_notice_;          // the last one if it is of those that follow any failure
  std::string signal_;
  std::optional<int> dead_rank_;
};

}  // namespace baton
