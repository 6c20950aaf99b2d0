// SPDX-License-Identifier: Apache-2.0
// Command lines in tests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "harness/options/collective.hpp"
#include "harness/options/options.hpp"

namespace baton {

using Parse = std::optional<Options>(int, char**);

inline std::optional<Options> parse(std::vector<std::string> words,
                                    Parse* parse_options = parse_collective_options) {
  words.insert(words.begin(), "bench");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return parse_options(static_cast<int>(words.size()), argv.data());
}

inline std::string error_of(const std::vector<std::string>& words,
                            Parse* parse_options = parse_collective_options) {
  try {
    parse(words, parse_options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace baton
