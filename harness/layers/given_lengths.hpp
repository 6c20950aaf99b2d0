// SPDX-License-Identifier: Apache-2.0
// Numbers of tokens that users give one by one, such as the lengths of packed documents.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace baton {

/// The most tokens that users give together.
inline constexpr std::int64_t most_given_tokens = std::int64_t{1} << 24;

/// The numbers that the words of `flag` have: numbers of tokens, or the path of one file with a
/// number a line, where `#` begins a comment. Throws UsageError for what is no number of tokens, or
/// if all are zero.
std::vector<std::int64_t> given_lengths(const std::string& flag, const std::vector<std::string>& words);

}  // namespace baton
