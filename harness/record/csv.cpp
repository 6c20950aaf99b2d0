// SPDX-License-Identifier: Apache-2.0
#include "harness/record/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "harness/schema/fields.hpp"

namespace baton {
namespace {

using Json = nlohmann::ordered_json;

using schema::Field;
using schema::Type;

/// A title and the place of its values in a record.
struct CsvColumn {
  std::string title;
  Json::json_pointer place;
};

/// The key, with its object before it where another key ends alike.
std::string title_of(const Field& field) {
  const auto alike = [&](const Field& other) { return other.name() == field.name(); };
  const bool is_one = std::count_if(schema::fields.begin(), schema::fields.end(), alike) == 1;
  if (field.object().empty() || is_one) return std::string(field.name());
  return fmt::format("{}_{}", field.object(), field.name());
}

/// The columns of a field: two of an interval, none of lists and objects.
void add_columns(std::vector<CsvColumn>& columns, const Field& field) {
  if (field.type == Type::list || field.type == Type::object) return;
  const std::string title = title_of(field);
  Json::json_pointer place;
  if (!field.object().empty()) place.push_back(std::string(field.object()));
  place.push_back(std::string(field.name()));
  if (field.type != Type::interval) return columns.push_back({title, place});
  constexpr std::string_view ends = "ci95";
  const std::size_t behind = title.find(ends) + ends.size();
  columns.push_back({title.substr(0, behind) + "_low" + title.substr(behind), place / 0});
  columns.push_back({title.substr(0, behind) + "_high" + title.substr(behind), place / 1});
}

const std::vector<CsvColumn>& columns() {
  static const std::vector<CsvColumn> all = [] {
    std::vector<CsvColumn> made;
    for (const Field& field : schema::fields) add_columns(made, field);
    return made;
  }();
  return all;
}

/// One text for each column, separated by commas.
std::string joined(const std::function<std::string(const CsvColumn&)>& text) {
  std::string line;
  for (const CsvColumn& column : columns()) line += (&column == columns().data() ? "" : ",") + text(column);
  return line;
}

std::string titles() {
  return joined([](const CsvColumn& column) { return column.title; });
}

/// Text in quotes where it holds a separator; quotes in it are doubled.
std::string in_quotes(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string all = "\"";
  for (const char letter : text) all += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return all + "\"";
}

/// The value as text; empty where the record has none.
std::string value(const Json& record, const Json::json_pointer& place) {
  if (!record.contains(place) || record.at(place).is_null()) return {};
  const Json& found = record.at(place);
  return in_quotes(found.is_string() ? found.get<std::string>() : found.dump());
}

/// The first line of a file, without its line break.
std::string first_line(std::istream& file) {
  std::string line;
  std::getline(file, line);
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return line;
}

/// Throws UsageError unless the file has these titles and its last line is whole.
void require_same_table(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (first_line(file) != titles())
    throw UsageError("--csv: '" + path +
                     "' begins with other titles than these lines have: name another file");
  file.clear();
  file.seekg(-1, std::ios::end);
  if (file.get() != '\n')
    throw UsageError("--csv: the last line of '" + path + "' is not whole: mend it, or name another file");
}

}  // namespace

CsvFile::CsvFile(const std::string& path) : file_(path) {
  std::error_code has_no_size;
  const auto bytes = std::filesystem::file_size(path, has_no_size);
  if (!has_no_size && bytes > 0) require_same_table(path);
}

void CsvFile::append(const Json& record) {
  file_.append(joined([&record](const CsvColumn& column) { return value(record, column.place); }), titles());
}

}  // namespace baton
