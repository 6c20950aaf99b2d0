// SPDX-License-Identifier: Apache-2.0
// The lengths of packed documents, as users give them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace baton {

/// The lengths in `words`: numbers of tokens, or the path of one file with a number a line, where
/// `#` begins a comment. Throws UsageError for what is no length, and if there is no token in all.
std::vector<std::int64_t> document_lengths(const std::vector<std::string>& words);

}  // namespace baton
