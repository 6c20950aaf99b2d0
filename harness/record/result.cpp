// SPDX-License-Identifier: Apache-2.0
#include "harness/record/result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "harness/machine/system.hpp"

namespace baton {
namespace {

using Json = Result::Json;
using schema::Field;

Json absent_value(const Field& field) { return field.absent.empty() ? Json() : Json::parse(field.absent); }

std::size_t place_of(std::string_view key) {
  const auto found = std::find_if(schema::fields.begin(), schema::fields.end(),
                                  [&](const Field& field) { return field.key == key; });
  return static_cast<std::size_t>(found - schema::fields.begin());
}

/// Escapes what no reader of records takes in a text, such as a tab in a variable.
void make_printable(Json& json) {
  if (json.is_string()) json = printable(json.get<std::string>());
  if (json.is_array() && !json.empty() && json.front().is_number()) return;
  if (json.is_array())
    for (Json& one : json) make_printable(one);
  if (!json.is_object()) return;
  Json shown = Json::object();
  for (auto& [key, value] : json.items()) {
    make_printable(value);
    shown[printable(key)] = std::move(value);
  }
  json = std::move(shown);
}

}  // namespace

Result::Result(const Json& record) {
  for (std::size_t place = 0; place < schema::fields.size(); ++place) {
    const Field& field = schema::fields[place];
    if (!field.object().empty()) continue;  // it is read with its object
    if (const auto found = record.find(field.key); found != record.end()) values_[place] = *found;
  }
}

void Result::set(schema::Key key, Json value) {
  const Field& field = key.field();
  const bool says_nothing = value.is_null() || value == absent_value(field);
  if (field.written == schema::Written::if_any && says_nothing)
    values_[key.place()].reset();
  else
    values_[key.place()] = std::move(value);
}

const Json* Result::find(const Field& field) const {
  const std::optional<Json>& own = values_[&field - schema::fields.data()];
  if (own) return own->is_null() ? nullptr : &*own;
  if (field.object().empty()) return nullptr;
  const std::optional<Json>& object = values_[place_of(field.object())];
  if (!object || !object->is_object()) return nullptr;
  const auto part = object->find(field.name());
  return part == object->end() || part->is_null() ? nullptr : &*part;
}

Json Result::value_or_absent(const Field& field) const {
  const Json* found = find(field);
  return found == nullptr ? absent_value(field) : *found;
}

std::string Result::reason() const {
  if (has("failed")) return text("failed");
  if (has("skipped")) return text("skipped");
  if (whole("wrong") == 0) return {};
  return fmt::format("{} wrong elements, first {}", whole("wrong"), text("first_wrong"));
}

Json Result::json() const {
  Json record = Json::object();
  for (std::size_t place = 0; place < schema::fields.size(); ++place) {
    if (!values_[place]) continue;
    const Field& field = schema::fields[place];
    Json& object = field.object().empty() ? record : record[field.object()];
    object[field.name()] = *values_[place];
  }
  make_printable(record);
  return record;
}

std::string Result::line() const { return json().dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace baton
