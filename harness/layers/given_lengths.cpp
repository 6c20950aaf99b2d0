// SPDX-License-Identifier: Apache-2.0
#include "harness/layers/given_lengths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <numeric>

#include "collectives/schedule/errors.hpp"
#include "harness/options/flag_values.hpp"

namespace baton {
namespace {

constexpr const char* blanks = " \t\r";

/// The lines of a file without comments and empty ones.
std::vector<std::string> lines_of(const std::string& flag, const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    line.erase(std::min(line.find('#'), line.size()));
    const std::size_t begin = line.find_first_not_of(blanks), end = line.find_last_not_of(blanks);
    if (begin != std::string::npos) lines.push_back(line.substr(begin, end - begin + 1));
  }
  if (!file.eof())
    throw UsageError(fmt::format("{}: {} is neither a number nor a file that can be read", flag, path));
  return lines;
}

}  // namespace

std::vector<std::int64_t> given_lengths(const std::string& flag, const std::vector<std::string>& words) {
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  const bool is_file = words.size() == 1 && !words[0].empty() && !is_digit(words[0][0]);
  const FlagRules rules{.name = is_file ? flag + " " + words[0] : flag,
                        .kind = "size",
                        .least = 0,
                        .most = most_given_tokens,
                        .sized = "a number of tokens such as 4096 or 4K"};
  std::vector<std::int64_t> lengths;
  for (const std::string& word : is_file ? lines_of(flag, words[0]) : words)
    lengths.push_back(static_cast<std::int64_t>(number_in(rules, word)));
  const std::int64_t all = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  if (all < 1 || all > most_given_tokens)
    throw UsageError(fmt::format("{}: {} tokens together, not 1 to {}", rules.name, all, most_given_tokens));
  return lengths;
}

}  // namespace baton
