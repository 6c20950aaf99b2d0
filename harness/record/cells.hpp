// SPDX-License-Identifier: Apache-2.0
// Texts of figures as tables have them: numbers, times, sizes, and lines that fit a terminal.
#pragma once

#include <cstdint>
#include <string>

namespace baton {

struct Case;
struct Ratio;

/// A cell without a value.
inline constexpr auto no_value = "-";

/// Columns that a terminal has; no line of the default table is longer.
inline constexpr int terminal_columns = 100;

/// A number with four significant digits or all digits before the point, whichever is longer.
std::string number(double value);

/// A time in microseconds, or in seconds with an s from a million microseconds on: at most six
/// characters.
std::string short_time(double seconds);

/// A number of bytes as a multiple of 1024^k with its letter, or with all digits.
std::string binary_size(std::int64_t bytes);

/// A number of bytes as a multiple of 1024^k with its letter, with three digits where all digits
/// would be more than five: at most six characters.
std::string short_size(std::int64_t bytes);

/// The size of a case: the tokens a rank of a layer, otherwise the bytes of a rank's state.
std::string size_of(const Case& c);

/// A ratio with its interval, such as "1.234 [1.100,1.300]".
std::string with_interval(const Ratio& ratio);

/// `text` in lines of at most `columns` characters, broken at spaces; the first keeps the spaces
/// that it begins with, and each line after it begins with `indent`. A word that is longer than a
/// line has a line of its own. Ends with a line break.
std::string wrapped(const std::string& text, const std::string& indent, int columns = terminal_columns);

/// A count with its noun, such as "1 rank" and "4 ranks", or with a plural of its own, "2
/// launches".
std::string quantity(std::int64_t count, const std::string& noun, const std::string& plural = {});

}  // namespace baton
