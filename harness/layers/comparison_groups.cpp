// SPDX-License-Identifier: Apache-2.0
#include "harness/layers/comparison_groups.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "collectives/schedule/errors.hpp"
#include "harness/options/checks.hpp"
#include "harness/process/system.hpp"

namespace baton {
namespace {

const Choices<Pass> pass_choices{
    {"forward", Pass::forward}, {"backward", Pass::backward}, {"both", Pass::both}};
const Choices<Mode> mode_choices{
    {"compute_only", Mode::compute_only}, {"exposed", Mode::exposed}, {"overlapped", Mode::overlapped}};

/// A rule of linear attention and its kind of gate, which --gate-kind sets if it is empty.
struct AttentionChoice {
  Rule rule = Rule::decay;
  std::optional<GateKind> gate = {};
};

/// The words of --attention and the rules that they stand for.
const Choices<AttentionChoice> attention_choices{{"linear", {}},
                                                 {"gdn", {Rule::delta, GateKind::scalar}},
                                                 {"kda", {Rule::delta, GateKind::vector}},
                                                 {"deltanet", {Rule::delta, GateKind::none}},
                                                 {"rwkv7", {Rule::low_rank, GateKind::vector}}};

/// The modes that `words` name, in the order of `mode_choices`: an overlapped row comes after the
/// rows that its hidden share refers to. Throws UsageError.
std::vector<Mode> modes(const std::vector<std::string>& words) {
  const auto given = resolve_values("mode", words, mode_choices);
  std::vector<Mode> all;
  for (const auto& [word, mode] : mode_choices)
    if (std::find(given.begin(), given.end(), mode) != given.end()) all.push_back(mode);
  return all;
}

Layer layer_of(const RawOperators& raw, Dtype dtype) {
  Layer layer;
  layer.share = {0,
                 raw.heads,
                 raw.d_k,
                 raw.d_v,
                 raw.chunk,
                 value_of(gate_kind_choices, raw.gate_kind),
                 raw.kv_heads,
                 !raw.mla.empty()};
  layer.groups = raw.groups;
  layer.scan = raw.scan;
  layer.dtype = dtype;
  layer.segmented = dtype == Dtype::bf16;
  return layer;
}

bool has_all_methods(const RawOperators& raw) { return raw.methods == std::vector<std::string>{"all"}; }

/// The kinds of attention whose methods a group has.
struct Wanted {
  bool linear = true;
  bool softmax = true;
};

/// A comparison group: every wanted method in every mode. Linear attention has no choice of body.
std::vector<std::shared_ptr<const Workload>> comparison_group(const RawOperators& raw,
                                                              const std::vector<std::string>& names,
                                                              const Layer& shared, const Wanted& wanted) {
  const auto given_modes = modes(raw.modes);
  std::vector<std::shared_ptr<const Workload>> all;
  for (const std::string& name : names)
    for (Mode mode : given_modes) {
      const SpMethod& method = find_method(name);
      const bool is_softmax = method.attention == Attention::softmax;
      if (!(is_softmax ? wanted.softmax : wanted.linear)) continue;
      if (has_all_methods(raw) && shared.rule == Rule::decay && method.rules.front() != Rule::decay) continue;
      const bool has_exchange = method.sequence == Sequence::cut;
      if (!has_exchange && mode != given_modes.front()) continue;
      Layer layer = shared;
      layer.mode = has_exchange ? mode : Mode::overlapped;
      if (is_softmax)
        layer.share.gate = GateKind::none;
      else
        layer.kernels.softmax = SoftmaxBody::own;
      all.push_back(
          operator_workload(method, layer, value_of(gate_draw_choices, raw.gate_draw), raw.packing));
    }
  return all;
}

/// Adds the comparison groups of one attention; `shared` has what all their layers share.
void add_groups(std::vector<std::vector<std::shared_ptr<const Workload>>>& all, const RawOperators& raw,
                const std::vector<std::string>& names, const Layer& shared,
                const std::vector<SoftmaxBody>& kernels) {
  const bool has_softmax = raw.attentions.empty();
  for (std::int64_t tokens : raw.tokens)
    for (Pass pass : resolve_values("pass", raw.passes, pass_choices))
      for (const SoftmaxBody kernel : kernels) {
        Layer layer = shared;
        layer.share.tokens = tokens;
        layer.pass = pass;
        layer.kernels.softmax = kernel;
        auto group = comparison_group(raw, names, layer, {kernel == kernels.front(), has_softmax});
        if (!group.empty()) all.push_back(std::move(group));
      }
}

/// Throws UsageError if the flags describe no layer that can be built.
void check_layers(const RawOperators& raw, const std::vector<std::string>& names) {
  require_scan(raw.scan, names);
  if (raw.kv_heads != 0 && raw.heads % raw.kv_heads != 0)
    throw UsageError(
        fmt::format("--kv-heads: {} heads of keys do not divide {} heads", raw.kv_heads, raw.heads));
  for (auto tokens = raw.tokens.begin(); tokens != raw.tokens.end(); ++tokens) {
    if (std::find(raw.tokens.begin(), tokens, *tokens) != tokens)
      throw UsageError(fmt::format("--tokens names {} twice", *tokens));
    check_size(*tokens, raw.heads, std::max(raw.d_k, raw.d_v));
    check_size((*tokens + raw.chunk - 1) / raw.chunk * raw.heads, raw.d_k,
               raw.d_v);  // a state for each chunk
  }
  for (const std::string& name : names)
    if (!raw.attentions.empty() && !has_all_methods(raw) && find_method(name).attention == Attention::softmax)
      throw UsageError("--attention is of linear attention, and the method '" + name + "' is not");
}

}  // namespace

std::vector<std::string> scan_names() {
  std::vector<std::string> names;
  for (const Collective* collective : collectives())
    if (collective->kind == Kind::exclusive_scan) names.push_back(collective->name);
  return names;
}

void require_scan(const std::string& scan, const std::vector<std::string>& methods) {
  if (scan.empty()) return;
  resolve_names("scan", {scan}, scan_names());
  if (std::none_of(methods.begin(), methods.end(),
                   [](const std::string& name) { return !find_method(name).scan.empty(); }))
    throw UsageError("--scan: none of these methods carries states by a scan: " +
                     one_line(fmt::format("{}", fmt::join(methods, ", ")), 120));
}

std::vector<std::vector<std::shared_ptr<const Workload>>> comparison_groups(
    const RawOperators& raw, const std::vector<std::string>& names, Dtype dtype,
    const std::vector<SoftmaxBody>& kernels) {
  check_layers(raw, names);
  std::vector<std::vector<std::shared_ptr<const Workload>>> all;
  const Layer gated = layer_of(raw, dtype);
  if (raw.attentions.empty()) {
    add_groups(all, raw, names, gated, kernels);
    return all;
  }
  for (const AttentionChoice& choice : resolve_values("attention", raw.attentions, attention_choices)) {
    Layer layer = gated;
    layer.rule = choice.rule;
    layer.share.gate = choice.gate.value_or(gated.share.gate);
    add_groups(all, raw, names, layer, {kernels.front()});
  }
  return all;
}

}  // namespace baton
