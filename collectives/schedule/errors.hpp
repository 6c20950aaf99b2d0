// SPDX-License-Identifier: Apache-2.0
// The three kinds of errors, each with its exit code, and the reason why a case is not run at all.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace baton {

/// The user asked for something impossible. Exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A schedule is wrong. The text names the collective, the rank, the step and the line that
/// recorded it. Exit code 3.
struct ScheduleError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A library or the system failed. The text names the call, the code with its text, and file and
/// line. Exit code 1.
struct SystemError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The reason why something cannot be done, in words for the user; empty if it can be done.
///
///   if (const Refusal refusal = executor.unsupported(schedules)) return skip(refusal.reason());
class Refusal {
 public:
  /// Refuses nothing.
  Refusal() = default;
  /// An empty reason refuses nothing.
  Refusal(std::string reason) : reason_(std::move(reason)) {}
  Refusal(const char* reason) : reason_(reason) {}

  explicit operator bool() const { return !reason_.empty(); }
  const std::string& reason() const { return reason_; }

  bool operator==(const Refusal&) const = default;

 private:
  std::string reason_;
};

}  // namespace baton
