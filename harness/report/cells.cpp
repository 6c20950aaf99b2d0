// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "harness/report/table.hpp"

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

std::string wrapped(const std::string& text, const std::string& indent, int columns) {
  std::istringstream words(text);
  std::string all, line;
  for (std::string word; std::getline(words, word, ' ');) {
    const bool is_first = line.empty() || line == indent;
    if (!is_first && width_of(line) + 1 + width_of(word) > columns) {
      all += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
      line = indent + word;
    } else {
      line += (is_first ? "" : " ") + word;
    }
  }
  return all + line + "\n";
}

std::string marked_name(const Record& record) {
  const bool is_simulated = !find_backend(record.bench_case.executor).is_measured;
  const bool is_shared =
      (record.conditions && record.conditions->oversubscribed()) || record.bench_case.ranks_a_gpu > 1;
  return (is_simulated ? "~" : is_shared ? "!" : "") + record.bench_case.workload->name();
}

std::string run_by(const Record& record) {
  return record.bench_case.executor + (record.implementation == "schedule" ? "" : " native");
}

std::string share_of_bound(const Record& record) {
  const auto bound = record.bound_seconds();
  return bound ? fmt::format("{:.0f}", 100 * *bound / record.shown().median) : no_value;
}

std::string hidden_share(const Record& record) {
  const auto& hidden = record.shown_standing().hidden;
  return hidden ? fmt::format("{:.0f}", 100 * *hidden) : no_value;
}

std::string memory(const Record& record) {
  return record.footprint ? short_size(record.footprint->total()) : no_value;
}

std::string verified_amount(const Record& record) {
  const Verified& verified = record.verified;
  if (!record.bench_case.workload->is_layer()) return short_size(verified.elements);
  return fmt::format("{}x{}", short_size(verified.tokens), verified.heads.size());
}

std::string blocks_that_ran(const Record& record) {
  if (!record.bench_case.workload->cuts_blocks()) return no_value;
  const std::string blocks =
      record.blocks < 100000 ? fmt::format("{}", record.blocks) : short_size(record.blocks);
  return blocks + (record.bench_case.blocks == auto_blocks ? "*" : "");
}

}  // namespace baton
