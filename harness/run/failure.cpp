// SPDX-License-Identifier: Apache-2.0
#include "harness/run/failure.hpp"

#include <fmt/format.h>

#include <charconv>

namespace baton {
namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  if (const auto at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

std::optional<int> number_after(const std::string& word, const std::string& text) {
  int number = 0;
  for (auto at = text.find(word + " "); at != std::string::npos; at = text.find(word + " ", at + 1)) {
    const char* digits = text.data() + at + word.size() + 1;
    if (std::from_chars(digits, text.data() + text.size(), number).ec == std::errc{}) return number;
  }
  return std::nullopt;
}

/// The report that says most about where a rank was in the case called `name`: a step says more
/// than a pause between rounds. Empty if none says it.
std::string place_in(const LaunchEnd& end, const std::string& name) {
  std::string place;
  for (const std::string& report : end.reports) {
    const std::string where = replaced(report, " was in " + name, " was");
    const bool has_step = where.find(" at step ") != std::string::npos;
    const bool has_pause = where.find(" between two rounds") != std::string::npos;
    if (where != report && (has_step || (has_pause && place.empty()))) place = where;
    if (where != report && has_step) return place;
  }
  return place;
}

}  // namespace

Failure failure_of(const LaunchEnd& end, const std::string& name) {
  std::string reason;
  for (const std::string& report : end.reports)
    if (reason.empty() && report.find(" was in " + name) == std::string::npos)
      reason = replaced(report, " in " + name, "");
  if (reason.empty()) reason = fmt::format("its launch ended with exit code {}", end.exit_code);
  const bool is_waiting =
      reason.find(" died") == std::string::npos && reason.find(" stopped") == std::string::npos;
  const auto awaited = is_waiting ? number_after("waiting for rank", reason) : std::nullopt;
  const auto rank = awaited ? awaited : number_after("rank", reason);
  if (!end.signal.empty() && reason.find(" died") != std::string::npos) reason += " of " + end.signal;
  const std::string place = reason.find(" at step ") == std::string::npos ? place_in(end, name) : "";
  if (!place.empty()) reason += "; " + place;
  return {.reason = reason,
          .rank = rank,
          .step = number_after("step", reason),
          .exit_code = end.exit_code,
          .seconds = end.seconds};
}

}  // namespace baton
