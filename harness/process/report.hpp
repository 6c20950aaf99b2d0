// SPDX-License-Identifier: Apache-2.0
// What ranks report of a failure. A report is values, so that nothing has to be read out of a
// sentence, and a signal handler may make one and send it.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton {

/// A text that a signal handler may put together. What is too long for it is cut.
class Line {
 public:
  Line& operator<<(std::string_view text) {
    const std::size_t count = std::min(text.size(), text_.size() - length_);
    std::memcpy(text_.data() + length_, text.data(), count);
    length_ += count;
    return *this;
  }

  Line& operator<<(int number) {
    std::array<char, 12> digits;
    return *this << std::string_view(digits.begin(), std::to_chars(digits.begin(), digits.end(), number).ptr);
  }

  std::string_view view() const { return {text_.data(), length_}; }
  /// Writes the text behind "baton: " on the standard error, by one call: lines of several ranks
  /// must not mix. Async-signal-safe.
  void print() const;

 private:
  std::array<char, 2048> text_;
  std::size_t length_ = 0;
};

/// A report of one failure. The functions that make and send one are async-signal-safe.
struct Report {
  enum class What {
    error,
    died,
    gone,
    stopped,
    lost,
    waited,
    exceeded,
    ended,
    ended_first,
    was,
    interrupted
  };

  What what = What::error;
  /// The rank of which it is said; none of an interrupted process, and perhaps none of an error.
  std::optional<int> rank = {};
  /// What the ranks ran, the name of a case or "start-up"; empty if it does not matter.
  Line part = {};
  /// The step of its schedule that the rank was in, and the rank for whose message it waited there.
  std::optional<int> step = {}, waits_for = {};
  /// True if the rank was between two rounds of the part.
  bool between_rounds = false;
  /// The text of an error.
  Line text = {};

  /// The report in words, without the part if that is `known`.
  Line sentence(std::string_view known = {}) const;
  /// Sends the report to the process that started the launch, or prints it where there is none.
  void send() const;
};

/// Lets this process append the reports that it sends to the file `path`, a line of JSON each.
void report_into(const std::string& path);

/// The reports of a file that stand behind its first `from` bytes, between lines of any other kind.
std::vector<Report> reports_in(const std::string& path, std::uintmax_t from);

}  // namespace baton
