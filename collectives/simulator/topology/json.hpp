// SPDX-License-Identifier: Apache-2.0
// From a file to numbers and words: JSON from a file that may be anything, and an object of it as its reader
// wants it. Each look-up says what it expects, and errors name the place.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace baton {

/// The text in the file `path`. Throws UsageError, one line with the path, if it cannot be read or exceeds 1 MiB.
std::string read_text(const std::string& path);

/// The JSON in `text`; `name` stands for it in errors. Throws UsageError, one line, if it is no JSON, nests deeper than
/// 16 levels, names a key twice in one object or has a number that is not finite.
nlohmann::json parse_json(const std::string& text, const std::string& name);

/// Numbers from `least` to `most`, both included.
struct Range {
  double least;
  double most;
};

/// Refers to the JSON that it was made of. Every member throws UsageError, one line
/// "file: path of keys: expected this, found that".
class JsonSection {
 public:
  /// `path` is empty for the outermost object.
  JsonSection(const nlohmann::json& value, std::string file, std::string path);

  /// Refuses keys other than these.
  void only(std::initializer_list<const char*> known) const;

  bool has(const std::string& key) const { return value_.contains(key); }
  JsonSection section(const std::string& key) const;
  /// All that is below, under its name.
  const nlohmann::json& members() const { return value_; }

  double number(const std::string& key, Range range) const;
  double number_or(const std::string& key, Range range, double otherwise) const;
  std::int64_t whole_number(const std::string& key, Range range) const;
  /// One line, not empty.
  std::string text(const std::string& key) const;
  /// One of a few words.
  std::string word(const std::string& key, const std::vector<std::string>& words) const;
  /// An array of `least` to `most` objects, read one by one.
  std::vector<JsonSection> sections(const std::string& key, std::size_t least, std::size_t most) const;

  /// Throws for the member `key`, or for the object itself where `key` is empty.
  [[noreturn]] void refuse(const std::string& key, const std::string& why) const;

 private:
  std::string path_of(const std::string& key) const;
  const nlohmann::json& value(const std::string& key, const std::string& expected) const;
  [[noreturn]] void refuse_value(const std::string& key, const std::string& expected) const;

  const nlohmann::json& value_;
  std::string file_;
  std::string path_;
};

}  // namespace baton
