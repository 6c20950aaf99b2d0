// SPDX-License-Identifier: Apache-2.0
// Look-ups with what they expect, and the words for what was found instead.
#include "collectives/simulator/topology/json_section.hpp"

#include <algorithm>

#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

using nlohmann::json;

/// As JSON on one line of plain letters, cut where it is long.
std::string shown(const json& value) {
  constexpr std::size_t longest = 60;
  const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  return text.size() <= longest ? text : text.substr(0, longest) + "...";
}

/// What stands where something else was expected.
std::string found(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array of " + std::to_string(value.size());
  return value.is_string() ? "the text " + shown(value) : shown(value);
}

std::string described(Range range) { return "from " + shown(range.least) + " to " + shown(range.most); }

bool is_within(const json& value, Range range) {
  const auto number = value.get<double>();
  return number >= range.least && number <= range.most;
}

bool is_one_line(const std::string& text) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  const auto is_blank = [](char c) { return c == ' '; };
  return std::none_of(text.begin(), text.end(), is_control) &&
         !std::all_of(text.begin(), text.end(), is_blank);
}

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
  return all;
}

}  // namespace

JsonSection::JsonSection(const json& value, std::string file, std::string path)
    : value_(value), file_(std::move(file)), path_(std::move(path)) {
  if (!value.is_object()) refuse("", "expected an object, found " + found(value));
}

void JsonSection::only(std::initializer_list<const char*> known) const {
  const std::vector<std::string> keys(known.begin(), known.end());
  for (const auto& [key, value] : value_.items())
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      refuse("", "unknown key " + shown(key) + ", expected of " + joined(keys));
}

JsonSection JsonSection::section(const std::string& key) const {
  return {value(key, "an object"), file_, path_of(key)};
}

double JsonSection::number(const std::string& key, Range range) const {
  const std::string expected = "a number " + described(range);
  const json& number = value(key, expected);
  if (!number.is_number() || !is_within(number, range)) refuse_value(key, expected);
  return number.get<double>();
}

double JsonSection::number_or(const std::string& key, Range range, double otherwise) const {
  return has(key) ? number(key, range) : otherwise;
}

std::int64_t JsonSection::whole_number(const std::string& key, Range range) const {
  const std::string expected = "a whole number " + described(range);
  const json& number = value(key, expected);
  if (!number.is_number_integer() || !is_within(number, range)) refuse_value(key, expected);
  return number.get<std::int64_t>();
}

std::string JsonSection::text(const std::string& key) const {
  const std::string expected = "one line of text";
  const json& text = value(key, expected);
  if (!text.is_string() || !is_one_line(text.get_ref<const std::string&>())) refuse_value(key, expected);
  return text.get<std::string>();
}

std::string JsonSection::word(const std::string& key, const std::vector<std::string>& words) const {
  const std::string expected = "one of " + joined(words);
  const json& word = value(key, expected);
  if (std::none_of(words.begin(), words.end(), [&](const auto& known) { return word == known; }))
    refuse_value(key, expected);
  return word.get<std::string>();
}

std::vector<JsonSection> JsonSection::sections(const std::string& key, std::size_t least,
                                               std::size_t most) const {
  const std::string expected =
      "an array of " + std::to_string(least) + " to " + std::to_string(most) + " objects";
  const json& array = value(key, expected);
  if (!array.is_array() || array.size() < least || array.size() > most) refuse_value(key, expected);
  std::vector<JsonSection> sections;
  for (std::size_t i = 0; i < array.size(); ++i)
    sections.emplace_back(array[i], file_, path_of(key) + "[" + std::to_string(i) + "]");
  return sections;
}

void JsonSection::refuse(const std::string& key, const std::string& why) const {
  const std::string path = path_of(key);
  throw UsageError(file_ + ": " + (path.empty() ? "" : path + ": ") + why);
}

std::string JsonSection::path_of(const std::string& key) const {
  if (key.empty()) return path_;
  const std::string quoted = shown(key);
  return (path_.empty() ? "" : path_ + ".") + quoted.substr(1, quoted.size() - 2);
}

const json& JsonSection::value(const std::string& key, const std::string& expected) const {
  const auto member = value_.find(key);
  if (member == value_.end()) refuse(key, "missing, expected " + expected);
  return *member;
}

void JsonSection::refuse_value(const std::string& key, const std::string& expected) const {
  refuse(key, "expected " + expected + ", found " + found(value_[key]));
}

}  // namespace baton
