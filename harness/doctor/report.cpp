// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/doctor/judges.hpp"
#include "harness/doctor/placement.hpp"
#include "harness/doctor/slowness.hpp"
#include "harness/process/system.hpp"
#include "harness/record/cells.hpp"

namespace baton::doctor {
namespace {

/// The most ranks whose links are shown as numbers, and the most whose links are shown as
/// characters.
constexpr int most_in_numbers = 12, most_in_characters = 90;
constexpr std::size_t most_rows = 32;

std::string headline(const std::vector<Finding>& findings) {
  const auto problems = std::count_if(findings.begin(), findings.end(), [](const Finding& one) {
    return one.weight == Finding::Weight::problem;
  });
  if (problems == 0) return "This machine is fit to measure on: no problem was found.\n";
  return fmt::format("This machine is NOT fit to measure on: {}.\n", quantity(problems, "problem"));
}

std::string listed(const std::vector<Finding>& findings) {
  std::string text;
  int number = 0;
  for (const Finding& finding : findings) {
    const bool is_problem = finding.weight == Finding::Weight::problem;
    const std::string mark = is_problem ? fmt::format("{:2}.", ++number) : "note";
    text += wrapped(fmt::format("\n{:4} {}", mark, finding.what), "     ");
    text += fmt::format("     {}", wrapped("Do: " + finding.advice, "         ", terminal_columns - 5));
  }
  return text;
}

std::string core_text(const Readings& readings, const RankReadings& rank) {
  const Core* core = own_core(readings.host(rank.host), rank);
  if (core != nullptr) return std::to_string(core->number);
  return fmt::format("any of {}", rank.cores.size());
}

std::string ranks_table(const Readings& readings) {
  std::string text = "\nRanks, each with the same computation\n";
  text += fmt::format("{:>6} {:>10} {:>10} {:>12} {:>16} {:>10}\n", "rank", "core", "time", "to fastest",
                      "waited for core", "clock");
  double fastest = INFINITY;
  for (const RankReadings& rank : readings.ranks)
    fastest = std::min(fastest, typical(rank.spin_seconds, fastest));
  const std::vector<int> late = late_ranks(readings);
  std::size_t rows = 0, left_out = 0;
  for (const RankReadings& rank : readings.ranks) {
    const bool is_late = std::find(late.begin(), late.end(), rank.rank) != late.end();
    if (!is_late && rows >= most_rows) {
      ++left_out;
      continue;
    }
    ++rows;
    const double clock = typical(rank.clock_mhz);
    text +=
        fmt::format("{:>6} {:>10} {:>10} {:>12.2f} {:>16} {:>10}\n", rank.rank, core_text(readings, rank),
                    shown_seconds(typical(rank.spin_seconds)), typical(rank.spin_seconds) / fastest,
                    percent(typical(rank.waited)), clock > 0 ? fmt::format("{:.0f} MHz", clock) : "unknown");
  }
  if (left_out > 0) text += fmt::format("       {} more ranks, none of them late\n", left_out);
  return text;
}

/// The text of the pair of ranks `a` and `b`; empty if the pair was not measured.
template <class Text>
std::string cell(const LinkReadings& links, int a, int b, const Text& text) {
  for (const PairReadings& pair : links.pairs)
    if (pair.from == std::min(a, b) && pair.to == std::max(a, b)) return text(pair);
  return "";
}

std::string number_cell(const LinkReadings& links, int row, int column) {
  if (row == column) return "-";
  return cell(links, row, column, [&](const PairReadings& pair) {
    const double value = column > row
                             ? typical(pair.latency_seconds) * 1e6
                             : static_cast<double>(links.large_bytes) / typical(pair.large_seconds) * 1e-9;
    return fmt::format("{:.{}f}", value, value < 10 ? 2 : value < 100 ? 1 : 0);
  });
}

std::string matrix_of_numbers(const LinkReadings& links) {
  std::string text =
      fmt::format("\nLinks of {}: above the diagonal us for {} bytes, below it GB/s for {} MiB\n",
                  links.executor, links.small_bytes, links.large_bytes >> 20);
  text += "      ";
  for (int rank = 0; rank < links.ranks; ++rank) text += fmt::format(" {:>6}", rank);
  for (int row = 0; row < links.ranks; ++row) {
    text += fmt::format("\n{:>6}", row);
    for (int column = 0; column < links.ranks; ++column)
      text += fmt::format(" {:>6}", number_cell(links, row, column));
  }
  return text + "\n";
}

/// One character that says how many times slower than the usual pair a pair is.
char times_character(double times) {
  if (times < 1.5) return '.';
  return times < 9.5 ? static_cast<char>('0' + std::lround(times)) : '#';
}

std::string matrix_of_characters(const LinkReadings& links) {
  std::vector<double> latencies, larges;
  for (const PairReadings& pair : links.pairs) {
    latencies.push_back(typical(pair.latency_seconds));
    larges.push_back(typical(pair.large_seconds));
  }
  const double latency = typical(latencies, 1), large = typical(larges, 1);
  std::string text = wrapped(
      fmt::format("\nLinks of {}: the usual pair takes {} for {} bytes and {} for {} MiB ({:.1f} GB/s). How "
                  "many times as long a pair takes, above the diagonal {} bytes, below it {} MiB: '.' "
                  "below 1.5, '#' 10 and more",
                  links.executor, shown_seconds(latency), links.small_bytes, shown_seconds(large),
                  links.large_bytes >> 20, static_cast<double>(links.large_bytes) / large * 1e-9,
                  links.small_bytes, links.large_bytes >> 20),
      "");
  for (int row = 0; row < links.ranks; ++row) {
    text += fmt::format("{:>6} ", row);
    for (int column = 0; column < links.ranks; ++column) {
      const std::string mark = cell(links, row, column, [&](const PairReadings& pair) {
        return std::string(1, column > row ? times_character(typical(pair.latency_seconds) / latency)
                                           : times_character(typical(pair.large_seconds) / large));
      });
      text += row == column ? "-" : mark.empty() ? " " : mark;
    }
    text += "\n";
  }
  return text;
}

std::string devices_table(const Readings& readings) {
  std::string text;
  const auto shown = [](const DeviceReadings& device, const std::string& name, const char* unit) {
    const auto found = device.values.find(name);
    const double value = found == device.values.end() ? -1 : typical(found->second, -1);
    return value < 0 ? std::string("unknown") : fmt::format("{:.0f} {}", value, unit);
  };
  for (const RankReadings& rank : readings.ranks)
    for (const DeviceReadings& device : rank.devices)
      text += fmt::format("{:>6} {:>24.24} {:>10} {:>12} {:>12} {:>10} {:>10}\n", rank.rank, device.name,
                          shown_seconds(typical(device.work_seconds)), shown(device, "sm_clock_mhz", "MHz"),
                          shown(device, "memory_clock_mhz", "MHz"), shown(device, "power_watts", "W"),
                          shown(device, "temperature_celsius", "C"));
  if (text.empty()) return text;
  return fmt::format("\nGPUs, each with the same work\n{:>6} {:>24} {:>10} {:>12} {:>12} {:>10} {:>10}\n",
                     "rank", "GPU", "time", "clock", "memory clock", "power", "heat") +
         text;
}

const char* word(Finding::Weight weight) { return weight == Finding::Weight::problem ? "problem" : "note"; }

}  // namespace

std::string text_report(const Readings& readings, const std::vector<Finding>& findings) {
  std::string text = headline(findings) + listed(findings);
  text += wrapped(fmt::format("\nExamined: {}; {}; build {} {}", readings.machine,
                              counted("rank",
                                      [&] {
                                        std::vector<int> all;
                                        for (const RankReadings& rank : readings.ranks)
                                          all.push_back(rank.rank);
                                        return all;
                                      }()),
                              readings.build.type, readings.build.commit),
                  "    ");
  if (!readings.ranks.empty()) text += ranks_table(readings);
  text += devices_table(readings);
  for (const LinkReadings& links : readings.links)
    text += links.ranks <= most_in_numbers      ? matrix_of_numbers(links)
            : links.ranks <= most_in_characters ? matrix_of_characters(links)
                                                : "";
  return text;
}

std::string json_report(const Readings& readings, const std::vector<Finding>& findings) {
  nlohmann::ordered_json json;
  json["fit"] = is_fit(findings);
  json["findings"] = nlohmann::ordered_json::array();
  for (const Finding& one : findings)
    json["findings"].push_back({{"weight", word(one.weight)},
                                {"about", one.about},
                                {"ranks", one.ranks},
                                {"what", printable(one.what)},
                                {"advice", one.advice}});
  json["readings"] = nlohmann::ordered_json::parse(text_of(readings));
  return json.dump(2) + "\n";
}

}  // namespace baton::doctor
