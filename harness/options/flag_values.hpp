// SPDX-License-Identifier: Apache-2.0
// The values of flags, as users write them.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace baton {

/// Rules for the values of one flag.
struct FlagRules {
  /// The name of the flag in errors.
  std::string name;
  /// The values of the flag: "nothing", "text", "whole", "size" or "real".
  std::string kind = "nothing";
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  /// The range of a real number.
  double least_real = std::numeric_limits<double>::lowest();
  double most_real = std::numeric_limits<double>::max();
  /// A description of values with a unit, such as 64K, for errors; empty if the flag takes no unit.
  std::string sized;
  /// The only words that the flag takes; empty for any.
  std::vector<std::string> words;
};

/// The number in `word`, with a unit if the flag takes one: B, K, KB, KiB, M and so on, all of them
/// powers of 1024. Digits are decimal, whatever their leading zeros. Throws UsageError for a word
/// that is no such number, and outside of the flag's range.
std::uint64_t number_in(const FlagRules& rules, const std::string& word);

/// The real number in `word`. Throws UsageError for a word that is none, and outside of the flag's
/// range.
double real_in(const FlagRules& rules, const std::string& word);

/// The `word` itself. Throws UsageError if it is empty or a flag, or none of the flag's words.
std::string word_in(const FlagRules& rules, const std::string& word);

/// The parts of all `words` between their commas, empty ones too. Throws UsageError if they are
/// more than anyone means.
std::vector<std::string> parts_of(const FlagRules& rules, const std::vector<std::string>& words);

}  // namespace baton
