// SPDX-License-Identifier: Apache-2.0
// Files of models: JSON, in which each number has a source.
#include "harness/models/read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "collectives/simulator/topology/json.hpp"
#include "harness/options/data_folder.hpp"
#include "harness/options/names.hpp"

namespace baton {
namespace {

// What the flags of these names take.
constexpr Range channels{1, 1 << 20};
constexpr Range rows{1, 1 << 24};
constexpr int most_layers = 1024;

/// One file while it is read.
class Reader {
 public:
  Reader(const nlohmann::json& json, const std::string& path)
      : model_(json, path, ""), sources_(model_.section("sources")) {
    model_.only({"name", "description", "layers", "count", "width", "heads", "kv_heads", "d_k", "d_v", "mlp",
                 "vocabulary", "chunk", "gate", "gate_rank", "output_gate", "sources"});
    sources_.only({"layers", "count", "width", "heads", "kv_heads", "d_k", "d_v", "mlp", "vocabulary",
                   "chunk", "gate", "gate_rank", "output_gate"});
  }

  ModelShape shape() const {
    ModelShape s;
    s.name = model_.text("name");
    s.width = size("width", channels);
    s.heads = size("heads", channels);
    s.kv_heads = model_.has("kv_heads") ? size("kv_heads", channels) : s.heads;
    if (s.heads % s.kv_heads != 0)
      model_.refuse("kv_heads", fmt::format("expected a divisor of {} heads, found {}", s.heads, s.kv_heads));
    s.d_k = size("d_k", channels);
    s.d_v = size("d_v", channels);
    s.mlp = size("mlp", rows);
    s.vocabulary = size("vocabulary", rows);
    s.chunk = size("chunk", channels);
    s.gate = sourced("gate").word("gate", {"vector", "none"}) == "none" ? GateKind::none : GateKind::vector;
    s.gate_rank = s.gate == GateKind::none ? 0 : size("gate_rank", channels);
    s.has_output_gate = sourced("output_gate").truth("output_gate");
    s.layers = layers();
    return s;
  }

 private:
  /// The model. Throws UsageError unless the file names a source of `key`.
  const JsonSection& sourced(const char* key) const {
    sources_.text(key);
    return model_;
  }
  std::int64_t size(const char* key, Range range) const { return sourced(key).whole_number(key, range); }
  /// The pattern of the kinds, repeated to the number of layers.
  std::vector<Attention> layers() const {
    const auto pattern = model_.words("layers", {"linear", "softmax"}, most_layers);
    std::vector<Attention> all;
    for (std::int64_t i = 0, count = size("count", {1, most_layers}); i < count; ++i)
      all.push_back(pattern[i % pattern.size()] == "linear" ? Attention::linear : Attention::softmax);
    return all;
  }

  const JsonSection model_, sources_;
};

std::filesystem::path folder_of_models() { return data_folder("models", MODELS); }

}  // namespace

ModelShape read_model(const std::string& path) {
  const nlohmann::json json = parse_json(read_text(path), path);
  return Reader(json, path).shape();
}

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
