// SPDX-License-Identifier: Apache-2.0
#include "harness/record/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "harness/cases/case.hpp"
#include "harness/measure/statistics.hpp"

namespace baton {
namespace {

struct Unit {
  std::int64_t size;
  char letter;
};
constexpr std::array units{Unit{std::int64_t{1} << 40, 'T'}, Unit{1 << 30, 'G'}, Unit{1 << 20, 'M'},
                           Unit{1 << 10, 'K'}};

/// Characters of a text, which is UTF-8.
int width_of(const std::string& text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xc0) != 0x80; }));
}

}  // namespace

std::string number(double value) {
  const int before = value >= 1 ? static_cast<int>(std::log10(value)) + 1 : 1;
  return fmt::format("{:.{}f}", value, std::max(0, std::min(3, 4 - before)));
}

std::string short_time(double seconds) { return seconds < 1 ? number(seconds * 1e6) : number(seconds) + "s"; }

std::string binary_size(std::int64_t bytes) {
  for (const Unit& unit : units)
    if (unit.size <= 1 << 20 && bytes > 0 && bytes % unit.size == 0)
      return fmt::format("{}{}", bytes / unit.size, unit.letter);
  return fmt::format("{}", bytes);
}

std::string short_size(std::int64_t bytes) {
  constexpr std::int64_t most = 100000;
  for (const Unit& unit : units)
    if (bytes > 0 && bytes % unit.size == 0 && bytes / unit.size < most)
      return fmt::format("{}{}", bytes / unit.size, unit.letter);
  if (bytes < most) return fmt::format("{}", bytes);
  const auto largest =
      std::find_if(units.begin(), units.end(), [&](const Unit& unit) { return unit.size <= bytes; });
  const double share = static_cast<double>(bytes) / static_cast<double>(largest->size);
  return fmt::format("{:.{}f}{}", share, share >= 100 ? 0 : share >= 10 ? 1 : 2, largest->letter);
}

std::string size_of(const Case& c) {
  return short_size(c.workload->is_layer() ? c.workload->axes().whole("tokens") : c.workload->state_bytes());
}

std::string with_interval(const Ratio& ratio) {
  return fmt::format("{} [{},{}]", number(ratio.value), number(ratio.ci95[0]), number(ratio.ci95[1]));
}

std::string quantity(std::int64_t count, const std::string& noun, const std::string& plural) {
  if (count == 1) return "1 " + noun;
  return fmt::format("{} {}", count, plural.empty() ? noun + "s" : plural);
}

std::string wrapped(const std::string& text, const std::string& indent, int columns) {
  const std::string before = text.substr(0, text.find_first_not_of(' '));
  std::istringstream words(text.substr(before.size()));
  std::string all, line = before;
  for (std::string word; std::getline(words, word, ' ');) {
    const bool is_first = line == before || line == indent;
    if (!is_first && width_of(line) + 1 + width_of(word) > columns) {
      all += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
      line = indent + word;
    } else {
      line += (is_first ? "" : " ") + word;
    }
  }
  return all + line + "\n";
}

}  // namespace baton
