// SPDX-License-Identifier: Apache-2.0
#include "harness/process/error_lines.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <sstream>

namespace baton {
namespace {

/// The words of a text with one blank between them.
std::string in_one_line(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

/// True for a line that a launcher draws around its notices: "-----" or "*****".
bool is_rule(const std::string& line) {
  return line.size() > 20 && (line[0] == '-' || line[0] == '*') &&
         line.find_first_not_of(std::string{line[0], '\n'}) == std::string::npos;
}

bool has_one_of(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words,
                             [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

/// True for a notice with which Open MPI ends every launch of which a process failed.
bool is_epilogue(const std::string& notice) {
  return has_one_of(notice, {"detected that one or more processes", "Primary job terminated normally",
                             "MPI_ABORT was invoked", "noticed that process rank"});
}

/// True for a notice that follows those that name the cause.
bool follows_a_cause(const std::string& notice) {
  return has_one_of(notice, {"It looks like orte_init failed", "It looks like MPI_INIT failed"});
}

/// True for a line of a library of the launcher, such as libevent's "[warn] Epoll MOD(1) on fd 25
/// failed." while it ends its processes, or of its answer to a second signal.
bool is_noise(const std::string& line) {
  return line.starts_with("[warn] ") || line.starts_with("mpiexec: abort is already in progress");
}

/// True for a line that tells where in Open MPI an error was met, or that it was met again.
bool is_trace(const std::string& line) {
  return has_one_of(line, {" *** ", "ORTE_ERROR_LOG", "help message", "orte_base_help_aggregate"});
}

}  // namespace

void ErrorLines::add(std::string_view text) {
  for (const char c : text) {
    line_ += c;
    if (c == '\n') take(), line_.clear();
  }
}

std::string ErrorLines::launcher_words() const {
  if (cause_.empty() && cause_line_.empty()) return any_notice_;
  return cause_line_ + (cause_.empty() || cause_line_.empty() ? "" : " ") + cause_;
}

void ErrorLines::take() {
  constexpr std::string_view death = "exited on ";
  if (is_rule(line_)) {
    if (in_notice_) take_notice();
    in_notice_ = !in_notice_;  // the launcher's notices stand between two rules
  } else if (const auto at = line_.find(death); in_notice_ && at != std::string::npos) {
    take_death(at + death.size());
  } else if (in_notice_) {
    notice_ += line_;
  } else if (is_of_launcher()) {
    if (cause_line_.empty() && cause_.empty() && !is_trace(line_))
      cause_line_ = in_one_line(line_.substr(line_.find("] ") + 2));
  } else if (!is_noise(line_)) {
    pass_on();
  }
}

void ErrorLines::take_notice() {
  const std::string notice = in_one_line(notice_);
  notice_.clear();
  if (notice.empty() || is_epilogue(notice)) return;
  std::string& kept = follows_a_cause(notice) ? any_notice_ : cause_;
  if (kept.empty()) kept = notice;
}

/// Reads a line such as "process rank 1 with PID 4711 on node host exited on signal 9 (Killed).",
/// in which the signal begins at `at`.
void ErrorLines::take_death(std::size_t at) {
  constexpr std::string_view before_rank = "process rank ";
  signal_ = line_.substr(at, line_.find(')', at) + 1 - at);
  const std::size_t rank = line_.find(before_rank);
  if (rank != std::string::npos) dead_rank_ = std::atoi(line_.c_str() + rank + before_rank.size());
}

void ErrorLines::pass_on() const {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line_.data(), line_.size());
}

/// True for a line such as "[host:4711] *** Process received signal ***".
bool ErrorLines::is_of_launcher() const {
  const auto colon = line_.find(':'), end = line_.find("] ");
  return line_[0] == '[' && colon < end && end != std::string::npos &&
         std::all_of(line_.begin() + colon + 1, line_.begin() + end,
                     [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace baton
