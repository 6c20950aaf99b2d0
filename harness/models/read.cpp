// SPDX-License-Identifier: Apache-2.0
// Files of models: JSON, in which each number has a source.
#include "harness/models/read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <utility>

#include "collectives/simulator/topology/json.hpp"
#include "harness/options/data_folder.hpp"
#include "harness/options/names.hpp"

namespace baton {
namespace {

// What the flags of these names take.
constexpr Range channels{1, 1 << 20};
constexpr Range rows{1, 1 << 24};
constexpr int most_layers = 1024;

/// Values of a file, each of which has a source.
class Sourced {
 public:
  Sourced(JsonSection values, JsonSection sources)
      : values_(std::move(values)), sources_(std::move(sources)) {}

  bool has(const char* key) const { return values_.has(key); }
  /// The values. Throws UsageError unless the file names a source of `key`.
  const JsonSection& operator[](const char* key) const {
    sources_.text(key);
    return values_;
  }
  std::int64_t size(const char* key, Range range = channels) const {
    return (*this)[key].whole_number(key, range);
  }
  /// A size that is 0 unless the file has it.
  std::int64_t size_if_any(const char* key) const { return has(key) ? size(key) : 0; }
  bool is(const char* key) const { return has(key) && (*this)[key].truth(key); }
  /// A size that divides `heads`, or `heads` unless the file has it.
  std::int64_t divisor(const char* key, std::int64_t heads) const {
    const std::int64_t found = has(key) ? size(key) : heads;
    if (heads % found != 0)
      values_.refuse(key, fmt::format("expected a divisor of {} heads, found {}", heads, found));
    return found;
  }

 private:
  JsonSection values_, sources_;
};

/// One file while it is read. Layers of each kind have a section of their own, "linear" or
/// "softmax"; without one they have the sizes of the model.
class Reader {
 public:
  Reader(const nlohmann::json& json, const std::string& path)
      : model_(json, path, ""), sources_(model_.section("sources")), of_model_(model_, sources_) {
    model_.only({"name", "description", "layers", "count", "width", "heads", "kv_heads", "d_k", "d_v", "mlp",
                 "mlp_form", "vocabulary", "chunk", "gate", "gate_rank", "output_gate", "linear", "softmax",
                 "sources"});
    sources_.only({"layers", "count", "width", "heads", "kv_heads", "d_k", "d_v", "mlp", "mlp_form",
                   "vocabulary", "chunk", "gate", "gate_rank", "output_gate", "linear", "softmax"});
  }

  ModelShape shape() const {
    ModelShape s;
    s.name = model_.text("name");
    s.width = of_model_.size("width");
    s.mlp = of_model_.size("mlp", rows);
    if (of_model_.has("mlp_form") &&
        of_model_["mlp_form"].word("mlp_form", {"swiglu", "squared_relu"}) == "squared_relu")
      s.mlp_form = MlpForm::squared_relu;
    s.vocabulary = of_model_.size("vocabulary", rows);
    s.chunk = of_model_.size("chunk");
    s.linear = model_.has("linear") ? linear() : linear_of_model();
    s.softmax = model_.has("softmax") ? softmax() : softmax_of_model();
    s.layers = layers();
    return s;
  }

 private:
  LinearLayers linear_of_model() const {
    LinearLayers l = sizes<LinearLayers>(of_model_);
    l.gate = of_model_["gate"].word("gate", {"vector", "none"}) == "none" ? GateKind::none : GateKind::vector;
    l.gate_rank = l.gate == GateKind::none ? 0 : of_model_.size("gate_rank");
    l.output_gate = of_model_["output_gate"].truth("output_gate") ? OutputGate::silu : OutputGate::none;
    return l;
  }
  SoftmaxLayers softmax_of_model() const {
    if (!model_.has("heads")) return {};  // and no softmax layers
    SoftmaxLayers s = sizes<SoftmaxLayers>(of_model_);
    s.kv_heads = of_model_.divisor("kv_heads", s.heads);
    return s;
  }
  LinearLayers linear() const;
  SoftmaxLayers softmax() const;

  /// The section of the layers of one kind.
  Sourced part(const char* kind, std::initializer_list<const char*> keys) const {
    const JsonSection values = model_.section(kind), sources = sources_.section(kind);
    values.only(keys);
    sources.only(keys);
    return {values, sources};
  }
  template <class Layers>
  static Layers sizes(const Sourced& of) {
    Layers all;
    all.heads = of.size("heads");
    all.d_k = of.size("d_k");
    all.d_v = of.size("d_v");
    return all;
  }
  /// The pattern of the kinds, repeated to the number of layers. Those called "_alone" have no MLP.
  std::vector<LayerKind> layers() const {
    const auto pattern =
        model_.words("layers", {"linear", "softmax", "linear_alone", "softmax_alone"}, most_layers);
    std::vector<LayerKind> kinds;
    for (const std::string& word : pattern) {
      const bool is_linear = word.starts_with("linear");
      const char* kind = is_linear ? "linear" : "softmax";
      if (!model_.has("heads") && !model_.has(kind))
        model_.refuse(kind, fmt::format("missing, expected the sizes of {} layers", kind));
      kinds.emplace_back(is_linear ? Attention::linear : Attention::softmax, !word.ends_with("_alone"));
    }
    std::vector<LayerKind> all;
    for (std::int64_t i = 0, count = of_model_.size("count", {1, most_layers}); i < count; ++i)
      all.push_back(kinds[i % kinds.size()]);
    return all;
  }

  const JsonSection model_, sources_;
  const Sourced of_model_;
};

LinearLayers Reader::linear() const {
  const Sourced of = part("linear", {"attention", "heads", "qk_heads", "d_k", "d_v", "gate_rank",
                                     "gate_bound", "conv", "output_gate", "output_gate_rank"});
  LinearLayers l = sizes<LinearLayers>(of);
  const std::string kind =
      of["attention"].word("attention", {"linear", "deltanet", "gdn", "kda", "lightning", "mamba2"});
  const bool is_lightning = kind == "lightning", is_mamba = kind == "mamba2";
  l.form = is_lightning ? LinearForm::lightning : is_mamba ? LinearForm::mamba : LinearForm::plain;
  l.rule = kind == "linear" || l.form != LinearForm::plain ? Rule::decay : Rule::delta;
  l.gate = kind == "gdn" || l.form != LinearForm::plain ? GateKind::scalar
           : kind == "deltanet"                         ? GateKind::none
                                                        : GateKind::vector;
  const std::int64_t qk_heads = of.divisor("qk_heads", l.heads);
  l.qk_heads = qk_heads == l.heads ? 0 : qk_heads;
  l.gate_rank = of.size_if_any("gate_rank");
  if (of.has("gate_bound"))
    l.gate_bound = static_cast<float>(of["gate_bound"].number("gate_bound", {1e-3, 1e3}));
  if (l.gate_bound > 0 && (l.rule != Rule::delta || l.gate == GateKind::none))
    model_.section("linear").refuse("gate_bound", "only gates of gdn and kda have a bound");
  l.conv = of.size_if_any("conv");
  const std::string gate = of["output_gate"].word("output_gate", {"none", "silu", "sigmoid"});
  l.output_gate = gate == "none" ? OutputGate::none : gate == "silu" ? OutputGate::silu : OutputGate::sigmoid;
  l.output_gate_rank = of.size_if_any("output_gate_rank");
  if (is_lightning && (l.gate_rank > 0 || l.conv > 0))
    model_.section("linear").refuse("attention", "lightning attention has no gate_rank and no conv");
  if (is_mamba && (l.gate_rank > 0 || l.conv == 0 || l.output_gate != OutputGate::silu))
    model_.section("linear").refuse("attention", "mamba2 has conv, an output_gate by silu and no gate_rank");
  return l;
}

SoftmaxLayers Reader::softmax() const {
  const Sourced of = part("softmax", {"heads", "kv_heads", "d_k", "d_v", "output_gate", "head_norms",
                                      "rotated", "rotation_base", "q_rank", "kv_rank", "shared_k"});
  SoftmaxLayers s = sizes<SoftmaxLayers>(of);
  s.kv_heads = of.divisor("kv_heads", s.heads);
  s.has_output_gate = of.is("output_gate");
  s.has_head_norms = of.is("head_norms");
  s.rotated = of.size_if_any("rotated");
  s.q_rank = of.size_if_any("q_rank");
  s.kv_rank = of.size_if_any("kv_rank");
  s.shared_k = of.size_if_any("shared_k");
  const JsonSection section = model_.section("softmax");
  if (s.kv_rank > 0 && (s.kv_heads != s.heads || s.has_head_norms))
    section.refuse("kv_rank", "latent keys have as many heads as queries, and no head_norms");
  if (s.shared_k > 0 && (s.kv_rank == 0 || s.shared_k >= s.d_k))
    section.refuse("shared_k", "expected fewer channels than d_k, beside those that kv_rank makes");
  const std::int64_t most = s.kv_rank > 0 ? s.shared_k : s.d_k;
  if (s.rotated % 2 != 0 || s.rotated > most)
    section.refuse("rotated",
                   fmt::format("expected an even number up to {} channels, found {}", most, s.rotated));
  if (s.rotated > 0) s.rotation_base = of["rotation_base"].number("rotation_base", {1, 1e12});
  return s;
}

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
