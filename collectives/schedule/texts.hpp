// SPDX-License-Identifier: Apache-2.0
// Texts of users in errors: what they may have meant, and which bytes are shown as they are.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace baton {

/// The known word that differs from `word` by the fewest edits, capitals apart; empty if none is
/// near.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

/// The number of bytes of the UTF-8 character that `text` has at `at`. It is 0 if there is none, or
/// if the character is a control one, ends a line, or turns the direction of what follows.
std::size_t shown_character(const std::string& text, std::size_t at);

}  // namespace baton
