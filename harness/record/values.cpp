// SPDX-License-Identifier: Apache-2.0
#include "harness/record/values.hpp"

#include <utility>

namespace baton::schema {

void Values::set(Key key, Json value) {
  const Field& field = key.field();
  const bool says_nothing = value.is_null() || value == Json(absent_value(field));
  if (field.written == Written::if_any && says_nothing)
    values_[key.place()].reset();
  else
    values_[key.place()] = std::move(value);
}

Values::Json Values::json() const {
  Json record = Json::object();
  for (std::size_t place = 0; place < fields.size(); ++place) {
    if (!values_[place]) continue;
    const Field& field = fields[place];
    Json& object = field.object().empty() ? record : record[field.object()];
    object[field.name()] = *values_[place];
  }
  return record;
}

nlohmann::json absent_value(const Field& field) {
  return field.absent.empty() ? nlohmann::json() : nlohmann::json::parse(field.absent);
}

}  // namespace baton::schema
