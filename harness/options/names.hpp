// SPDX-License-Identifier: Apache-2.0
// Looking names up for people who mistype.
#pragma once

#include <string>
#include <vector>

namespace baton {

/// The words, each of which must be one of `known`, none twice; "all" stands for all of them. Throws UsageError that
/// names the nearest known one.
std::vector<std::string> chosen(const std::string& what, const std::vector<std::string>& words,
                                const std::vector<std::string>& known);

/// The one of `known` that differs from `word` by the fewest edits, or an empty string where none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

}  // namespace baton
