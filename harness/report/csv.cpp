// SPDX-License-Identifier: Apache-2.0
// Records as comma-separated values (RFC 4180), for spreadsheets. The values are those of the JSON
// records, so nothing is computed twice; lists of rounds stay in the records.
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <system_error>

#include "collectives/schedule/errors.hpp"
#include "harness/report/record.hpp"

namespace baton {
namespace {

using Json = nlohmann::ordered_json;

/// A title and the place of its values in a record.
struct Field {
  std::string_view title;
  std::string_view place;
};

constexpr std::array fields{
    Field{"time", "/time"},
    Field{"run", "/run"},
    Field{"launch", "/launch"},
    Field{"commit", "/commit"},
    Field{"host", "/machine/host"},
    Field{"cpu", "/machine/cpu"},
    Field{"gpu", "/device/gpu"},
    Field{"bench", "/bench"},
    Field{"case", "/case"},
    Field{"name", "/name"},
    Field{"implementation", "/implementation"},
    Field{"kind", "/kind"},
    Field{"direction", "/direction"},
    Field{"pass", "/pass"},
    Field{"mode", "/mode"},
    Field{"dtype", "/dtype"},
    Field{"kernel", "/kernel"},
    Field{"scan", "/scan"},
    Field{"executor", "/executor"},
    Field{"topology", "/topology"},
    Field{"ranks", "/ranks"},
    Field{"heads", "/heads"},
    Field{"kv_heads", "/kv_heads"},
    Field{"latent", "/latent"},
    Field{"d_k", "/d_k"},
    Field{"d_v", "/d_v"},
    Field{"map", "/map"},
    Field{"tokens", "/tokens"},
    Field{"packed", "/packed"},
    Field{"state_bytes", "/state_bytes"},
    Field{"blocks", "/blocks"},
    Field{"cadence", "/cadence"},
    Field{"cycle", "/cycle"},
    Field{"rounds", "/rounds"},
    Field{"mean_seconds", "/mean_seconds"},
    Field{"median_seconds", "/median_seconds"},
    Field{"ci95_low_seconds", "/ci95_seconds/0"},
    Field{"ci95_high_seconds", "/ci95_seconds/1"},
    Field{"min_seconds", "/min_seconds"},
    Field{"p50_seconds", "/p50_seconds"},
    Field{"p95_seconds", "/p95_seconds"},
    Field{"p99_seconds", "/p99_seconds"},
    Field{"max_seconds", "/max_seconds"},
    Field{"first_seconds", "/first_seconds"},
    Field{"algbw_bytes_per_second", "/algbw_bytes_per_second"},
    Field{"busbw_bytes_per_second", "/busbw_bytes_per_second"},
    Field{"sent_bytes", "/sent_bytes"},
    Field{"hops", "/hops"},
    Field{"tensor_bytes", "/tensor_bytes"},
    Field{"scratch_bytes", "/scratch_bytes"},
    Field{"bound_seconds", "/bound_seconds"},
    Field{"predicted_seconds", "/predicted_seconds"},
    Field{"hidden", "/hidden"},
    Field{"ratio", "/ratio"},
    Field{"ratio_ci95_low", "/ratio_ci95/0"},
    Field{"ratio_ci95_high", "/ratio_ci95/1"},
    Field{"relative_error", "/relative_error"},
    Field{"wrong", "/wrong"},
    Field{"skipped", "/skipped"},
    Field{"failed", "/failed"},
};

/// One text for each field, separated by commas.
std::string joined(const std::function<std::string(const Field&)>& text) {
  std::string line = text(fields.front());
  for (const Field& field : std::span(fields).subspan(1)) line += "," + text(field);
  return line;
}

std::string titles() {
  return joined([](const Field& field) { return std::string(field.title); });
}

/// Text in quotes where it holds a separator; quotes in it are doubled.
std::string in_quotes(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string all = "\"";
  for (const char letter : text) all += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return all + "\"";
}

/// The value as text; empty where the record has none.
std::string value(const Json& record, std::string_view place) {
  const Json::json_pointer pointer{std::string(place)};
  if (!record.contains(pointer) || record.at(pointer).is_null()) return {};
  const Json& found = record.at(pointer);
  return in_quotes(found.is_string() ? found.get<std::string>() : found.dump());
}

/// The first line of a file, without its line break.
std::string first_line(std::istream& file) {
  std::string line;
  std::getline(file, line);
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return line;
}

/// Throws UsageError unless whole lines under the same titles stand in the file.
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

void CsvFile::append(const std::string& record) {
  const Json json = Json::parse(record);
  file_.append(joined([&json](const Field& field) { return value(json, field.place); }), titles());
}

}  // namespace baton
