// SPDX-License-Identifier: Apache-2.0
#include "harness/options/flag_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/options/flag_values.hpp"

namespace baton {
namespace {

using Json = nlohmann::ordered_json;

/// The form of a value of this kind, as a regular expression; empty for any text. A number in it
/// may be outside of the flag's range.
const char* form_of(const std::string& kind) {
  if (kind == "whole") return "-?[0-9]+";
  if (kind == "size") return "-?[0-9]+([KMGTPEkmgtpe]([Ii]?[Bb])?|[Bb])?";
  return kind == "real" ? "[-+.0-9A-Za-z]+" : "";
}

Json to_json(const FlagFacts& facts) {
  Json json{{"names", facts.names}, {"values", facts.values}, {"list", facts.is_list}};
  json["form"] = facts.rules->words.empty() ? std::string(form_of(facts.rules->kind))
                                            : fmt::format("{}", fmt::join(facts.rules->words, "|"));
  return json;
}

}  // namespace

std::string as_json(const std::string& program, const Flags& flags) {
  std::string lines, words;
  for (const FlagFacts& facts : flags.facts()) lines += (lines.empty() ? "" : ",\n") + to_json(facts).dump();
  std::istringstream help(flags.help());
  for (std::string line; std::getline(help, line);) words += (words.empty() ? "" : ",\n") + Json(line).dump();
  return fmt::format("{}: {{\"flags\": [\n{}\n],\n\"help\": [\n{}\n]}}", Json(program).dump(), lines, words);
}

}  // namespace baton
