// SPDX-License-Identifier: Apache-2.0
// The four things that can go wrong, each with its exit code.
#pragma once

#include <stdexcept>
#include <string>

namespace baton {

/// The user asked for something that cannot be. Exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A schedule is wrong: names the collective, the rank, the step and the line that recorded it. Exit code 3.
struct ScheduleError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A library or the system failed: what was called, the code and its text, file and line. Exit code 1.
struct SystemError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A result differed from the oracle's. Exit code 4, after the row is printed.
struct WrongResult : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace baton
