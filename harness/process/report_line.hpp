// SPDX-License-Identifier: Apache-2.0
// A line of a report that a signal handler may write, and what the watchdog adds to it.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace baton {

/// The words of reports that the watchdog writes and failure_of reads: what is said of a rank, in
/// front of the name of the case, and where it was, behind that.
namespace said {
inline constexpr std::string_view rank = "rank ", died = " died in ", gone = " is gone in ",
                                  stopped = " is stopped in ", lost = " is lost in ", waited = " waited in ",
                                  exceeded = " exceeded the time limit in ", ended = " was ended in ",
                                  was = " was in ", between_rounds = " between two rounds",
                                  at_step = " at step ", waiting_for = ", waiting for rank ";
}  // namespace said

/// A line of text on the standard error, written by one call when it ends: lines of several ranks
/// must not mix. Async-signal-safe. A text that is too long for a line is cut.
class Line {
 public:
  Line() { *this << "baton: "; }
  ~Line() {
    *this << "\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, text_.data(), length_);
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  Line& operator<<(std::string_view text) {
    const std::size_t count = std::min(text.size(), text_.size() - length_);
    std::memcpy(text_.data() + length_, text.data(), count);
    length_ += count;
    return *this;
  }

  Line& operator<<(int number) {
    std::array<char, 12> digits;
    auto at = digits.end();
    do *--at = static_cast<char>('0' + number % 10);
    while (number /= 10);
    return *this << std::string_view(at, static_cast<std::size_t>(digits.end() - at));
  }

 private:
  std::array<char, 1024> text_;
  std::size_t length_ = 0;
};

}  // namespace baton
