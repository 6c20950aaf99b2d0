// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "collectives/executors/timing.hpp"

namespace baton::doctor {

bool exceeds(const Repeats& repeats, double least) {
  if (repeats.empty()) return false;
  const auto repeated =
      std::count_if(repeats.begin(), repeats.end(), [&](double x) { return x >= least / 2; });
  return median(repeats) >= least && 5 * repeated >= 4 * static_cast<std::ptrdiff_t>(repeats.size());
}

double typical(const Repeats& repeats, double otherwise) {
  return repeats.empty() ? otherwise : median(repeats);
}

double mean(const Repeats& repeats) {
  if (repeats.empty()) return 0;
  return std::accumulate(repeats.begin(), repeats.end(), 0.0) / static_cast<double>(repeats.size());
}

std::string counted(const std::string& noun, std::vector<int> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  if (numbers.empty()) return "no " + noun;
  if (numbers.size() == 1) return fmt::format("{} {}", noun, numbers[0]);
  std::vector<std::string> runs;  // of numbers without a gap
  for (std::size_t first = 0, last = 0; first < numbers.size(); first = last + 1) {
    for (last = first; last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1;) ++last;
    if (last > first + 1)
      runs.push_back(fmt::format("{} to {}", numbers[first], numbers[last]));
    else
      for (std::size_t i = first; i <= last; ++i) runs.push_back(std::to_string(numbers[i]));
  }
  std::string text = noun + "s ";
  for (std::size_t i = 0; i < runs.size(); ++i)
    text += (i == 0 ? "" : i + 1 == runs.size() ? " and " : ", ") + runs[i];
  return text;
}

std::string shown_seconds(double seconds) {
  const char* unit = seconds < 1e-3 ? "us" : seconds < 1 ? "ms" : "s";
  const double value = seconds * (seconds < 1e-3 ? 1e6 : seconds < 1 ? 1e3 : 1);
  return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, unit);
}

std::string percent(double part) { return fmt::format("{:.0f} %", 100 * part); }

std::string times(double excess) { return fmt::format("{:.{}f} times", 1 + excess, excess < 9 ? 1 : 0); }

}  // namespace baton::doctor
