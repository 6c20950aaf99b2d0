// SPDX-License-Identifier: Apache-2.0
// The values of a case's axes under their keys: records have them, and the texts that tell cases
// apart are folds over them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

#include "harness/schema/fields.hpp"

namespace baton {

/// The names that a value is a part of. Every value is in the record.
enum Part : unsigned {
  in_record_alone = 0,
  /// The name of a case.
  in_name = 1,
  /// The name of a comparison group, which its cases share.
  in_group = 2,
  /// The name of a contest, which its cases share.
  in_contest = 4,
  in_all = in_name | in_group | in_contest,
};

struct AxisValue {
  /// A value of an axis; empty if it is not known.
  using Value = std::variant<std::monostate, std::int64_t, bool, double, std::string>;

  schema::Key key;
  Value value;
  unsigned parts = in_all;
  /// The text that names have in place of the key and the value, unless it is empty.
  std::string words = {};

  /// The text of the value in names: a number with the key before it, most texts alone, and the
  /// key alone of what is true. Two values of a key have two texts. Empty for an empty text, and
  /// for the value that a record without the key stands for.
  std::string text() const;
};

/// Values in the order in which names have them. A key that is not there has an empty value.
class AxisValues {
 public:
  AxisValues(std::initializer_list<AxisValue> values) : values_(values) {}

  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  void add(const AxisValue& value) { values_.push_back(value); }
  void add(const AxisValues& others) {
    values_.insert(values_.end(), others.values_.begin(), others.values_.end());
  }

  bool has(schema::Key key) const { return find(key) != nullptr; }
  std::int64_t whole(schema::Key key) const { return value<std::int64_t>(key); }
  double real(schema::Key key) const { return value<double>(key); }
  bool truth(schema::Key key) const { return value<bool>(key); }
  std::string text(schema::Key key) const { return value<std::string>(key); }

  /// The texts of the values that are a part of `whole`, with a slash between two of them.
  std::string folded(Part whole) const;

 private:
  const AxisValue* find(schema::Key key) const;
  template <class Value>
  Value value(schema::Key key) const {
    const AxisValue* found = find(key);
    const Value* value = found == nullptr ? nullptr : std::get_if<Value>(&found->value);
    return value == nullptr ? Value{} : *value;
  }

  std::vector<AxisValue> values_;
};

}  // namespace baton
