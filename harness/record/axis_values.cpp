// SPDX-License-Identifier: Apache-2.0
#include "harness/record/axis_values.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace baton {

std::string AxisValue::text() const {
  if (!words.empty()) return words;
  const schema::Field& field = key.field();
  if (const auto* is = std::get_if<bool>(&value)) return *is ? std::string(field.key) : "";
  if (const auto* word = std::get_if<std::string>(&value)) {
    if (word->empty() || field.absent == fmt::format("\"{}\"", *word)) return {};
    return field.is_named ? fmt::format("{}:{}", field.key, *word) : *word;
  }
  const auto* whole = std::get_if<std::int64_t>(&value);
  if (whole == nullptr || field.absent == fmt::format("{}", *whole)) return {};
  return fmt::format("{}:{}", field.key, *whole);
}

const AxisValue* AxisValues::find(schema::Key key) const {
  const auto found =
      std::find_if(values_.begin(), values_.end(), [&](const AxisValue& one) { return one.key == key; });
  return found == values_.end() ? nullptr : &*found;
}

std::string AxisValues::folded(Part whole) const {
  std::string all;
  for (const AxisValue& one : values_) {
    const std::string text = (one.parts & whole) != 0 ? one.text() : "";
    if (!text.empty()) all += (all.empty() ? "" : "/") + text;
  }
  return all;
}

}  // namespace baton
