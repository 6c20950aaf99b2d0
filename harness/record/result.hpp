// SPDX-License-Identifier: Apache-2.0
// The result of a case in one launch. Who finds a value sets it under its key; the process that
// prints rows adds comparisons, and tables, CSV and files of records take values by their keys.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "harness/schema/fields.hpp"

namespace baton {

/// Values under the keys of the schema: written in its order and by its rules, and read with what
/// it says of keys that are not there.
class Result {
 public:
  using Json = nlohmann::ordered_json;

  Result() = default;
  /// Reads the object of a line of records. Keys that the schema lacks are left out.
  explicit Result(const Json& record);

  /// Sets the value of a key, null for one that is unknown. `Field::written` says when the record
  /// has it.
  void set(schema::Key key, Json value);
  template <class Value>
  void set(schema::Key key, const std::optional<Value>& value) {
    set(key, value ? Json(*value) : Json());
  }
  /// Removes a key with its value.
  void remove(schema::Key key) { values_[key.place()].reset(); }

  /// The value of a key. Nothing if it is missing or null. Throws nlohmann::json::exception if it
  /// has another type.
  template <class Value>
  std::optional<Value> known(schema::Key key) const {
    const Json* found = find(key.field());
    return found == nullptr ? std::nullopt : std::optional(found->get<Value>());
  }
  bool has(schema::Key key) const { return find(key.field()) != nullptr; }

  /// The value of a key. If it is missing or null: what its absence stands for, or else an empty
  /// value. Throws nlohmann::json::exception if it has another type.
  template <class Value>
  Value value(schema::Key key) const {
    const Json found = value_or_absent(key.field());
    return found.is_null() ? Value{} : found.get<Value>();
  }
  std::string text(schema::Key key) const { return value<std::string>(key); }
  std::int64_t whole(schema::Key key) const { return value<std::int64_t>(key); }
  double real(schema::Key key) const { return value<double>(key); }

  /// True if rounds were timed, and their results were right.
  bool is_timed() const { return has("seconds"); }
  /// The reason why the case was skipped, is wrong, or failed; empty if it was timed.
  std::string reason() const;

  /// The record: an object with the keys in the order of the schema, and parts of objects in them.
  /// No text in it has a character that readers of records refuse.
  Json json() const;
  /// The record as one line without its newline.
  std::string line() const;

 private:
  const Json* find(const schema::Field& field) const;
  Json value_or_absent(const schema::Field& field) const;

  std::array<std::optional<Json>, schema::fields.size()> values_;
};

}  // namespace baton
