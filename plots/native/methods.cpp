// SPDX-License-Identifier: Apache-2.0
#include "plots/native/methods.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include "collectives/schedule/errors.hpp"
#include "sp_methods/sp_method.hpp"

namespace nb = nanobind;

namespace baton {
namespace {

const std::map<std::string, Layout> layouts{
    {"contiguous", Layout::contiguous}, {"zigzag", Layout::zigzag}, {"striped", Layout::striped}};
/// The rules of linear attention by the words of --attention.
std::map<std::string, Rule> rules_by_words() {
  std::map<std::string, Rule> all;
  for (const Rule rule : {Rule::decay, Rule::delta, Rule::low_rank})
    for (const GateKind gate : {GateKind::vector, GateKind::scalar, GateKind::none})
      all[attention_name(Attention::linear, rule, gate)] = rule;
  return all;
}

/// The value of a word. Throws UsageError if there is none.
template <class Value>
Value value_of(const std::map<std::string, Value>& words, const std::string& word, const std::string& method,
               const std::string& more = "") {
  const auto found = words.find(word);
  if (found != words.end()) return found->second;
  std::string known;
  for (const auto& [name, value] : words) known += (known.empty() ? "" : ", ") + name;
  throw UsageError("method " + method + ": unknown word '" + word + "'; known: " + known + more);
}

/// Records the native that has all of the layer's tensors, each [tokens, heads, width].
void build(Schedule& s, const std::string& name, const Layer& layer, const LayerTensors& x) {
  std::vector<Slice> writes, reads;
  std::vector<std::vector<std::int64_t>> shapes, shapes_of_reads;
  for (const TensorKind& kind : tensor_kinds()) {
    const std::int64_t width = kind.width(layer.share);
    if (kind.is_weight() || width == 0 || !kind.is_in(layer.rule, layer.pass)) continue;
    const bool is_read =
        kind.role == TensorKind::Role::input || kind.role == TensorKind::Role::output_gradient;
    (is_read ? reads : writes).push_back(x.*kind.slice);
    (is_read ? shapes_of_reads : shapes).push_back({layer.share.tokens, kind.heads(layer.share), width});
  }
  shapes.insert(shapes.end(), shapes_of_reads.begin(), shapes_of_reads.end());
  s.native(name, layer.blocks, std::move(writes), std::move(reads));
  s.shape_native(std::move(shapes));
}

Refusal unsupported(const PythonMethod& method, const Layer& layer, int ranks) {
  const std::vector<std::string>& attentions = method.attentions;
  const std::string found = attention_name(Attention::linear, layer.rule, layer.share.gate);
  if (layer.mode != Mode::overlapped) return "a method in Python runs as it is written";
  if (layer.share.latent) return "a method in Python takes values of their own, not those of latent keys";
  if (layer.mask.kind != MaskKind::causal || layer.mask.has_window())
    return "a method in Python has the causal mask";
  if (attentions.front() != "softmax" && std::ranges::find(attentions, found) == attentions.end())
    return "it computes " + attentions.front() + ", not " + found;
  if (!method.lacks.empty()) return method.lacks;
  if (method.most_ranks > 0 && ranks > method.most_ranks)
    return "it takes at most " + std::to_string(method.most_ranks) +
           (method.most_ranks == 1 ? " rank" : " ranks");
  if (!method.has_backward && layer.pass != Pass::forward)
    return "it has no backward pass; --pass forward times the forward pass";
  return {};
}

/// Bytes of the parts of a layer on one rank, which claims count in.
PythonMethod::Sizes sizes_of(const Layer& layer, int ranks) {
  PythonMethod::Sizes all{{"P", ranks}, {"N", shape_of_maps(layer, layer.share.heads).state_bytes()}};
  for (const auto& [word, name] : {std::pair{"Q", "q"}, {"K", "k"}, {"V", "v"}, {"O", "o"}}) {
    const TensorKind& kind = *find_tensor(name);
    all.emplace_back(
        word, layer.share.tokens * kind.heads(layer.share) * kind.width(layer.share) * bytes_of(layer.dtype));
  }
  return all;
}

std::optional<Cost> claim_of(const PythonMethod& method, const Layer& layer, const Split& split) {
  if (!method.bytes || !method.hops) return std::nullopt;
  const nb::gil_scoped_acquire lock;
  const PythonMethod::Sizes sizes = sizes_of(layer, split.ranks);
  const auto bytes = (*method.bytes)(to_string(layer.pass), sizes);
  const auto hops = (*method.hops)(to_string(layer.pass), sizes);
  if (!bytes || !hops) return std::nullopt;
  return Cost{*bytes, static_cast<int>(*hops)};
}

}  // namespace

void add_method(const PythonMethod& method) {
  const bool is_softmax = method.attentions == std::vector<std::string>{"softmax"};
  const std::map<std::string, Rule> rules = rules_by_words();
  std::vector<Rule> known;
  for (const std::string& word : method.attentions)
    known.push_back(is_softmax ? Rule::decay : value_of(rules, word, method.name, ", or softmax alone"));
  // Registries outlive the interpreter, so what they hold of it is never given back.
  const auto* const kept = new PythonMethod(method);
  const RegisteredMethod registered({
      .name = method.name,
      .summary = "Python: " + method.summary,
      .attention = is_softmax ? Attention::softmax : Attention::linear,
      .rules = known,
      .scan = {},
      .build = [kept](Schedule& s, const Layer& layer,
                      const LayerTensors& x) { build(s, kept->name, layer, x); },
      .claim = [kept](const Layer& layer, const Split& split) { return claim_of(*kept, layer, split); },
      .unsupported = [kept](const Layer& layer, int ranks) { return unsupported(*kept, layer, ranks); },
      .layout = value_of(layouts, method.layout, method.name),
      .is_deterministic = method.is_deterministic,
  });
}

}  // namespace baton
