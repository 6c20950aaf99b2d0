// SPDX-License-Identifier: Apache-2.0
#include "harness/options/flag_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "collectives/schedule/errors.hpp"
#include "harness/machine/system.hpp"

namespace baton {
namespace {

[[noreturn]] void refuse(const FlagRules& rules, const std::string& word, const std::string& why) {
  throw UsageError(fmt::format("{}: {} {}", rules.name, quoted(word), why));
}

/// `word` without the minus before it, if there is one.
std::string without_sign(const std::string& word) { return word.substr(word.rfind('-', 0) == 0 ? 1 : 0); }

/// The number in `digits` times `unit`. Throws UsageError outside of the flag's range.
std::uint64_t within_range(const FlagRules& rules, const std::string& word, const std::string& digits,
                           std::uint64_t unit) {
  const bool is_negative = word[0] == '-';
  std::uint64_t count = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  const bool fits = read.ec == std::errc{} && count <= rules.most / unit && count * unit >= rules.least &&
                    (!is_negative || count == 0);
  if (!fits) refuse(rules, word, fmt::format("is not in range {} to {}", rules.least, rules.most));
  return count * unit;
}

std::uint64_t whole_number(const FlagRules& rules, const std::string& word) {
  const std::string digits = without_sign(word);
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos)
    refuse(rules, word, "is not a whole number");
  return within_range(rules, word, digits, 1);
}

std::uint64_t sized_number(const FlagRules& rules, const std::string& word) {
  const std::string number = without_sign(word);
  const std::size_t end = std::min(number.find_first_not_of("0123456789"), number.size());
  std::string unit = number.substr(end);
  for (char& letter : unit) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  if (unit.ends_with('b')) unit.pop_back();
  if (unit.size() == 2 && unit.ends_with('i') && number.size() == end + 3) unit.pop_back();
  const std::string units = "kmgtpe";
  const std::size_t power = unit.empty() ? 0 : units.find(unit) + 1;
  if (end == 0 || unit.size() > 1 || (power == 0 && !unit.empty()))
    refuse(rules, word, "is not " + rules.sized);
  return within_range(rules, word, number.substr(0, end), std::uint64_t{1} << (10 * power));
}

}  // namespace

std::uint64_t number_in(const FlagRules& rules, const std::string& word) {
  return rules.sized.empty() ? whole_number(rules, word) : sized_number(rules, word);
}

double real_in(const FlagRules& rules, const std::string& word) {
  double value = 0;
  const char* end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, value);
  if (read.ptr != end || read.ec == std::errc::invalid_argument) refuse(rules, word, "is not a number");
  if (read.ec != std::errc{} || !(value >= rules.least_real && value <= rules.most_real))
    refuse(rules, word, fmt::format("is not in range {} to {}", rules.least_real, rules.most_real));
  return value;
}

std::string word_in(const FlagRules& rules, const std::string& word) {
  if (word.empty() || word.rfind("--", 0) == 0)
    throw UsageError(fmt::format("{} needs a value, found {}", rules.name, quoted(word)));
  if (!rules.words.empty() && std::find(rules.words.begin(), rules.words.end(), word) == rules.words.end())
    refuse(rules, word, fmt::format("is not one of {}", fmt::join(rules.words, ", ")));
  return word;
}

std::vector<std::string> parts_of(const FlagRules& rules, const std::vector<std::string>& words) {
  constexpr std::size_t most_values = 4096;
  std::vector<std::string> parts;
  for (const std::string& word : words)
    for (std::size_t begin = 0; begin <= word.size(); begin += parts.back().size() + 1)
      parts.push_back(word.substr(begin, word.find(',', begin) - begin));
  if (parts.size() > most_values)
    throw UsageError(fmt::format("{}: {} values, at most {}", rules.name, parts.size(), most_values));
  return parts;
}

}  // namespace baton
