// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/axis_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace baton {

namespace {

/// Values as texts, the shortest ones that read back. There is no default, so that a type of value
/// without a text does not compile.
struct Text {
  std::string operator()(std::monostate) const { return {}; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(double value) const {
    std::array<char, 32> digits{};
    return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
  }
  std::string operator()(const std::string& value) const { return value; }
};

/// True if a record without the key stands for the value.
struct IsAbsent {
  std::string_view absent;

  bool operator()(std::monostate) const { return true; }
  bool operator()(bool value) const { return value == (absent == "true"); }
  bool operator()(std::int64_t value) const { return absent == Text{}(value); }
  bool operator()(double value) const { return absent == Text{}(value); }
  bool operator()(const std::string& value) const {
    return value.empty() || absent == fmt::format("\"{}\"", value);
  }
};

}  // namespace

std::string AxisValue::text() const {
  if (!words.empty()) return words;
  const schema::Field& field = key.field();
  if (std::visit(IsAbsent{field.absent}, value)) return {};
  const std::string text = std::visit(Text{}, value);
  if (std::holds_alternative<std::string>(value) && !field.is_named) return text;
  return text == "true" ? std::string(field.key) : fmt::format("{}:{}", field.key, text);
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
