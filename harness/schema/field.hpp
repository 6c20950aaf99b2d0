// SPDX-License-Identifier: Apache-2.0
// One key of the records that benches write, as a value: what it is called, what it means, and how
// a record, a table and a command line show it.
#pragma once

#include <string_view>

namespace baton::schema {

/// The part that a key plays: an axis makes cases differ, an identity names a case, a run or its
/// rivals, a result is what the run found, and a machine is what it ran on.
enum class Role { axis, identity, result, machine };

/// The values of a key. An interval is a pair of numbers, an object has keys of its own.
enum class Type { text, whole, real, truth, interval, list, object };

/// When a record has the key: wherever its part of the record is there (a layer's, a failure's);
/// there too, with null for an unknown value; or only where the value says more than its absence.
enum class Written { always, or_null, if_any };

/// One key of the records. Parts of an object have its name and a dot before their own.
struct Field {
  std::string_view key;
  Role role = Role::result;
  Type type;
  Written written = Written::always;
  /// The unit of the numbers; may be empty.
  std::string_view unit = {};
  /// The title of the key's column in tables; may be empty.
  std::string_view title = {};
  /// The width of that column in characters, negative for text that is aligned to the left; 0 for a
  /// key without a column.
  int width = 0;
  /// The flag that sets the value; may be empty.
  std::string_view flag = {};
  /// The value, as JSON, that a record without the key stands for; empty if it stands for none.
  std::string_view absent = {};
  /// True of a text with the key before it in names of cases. Numbers always have their key.
  bool is_named = false;
  /// What the value is, in a sentence that begins the help of the flag too. A second one may say
  /// what records have.
  std::string_view help = {};
  /// What the help of the flag says besides; may be empty.
  std::string_view flag_help = {};

  /// The object that the key is a part of; empty for a key of the record itself.
  constexpr std::string_view object() const {
    const auto dot = key.find('.');
    return dot == std::string_view::npos ? std::string_view() : key.substr(0, dot);
  }
  /// The key within its object.
  constexpr std::string_view name() const { return object().empty() ? key : key.substr(object().size() + 1); }
};

}  // namespace baton::schema
