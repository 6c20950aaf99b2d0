// SPDX-License-Identifier: Apache-2.0
#include "harness/run/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "harness/machine/system.hpp"
#include "harness/record/cells.hpp"
#include "harness/run/results.hpp"

namespace baton {
namespace {

std::size_t columns_of_terminal() {
  winsize size{};
  const bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20;
  return is_known ? size.ws_col - 1 : terminal_columns - 1;
}

}  // namespace

std::string duration(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s", seconds);
  if (seconds < 100 * 60) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

Progress::Progress(const std::vector<Case>& cases, std::function<double()> clock)
    : cases_(cases), differences_(cases), clock_(std::move(clock)) {}

void Progress::look(const Results& results) {
  const double now = clock_();
  if (launch_ != results.launch()) launch_began_ = now, is_starting_ = true;
  launch_ = results.launch();
  const std::optional<int> running = results.running();
  if (running == running_) return;
  if (running_) note(*running_, now - began_);
  if (is_starting_ && running) start_seconds_ = now - launch_began_, is_starting_ = false;
  running_ = running;
  began_ = now;
}

void Progress::note(int index, double seconds) {
  const auto [own, is_new] = seconds_.try_emplace(index, 0);
  for (Sum* sum : {&all_, &alike_[{cases_[index].backend->name, cases_[index].ranks}]}) {
    sum->seconds += seconds - own->second;
    sum->count += is_new ? 1 : 0;
  }
  own->second = seconds;
}

/// The seconds of a case: its own if it has run, otherwise the mean of those most like it.
double Progress::expected(int index) const {
  if (const auto own = seconds_.find(index); own != seconds_.end()) return own->second;
  const auto alike = alike_.find({cases_[index].backend->name, cases_[index].ranks});
  const Sum& sum = alike == alike_.end() ? all_ : alike->second;
  return sum.seconds / sum.count;
}

std::optional<double> Progress::seconds_left(const Results& results, int launches) const {
  if (seconds_.empty() || launches == 0) return std::nullopt;
  double here = 0, later = start_seconds_;
  for (int index = 0; index < static_cast<int>(cases_.size()); ++index) {
    const double seconds = expected(index);
    later += results.is_settled(launches + 1, index) ? 0 : seconds;
    if (!results.is_settled(index)) here += seconds;
  }
  const double of_running = running_ ? std::min(clock_() - began_, expected(*running_)) : 0;
  return here - of_running + later * (launches - results.launch());
}

std::string Progress::what(const Results& results, int launches) const {
  if (!running_) return {};
  int settled = 0;
  for (int index = 0; index < static_cast<int>(cases_.size()); ++index) settled += results.is_settled(index);
  const Case& c = cases_[*running_];
  std::string text = launches == 1 ? "" : fmt::format("launch {}", results.launch());
  if (launches > 1) text += fmt::format(" of {}", launches);
  if (!text.empty()) text += ", ";
  const std::string others = differences_.of_case(c);
  return text + fmt::format("case {} of {} ({} on {}, {}, {}{}{}{})", settled + 1, cases_.size(),
                            c.workload->title(), c.backend->name, quantity(c.ranks, "rank"), size_of(c),
                            c.workload->is_layer() ? " tokens" : "", others.empty() ? "" : ", ", others);
}

std::string Progress::left(const Results& results, int launches) const {
  const auto seconds = running_ ? seconds_left(results, launches) : std::nullopt;
  return seconds ? ": about " + duration(*seconds) + " left" : "";
}

ProgressLine::ProgressLine(bool is_showing, std::function<double()> clock)
    : is_showing_(is_showing),
      is_terminal_(isatty(STDERR_FILENO) != 0),
      clock_(std::move(clock)),
      last_(clock_()) {}

bool ProgressLine::is_due() const {
  constexpr double pause = 10;
  return is_showing_ && (is_terminal_ || clock_() - last_ >= pause);
}

void ProgressLine::show(const std::string& what, const std::string& left) {
  if (!is_due() || what.empty()) return;
  if (is_terminal_) {
    fmt::print(stderr, "\r\x1b[K{}", one_line(what + left, columns_of_terminal()));
    is_shown_ = true;
  } else if (what != shown_) {
    last_ = clock_();
    shown_ = what;
    fmt::print(stderr, "{}{}\n", what, left);
  }
}

void ProgressLine::clear() {
  if (is_shown_) fmt::print(stderr, "\r\x1b[K");
  is_shown_ = false;
}

}  // namespace baton
