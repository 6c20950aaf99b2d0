// SPDX-License-Identifier: Apache-2.0
// Reading of JSON files that users write. Any file is read safely, and every look-up checks what it
// finds and names the place in its error.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace baton {

/// The text in the file `path`. Throws UsageError, one line with the path, if it cannot be read or
/// is larger than 1 MiB.
std::string read_text(const std::string& path);

/// The JSON in `text`, which errors call `name`. Throws UsageError, one line, if it is not JSON,
/// nests deeper than 16 levels, repeats a key in an object or has a number that is not finite.
nlohmann::json parse_json(const std::string& text, const std::string& name);

/// Numbers from `least` to `most`, both included.
struct Range {
  double least;
  double most;
};

/// One object of a JSON file; it refers to the JSON that it was made of. Every member throws
/// UsageError, one line "file: path of keys: expected this, found that".
class JsonSection {
 public:
  /// Makes the section of the object `value`. `path` has the keys that lead to it, and is empty for
  /// the outermost object.
  JsonSection(const nlohmann::json& value, std::string file, std::string path);

  /// Throws UsageError if a key of the object is not in `known`; it names the key that is near.
  void only(std::initializer_list<const char*> known) const;

  bool has(const std::string& key) const { return value_.contains(key); }
  JsonSection section(const std::string& key) const;
  /// The members of the object.
  const nlohmann::json& members() const { return value_; }

  double number(const std::string& key, Range range) const;
  double number_or(const std::string& key, Range range, double otherwise) const;
  std::int64_t whole_number(const std::string& key, Range range) const;
  /// The text under `key`: one line that is not empty, as a terminal shows it.
  std::string text(const std::string& key) const;
  /// The text under `key`, which is one of `words`.
  std::string word(const std::string& key, const std::vector<std::string>& words) const;
  /// The array under `key`, which has 1 to `most` texts that are each one of `words`.
  std::vector<std::string> words(const std::string& key, const std::vector<std::string>& words,
                                 std::size_t most) const;
  bool truth(const std::string& key) const;
  /// The array under `key`, which has `least` to `most` objects.
  std::vector<JsonSection> sections(const std::string& key, std::size_t least, std::size_t most) const;

  /// Throws UsageError for the member `key`, or for the object itself if `key` is empty.
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
