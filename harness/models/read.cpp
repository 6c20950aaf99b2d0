// SPDX-License-Identifier: Apache-2.0
// Files of models: JSON, in which each number has a source.
#include "harness/models/read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "collectives/schedule/errors.hpp"
#include "harness/options/names.hpp"

namespace baton {
namespace {

using Json = nlohmann::json;

/// One file while it is read.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {
    std::ifstream file(path);
    if (!file) throw UsageError("--model: " + path + " cannot be read");
    try {
      json_ = Json::parse(file);
    } catch (const Json::parse_error&) {
      fail("is no JSON");
    }
    if (!json_.is_object()) fail("is no object");
  }

  ModelShape shape() const {
    ModelShape s;
    s.name = text("name");
    s.width = size("width");
    s.heads = size("heads");
    s.kv_heads = json_.contains("kv_heads") ? size("kv_heads") : s.heads;
    s.d_k = size("d_k");
    s.d_v = size("d_v");
    s.mlp = size("mlp");
    s.vocabulary = size("vocabulary");
    s.chunk = size("chunk");
    s.gate = gate();
    s.gate_rank = s.gate == GateKind::none ? 0 : size("gate_rank");
    s.has_output_gate = sourced("output_gate").is_boolean() ? json_.at("output_gate").get<bool>()
                                                            : (fail("output_gate is true or false"), false);
    if (s.heads % s.kv_heads != 0)
      fail(fmt::format("{} kv_heads do not divide {} heads", s.kv_heads, s.heads));
    s.layers = layers();
    return s;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UsageError(fmt::format("--model: {}: {}", path_, what));
  }
  const Json& at(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) fail(fmt::format("there is no {}", key));
    return *found;
  }
  /// The value of `key`. Throws UsageError unless the file has it and names its source.
  const Json& sourced(const char* key) const {
    const Json& sources = at("sources");
    const bool has_source = sources.is_object() && sources.contains(key) && sources.at(key).is_string() &&
                            !sources.at(key).get<std::string>().empty();
    if (!has_source) fail(fmt::format("{} has no source", key));
    return at(key);
  }
  std::string text(const char* key) const {
    if (!at(key).is_string()) fail(fmt::format("{} is no text", key));
    return at(key).get<std::string>();
  }
  std::int64_t size(const char* key) const {
    constexpr std::int64_t most = 1 << 24;
    const Json& value = sourced(key);
    if (!value.is_number_integer() || value.get<std::int64_t>() < 1 || value.get<std::int64_t>() > most)
      fail(fmt::format("{} is no number from 1 to 2^24", key));
    return value.get<std::int64_t>();
  }
  GateKind gate() const {
    const Json& word = sourced("gate");
    if (word == "vector") return GateKind::vector;
    if (word != "none") fail("gate is 'vector' or 'none'");
    return GateKind::none;
  }
  /// The pattern of the kinds, repeated to the number of layers.
  std::vector<Attention> layers() const {
    const Json& pattern = at("layers");
    if (!pattern.is_array() || pattern.empty()) fail("layers is no list of 'linear' and 'softmax'");
    std::vector<Attention> all;
    for (std::int64_t i = 0; i < size("count"); ++i) {
      const Json& word = pattern.at(i % pattern.size());
      if (word != "linear" && word != "softmax") fail("layers is no list of 'linear' and 'softmax'");
      all.push_back(word == "linear" ? Attention::linear : Attention::softmax);
    }
    return all;
  }

  std::string path_;
  Json json_;
};

/// The models beside an installed program, else those of the sources.
std::filesystem::path folder_of_models() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto installed = program.parent_path().parent_path() / "share/baton/models";
  return std::filesystem::is_directory(installed, error) ? installed : std::filesystem::path(MODELS);
}

}  // namespace

ModelShape read_model(const std::string& path) { return Reader(path).shape(); }

std::vector<std::string> model_names() {
  std::vector<std::string> names{"tiny"};
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder_of_models(), ignored))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin() + 1, names.end());
  return names;
}

ModelShape find_model(const std::string& given) {
  if (given == "tiny") return {};
  // In earlier versions the files lay in models/ at the top.
  const std::filesystem::path path(given);
  const bool moved = path.parent_path() == "models" && !std::filesystem::exists(path);
  const std::string name = moved ? path.stem().string() : given;
  if (name.ends_with(".json")) return read_model(name);
  resolve_names("model", {name}, model_names());
  return read_model((folder_of_models() / (name + ".json")).string());
}

}  // namespace baton
