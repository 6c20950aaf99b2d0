// SPDX-License-Identifier: Apache-2.0
#include "collectives/simulator/topology/json.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/texts.hpp"

namespace baton {

namespace {

using nlohmann::json;

constexpr std::size_t most_bytes = 1 << 20;
constexpr int deepest = 16;

/// Follows the parser. It knows the current key, and stops the parser if the text nests too deep or
/// repeats a key.
class Guard {
 public:
  explicit Guard(const std::string& name) : name_(name) {}

  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    using Event = json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) go_deeper(depth);
    if (event == Event::object_start) objects_.emplace_back();
    if (event == Event::object_end) objects_.pop_back();
    if (event == Event::key) meet(parsed.get_ref<const std::string&>());
    return true;
  }

  /// The keys from the outermost object to the parser's position.
  std::string path() const {
    std::string path;
    for (const Object& object : objects_) path += (path.empty() ? "" : ".") + object.key;
    return path;
  }

 private:
  struct Object {
    std::set<std::string> keys;
    std::string key;
  };

  void go_deeper(int depth) const {
    if (depth >= deepest)
      throw UsageError(name_ + ": brackets within brackets, expected at most " + std::to_string(deepest) +
                       " levels");
  }

  void meet(const std::string& key) {
    Object& object = objects_.back();
    // The key is escaped and cut because it appears in errors of one line.
    object.key = json(key.substr(0, 60)).dump(-1, ' ', true, json::error_handler_t::replace);
    object.key = object.key.substr(1, object.key.size() - 2);
    if (!object.keys.insert(key).second)
      throw UsageError(name_ + ": " + path() + ": given twice, expected once");
  }

  const std::string& name_;
  std::vector<Object> objects_;
};

/// The line and column of the byte before `end`.
std::string line_and_column(const std::string& text, std::size_t end) {
  const auto here =
      text.begin() + static_cast<std::ptrdiff_t>(std::clamp<std::size_t>(end, 1, text.size() + 1) - 1);
  const auto line = 1 + std::count(text.begin(), here, '\n');
  const auto last_break = std::find(std::make_reverse_iterator(here), text.rend(), '\n');
  const auto column = 1 + (here - last_break.base());
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

}  // namespace

std::string read_text(const std::string& path) {
  std::error_code why;
  const auto kind = std::filesystem::status(path, why).type();  // a pipe may never have a writer
  if (kind == std::filesystem::file_type::directory)
    throw UsageError(path + ": a directory, expected a JSON file");
  if (std::filesystem::exists(std::filesystem::file_status(kind)) &&
      kind != std::filesystem::file_type::regular)
    throw UsageError(path + ": a pipe or a device, expected a JSON file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UsageError(path + ": cannot be opened: " + std::generic_category().message(errno));
  // The bytes that arrive are counted: the file may grow.
  std::string text(most_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) throw UsageError(path + ": cannot be read: " + std::generic_category().message(errno));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > most_bytes) throw UsageError(path + ": more than 1 MiB, expected a few KiB of JSON");
  return text;
}

json parse_json(const std::string& text, const std::string& name) {
  Guard guard(name);
  const auto follow = [&](int depth, json::parse_event_t event, json& parsed) {
    return guard(depth, event, parsed);
  };
  try {
    return json::parse(text, follow);
  } catch (const json::parse_error& error) {
    throw UsageError(name + ": not JSON at " + line_and_column(text, error.byte));
  } catch (const json::out_of_range&) {
    throw UsageError(name + ": " + guard.path() + ": expected a finite number, found one that is too large");
  }
}

namespace {

using nlohmann::json;

/// `value` as JSON on one line of ASCII, cut if it is long.
std::string shown(const json& value) {
  constexpr std::size_t longest = 60;
  const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  return text.size() <= longest ? text : text.substr(0, longest) + "...";
}

/// The description of a value found instead of the expected one.
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
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = shown_character(text, at);
    if (length == 0) return false;
    at += length;
  }
  return text.find_first_not_of(' ') != std::string::npos;
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
  for (const auto& [key, value] : value_.items()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    const std::string near = nearest(key.substr(0, 60), keys);
    refuse("", "unknown key " + shown(key) +
                   (near.empty() ? ", expected of " + joined(keys) : ", did you mean \"" + near + "\"?"));
  }
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
  const auto whole = [](double end) { return std::to_string(static_cast<std::int64_t>(end)); };
  const std::string expected = "a whole number from " + whole(range.least) + " to " + whole(range.most);
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

std::vector<std::string> JsonSection::words(const std::string& key, const std::vector<std::string>& words,
                                            std::size_t most) const {
  const std::string expected = "an array of 1 to " + std::to_string(most) + " of " + joined(words);
  const json& array = value(key, expected);
  const auto is_known = [&](const json& word) {
    return word.is_string() && std::find(words.begin(), words.end(), word.get<std::string>()) != words.end();
  };
  if (!array.is_array() || array.empty() || array.size() > most) refuse_value(key, expected);
  for (std::size_t i = 0; i < array.size(); ++i)
    if (!is_known(array[i]))
      refuse(key + "[" + std::to_string(i) + "]",
             "expected one of " + joined(words) + ", found " + found(array[i]));
  return array.get<std::vector<std::string>>();
}

bool JsonSection::truth(const std::string& key) const {
  const std::string expected = "true or false";
  const json& truth = value(key, expected);
  if (!truth.is_boolean()) refuse_value(key, expected);
  return truth.get<bool>();
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
