// SPDX-License-Identifier: Apache-2.0
// Limits before the parser, and a guard that goes along with it.
#include "collectives/simulator/topology/json_text.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <vector>

#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

using nlohmann::json;

constexpr std::size_t most_bytes = 1 << 20;
constexpr int deepest = 16;

/// Follows the parser: knows the key it is at, and stops it where the text goes too deep or repeats itself.
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

  /// The keys from the outermost object to where the parser is.
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
    // Escaped and cut, for it stands in messages of one line.
    object.key = json(key.substr(0, 60)).dump(-1, ' ', true, json::error_handler_t::replace);
    object.key = object.key.substr(1, object.key.size() - 2);
    if (!object.keys.insert(key).second)
      throw UsageError(name_ + ": " + path() + ": given twice, expected once");
  }

  const std::string& name_;
  std::vector<Object> objects_;
};

/// Where the byte before `end` is, for people.
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
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw UsageError(path + ": a directory, expected a JSON file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UsageError(path + ": cannot be opened: " + std::generic_category().message(errno));
  // By bytes that come rather than by the size that is told: pipes and devices tell none.
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

}  // namespace baton
