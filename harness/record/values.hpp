// SPDX-License-Identifier: Apache-2.0
// The values of a record under the keys of the schema: written in its order and by its rules, and
// read with what it says of keys that are not there.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "harness/record/fields.hpp"

namespace baton::schema {

/// The values of a record that is being made.
class Values {
 public:
  using Json = nlohmann::ordered_json;

  /// Sets the value of a key, null for one that is unknown. `Field::written` says when the record
  /// has it.
  void set(Key key, Json value);
  template <class Value>
  void set(Key key, const std::optional<Value>& value) {
    set(key, value ? Json(*value) : Json());
  }

  /// The record: an object with the keys in the order of the schema, and parts of objects in them.
  Json json() const;

 private:
  std::array<std::optional<Json>, fields.size()> values_;
};

/// The value that records without the field stand for; null if they stand for none.
nlohmann::json absent_value(const Field& field);

/// The value under `key` in `record`, which for a part of an object is that object. Nothing if the
/// value is missing or null. Throws nlohmann::json::exception if it has another type.
template <class Value>
std::optional<Value> known(const nlohmann::json& record, Key key) {
  const auto found = record.find(key.field().name());
  return found == record.end() || found->is_null() ? std::nullopt : std::optional(found->get<Value>());
}

/// The value under `key` in `record`. If it is missing or null: what its absence stands for, or
/// else an empty value. Throws nlohmann::json::exception if it has another type.
template <class Value>
Value value(const nlohmann::json& record, Key key) {
  if (auto found = known<Value>(record, key)) return *found;
  const auto absent = absent_value(key.field());
  return absent.is_null() ? Value{} : absent.template get<Value>();
}

}  // namespace baton::schema
