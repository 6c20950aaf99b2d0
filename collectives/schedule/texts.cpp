// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/texts.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace baton {
namespace {

std::string lowered(std::string word) {
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return word;
}

/// Levenshtein's distance, row by row.
std::size_t edits(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t change = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

/// True of control characters of 8 bits, breaks of lines and marks of direction: U+0080 to U+009F,
/// U+061C, U+200E, U+200F, U+2028 to U+202E and U+2066 to U+2069.
bool is_hidden(unsigned lead, unsigned second, unsigned third) {
  if (lead == 0xc2) return second < 0xa0;
  if (lead == 0xd8) return second == 0x9c;
  if (lead != 0xe2) return false;
  const bool is_mark = third == 0x8e || third == 0x8f || (third >= 0xa8 && third <= 0xae);
  return second == 0x80 ? is_mark : second == 0x81 && third >= 0xa6 && third <= 0xa9;
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  const std::string small = lowered(word);
  const auto distance = [&](const std::string& other) { return edits(small, lowered(other)); };
  const auto closer = [&](const auto& a, const auto& b) { return distance(a) < distance(b); };
  const auto best = std::min_element(known.begin(), known.end(), closer);
  const std::size_t most = word.size() < 4 ? 1 : std::max<std::size_t>(2, word.size() / 3);
  return best != known.end() && distance(*best) <= most ? *best : "";
}

std::size_t shown_character(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : 0); };
  const unsigned lead = byte(at), second = byte(at + 1);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
  const std::size_t length = lead >= 0xc2 && lead < 0xe0 ? 2 : lead >= 0xe0 && lead < 0xf0 ? 3 : 4;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  const bool is_overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool is_no_character = (lead == 0xed && second >= 0xa0) || (lead == 0xf4 && second >= 0x90);
  return is_overlong || is_no_character || is_hidden(lead, second, byte(at + 2)) ? 0 : length;
}

}  // namespace baton
