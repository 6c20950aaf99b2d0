// SPDX-License-Identifier: Apache-2.0
#include "harness/run/failure.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "harness/machine/system.hpp"
#include "harness/process/report_line.hpp"

namespace baton {
namespace {

/// `text` without the last word, " in ", of what is said of a rank in front of `name`, the case.
std::string without_case(std::string text, std::string_view said, const std::string& name) {
  constexpr std::string_view in = " in ";
  const std::string words = std::string(said) + name;
  const auto at = text.find(words);
  return at == std::string::npos ? text : text.erase(at + said.size() - in.size(), in.size() + name.size());
}

std::optional<int> number_after(std::string_view word, const std::string& text) {
  int number = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const char* digits = text.data() + at + word.size();
    if (std::from_chars(digits, text.data() + text.size(), number).ec == std::errc{}) return number;
  }
  return std::nullopt;
}

bool has(const std::string& text, std::string_view words) { return text.find(words) != std::string::npos; }

/// What is said of a rank, without the case: " died".
bool says(const std::string& reason, std::string_view said) {
  return has(reason, said.substr(0, said.size() - std::string_view(" in ").size()));
}

/// The report that says most about where a rank was in the case called `name`: a step says more
/// than a pause between rounds. Empty if none says it.
std::string place_in(const LaunchEnd& end, const std::string& name) {
  std::string place;
  for (const std::string& report : end.reports) {
    const std::string where = without_case(report, said::was, name);
    const bool has_step = has(where, said::at_step), has_pause = has(where, said::between_rounds);
    if (where != report && (has_step || (has_pause && place.empty()))) place = where;
    if (where != report && has_step) return place;
  }
  return place;
}

/// Why the launch ended: the first report that does not only tell where a rank was. The launcher
/// may know of a death that no rank has seen, as when the one that would tell it has ended too.
std::string reason_of(const LaunchEnd& end, const std::string& name) {
  const std::string in_case = " in " + name;
  for (const std::string& report : end.reports) {
    if (has(report, std::string(said::was) + name)) continue;
    if (!end.death.empty() && has(report, std::string(said::ended) + name)) continue;
    std::string reason = report;
    if (const auto at = reason.find(in_case); at != std::string::npos) reason.erase(at, in_case.size());
    return reason;
  }
  if (!end.death.empty()) return end.death;
  const std::string words = one_line(end.launcher_words);
  return fmt::format("its launch ended with exit code {}{}", end.exit_code,
                     words.empty() ? "" : ": " + words);
}

}  // namespace

Failure failure_of(const LaunchEnd& end, const std::string& name) {
  std::string reason = reason_of(end, name);
  const bool is_waiting = !says(reason, said::died) && !says(reason, said::stopped);
  const auto awaited = is_waiting ? number_after(said::waiting_for, reason) : std::nullopt;
  const auto rank = awaited ? awaited : number_after(said::rank, reason);
  if (!end.signal.empty() && says(reason, said::died) && !has(reason, end.signal))
    reason += " of " + end.signal;
  const std::string place = has(reason, said::at_step) ? "" : place_in(end, name);
  if (!place.empty()) reason += "; " + place;
  return {.reason = reason,
          .rank = rank,
          .step = number_after("step ", reason),
          .exit_code = end.exit_code,
          .seconds = end.seconds};
}

}  // namespace baton
