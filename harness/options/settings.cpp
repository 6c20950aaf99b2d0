// SPDX-License-Identifier: Apache-2.0
#include "harness/options/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "collectives/schedule/errors.hpp"
#include "harness/options/data_folder.hpp"

namespace baton {
namespace {

using Json = nlohmann::ordered_json;

/// The value of a flag as a user writes it.
std::string word_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

/// Throws std::exception if the file has another form.
Settings read(const Json& json) {
  Settings settings{json.at("name").get<std::string>(), json.at("title").get<std::string>(), {}};
  for (const auto& [flag, value] : json.at("flags").items()) {
    if (json.at("sources").at(flag).get<std::string>().empty()) throw UsageError(flag + " has no source");
    settings.flags.emplace_back(flag, word_of(value));
  }
  return settings;
}

}  // namespace

std::vector<Settings> settings_of(const std::string& bench) {
  std::vector<Settings> all;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder("settings", SETTINGS), ignored)) {
    if (entry.path().extension() != ".json") continue;
    try {
      std::ifstream file(entry.path());
      const Json json = Json::parse(file);
      if (json.at("bench") == bench) all.push_back(read(json));
    } catch (const std::exception& error) {
      throw UsageError(fmt::format("--like: {}: {}", entry.path().string(), error.what()));
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& one, const auto& other) { return one.name < other.name; });
  return all;
}

}  // namespace baton
