// SPDX-License-Identifier: Apache-2.0
#include "harness/schema/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

namespace baton::schema {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array roles{"axis", "identity", "result", "machine"};
constexpr std::array types{"text", "whole", "real", "truth", "interval", "list", "object"};
constexpr std::array times_written{"always", "or_null", "if_any"};

/// The word for an enumerator.
const char* word(const auto& words, auto value) { return words.at(static_cast<std::size_t>(value)); }

Json to_json(const Field& field) {
  Json json{{"key", field.key},
            {"role", word(roles, field.role)},
            {"type", word(types, field.type)},
            {"written", word(times_written, field.written)},
            {"unit", field.unit},
            {"title", field.title},
            {"flag", field.flag}};
  if (!field.absent.empty()) json["absent"] = Json::parse(field.absent);
  if (field.key == "ratio") json["margin"] = ratio_margin;
  if (field.key == "bound_seconds") json["margin"] = bound_margin_in_one_launch;
  json["help"] = field.help;
  return json;
}

}  // namespace

std::string help_of_flag(const Field& field) {
  std::string_view sentence = field.help;
  for (const std::string_view article : {"The ", "A "})
    if (sentence.starts_with(article)) sentence.remove_prefix(article.size());
  sentence = sentence.substr(0, std::min(sentence.find(". "), sentence.size() - 1));
  std::string help(sentence);
  help.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(help.front())));
  return field.flag_help.empty() ? help : fmt::format("{}; {}", help, field.flag_help);
}

std::string as_json() {
  std::string text;
  for (const Field& field : fields) text += (text.empty() ? "[\n" : ",\n") + to_json(field).dump();
  return text + "\n]\n";
}

}  // namespace baton::schema
