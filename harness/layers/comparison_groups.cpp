// SPDX-License-Identifier: Apache-2.0
#include "harness/layers/comparison_groups.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "collectives/schedule/errors.hpp"
#include "harness/options/checks.hpp"
#include "harness/options/common_options.hpp"
#include "harness/options/grid.hpp"
#include "harness/machine/system.hpp"

namespace baton {
namespace {

const Choices<Pass> pass_choices{
    {"forward", Pass::forward}, {"backward", Pass::backward}, {"both", Pass::both}};
const Choices<SoftmaxBody> kernel_choices{{"own", SoftmaxBody::own}, {"cudnn", SoftmaxBody::cudnn}};
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

bool has_all_methods(const RawOperators& raw) { return raw.methods == std::vector<std::string>{"all"}; }

/// A layer that the flags ask for, without its method, its mode and its scan.
struct Asked {
  Layer layer;
  LayerDraw draw;
};

/// The dtype that the user asked for; "auto" is bf16 on GPUs.
Dtype dtype_of(const std::string& word, const std::vector<std::string>& executors) {
  if (word != "auto") return word == "bf16" ? Dtype::bf16 : Dtype::f32;
  return are_on_gpus(executors) ? Dtype::bf16 : Dtype::f32;
}

/// The body of softmax blocks that the user asked for; "auto" is cuDNN on GPUs where it is found.
SoftmaxBody kernel_of(const std::string& word, const std::vector<std::string>& executors, Dtype dtype) {
  if (word != "auto") return value_of(kernel_choices, word);
  const bool by_cudnn = dtype == Dtype::bf16 && are_on_gpus(executors) && !cudnn_library().lacking();
  return by_cudnn ? SoftmaxBody::cudnn : SoftmaxBody::own;
}

/// The words of --kernel. Throws UsageError.
std::vector<std::string> kernels_of(const RawOperators& raw) {
  if (raw.kernels == std::vector<std::string>{"auto"}) return raw.kernels;
  return resolve_names("kernel", raw.kernels, words_of(kernel_choices));
}

/// The layers of one attention, in the order of their tables.
std::vector<Asked> layers_of(const RawOperators& raw, const AttentionChoice& attention,
                             const std::vector<std::string>& executors, std::uint64_t seed) {
  Asked first;
  first.layer.rule = attention.rule;
  first.layer.share.latent = !raw.mla.empty();
  first.draw.packing.seed = seed;
  Grid<Asked> grid(first);
  grid.vary("--dtype", raw.dtypes,
            [&](Asked& one, const std::string& word) {
              one.layer.dtype = dtype_of(word, executors);
              one.layer.segmented = one.layer.dtype == Dtype::bf16;
            })
      .vary("--heads", raw.heads, [](Asked& one, auto heads) { one.layer.share.heads = heads; })
      .vary("--kv-heads", raw.kv_heads, [](Asked& one, auto heads) { one.layer.share.kv_heads = heads; })
      .vary("--d-k", raw.d_k, [](Asked& one, auto channels) { one.layer.share.d_k = channels; })
      .vary("--d-v", raw.d_v, [](Asked& one, auto channels) { one.layer.share.d_v = channels; })
      .vary("--chunk", raw.chunks, [](Asked& one, auto tokens) { one.layer.share.chunk = tokens; })
      .vary("--gate-kind", raw.gate_kinds,
            [&](Asked& one, const std::string& word) {
              one.layer.share.gate = attention.gate.value_or(value_of(gate_kind_choices, word));
            })
      .vary("--gate-draw", raw.gate_draws,
            [](Asked& one, const std::string& word) { one.draw.gates = value_of(gate_draw_choices, word); })
      .vary("--groups", raw.groups, [](Asked& one, int groups) { one.layer.groups = groups; })
      .vary("--packed", raw.packed, [](Asked& one, auto mean) { one.draw.packing.mean = mean; })
      .vary("--tokens", raw.tokens, [](Asked& one, auto tokens) { one.layer.share.tokens = tokens; })
      .vary("--pass", resolve_names("pass", raw.passes, words_of(pass_choices)),
            [](Asked& one, const std::string& word) { one.layer.pass = value_of(pass_choices, word); })
      .vary("--kernel", kernels_of(raw), [&](Asked& one, const std::string& word) {
        one.layer.kernels.softmax = kernel_of(word, executors, one.layer.dtype);
      });
  return grid.points();
}

/// Makes comparison groups, and no row twice.
class Groups {
 public:
  Groups(const RawOperators& raw, const std::vector<std::string>& names)
      : raw_(raw), names_(names), modes_(modes(raw.modes)) {}

  /// Adds the group of a layer: every method that it has, in every mode and by every scan.
  void add(const Asked& asked) {
    std::vector<std::shared_ptr<const Workload>> group;
    for (const std::string& name : names_)
      for (const Mode mode : modes_)
        for (const std::string& scan : scans_of(find_method(name), raw_.scans))
          if (auto one = workload(find_method(name), asked, mode, scan)) group.push_back(std::move(one));
    if (!group.empty()) all_.push_back(std::move(group));
  }

  std::vector<std::vector<std::shared_ptr<const Workload>>> all() { return std::move(all_); }

 private:
  /// A row; null for one that was not asked for, or that is there.
  std::shared_ptr<const Workload> workload(const SpMethod& method, const Asked& asked, Mode mode,
                                           const std::string& scan) {
    const bool is_softmax = method.attention == Attention::softmax;
    if (is_softmax && !raw_.attentions.empty()) return nullptr;
    const bool is_of_decay = asked.layer.rule == Rule::decay;
    if (has_all_methods(raw_) && is_of_decay && method.rules.front() != Rule::decay) return nullptr;
    Layer layer = asked.layer;
    layer.mode = method.sequence == Sequence::cut ? mode : Mode::overlapped;
    layer.scan = scan;
    LayerDraw draw = asked.draw;
    if (is_softmax) {  // which has neither gates nor chunks
      layer.share.gate = GateKind::none;
      layer.share.chunk = raw_.chunks.front();
      draw.gates = value_of(gate_draw_choices, raw_.gate_draws.front());
    } else {
      layer.kernels.softmax = SoftmaxBody::own;  // which linear attention has no choice of
    }
    auto one = operator_workload(method, layer, draw);
    return names_of_rows_.insert(one->axes().folded(in_name)).second ? one : nullptr;
  }

  const RawOperators& raw_;
  const std::vector<std::string>& names_;
  std::vector<Mode> modes_;
  std::set<std::string> names_of_rows_;
  std::vector<std::vector<std::shared_ptr<const Workload>>> all_;
};

/// Throws UsageError if no such layer can be built.
void check_layer(const Layer& layer) {
  const LayerShape& share = layer.share;
  if (share.kv_heads != 0 && share.heads % share.kv_heads != 0)
    throw UsageError(
        fmt::format("--kv-heads: {} heads of keys do not divide {} heads", share.kv_heads, share.heads));
  check_size(share.tokens, share.heads, std::max(share.d_k, share.d_v));
  // A state for each chunk, or a matrix.
  const std::int64_t states = share.chunks() * share.heads;
  check_size(states, share.d_k, has_matrices(layer.rule) ? std::max(share.d_k, share.d_v) : share.d_v);
}

/// Throws UsageError if --attention and --methods exclude one another.
void check_attention(const RawOperators& raw, const std::vector<std::string>& names) {
  if (std::find(raw.attentions.begin(), raw.attentions.end(), "softmax") != raw.attentions.end())
    throw UsageError(
        "--attention is of linear attention, and softmax attention is chosen by its methods, such as "
        "--methods "
        "ring_attention_softmax");
  if (raw.attentions.empty() || has_all_methods(raw)) return;
  for (const std::string& name : names)
    if (find_method(name).attention == Attention::softmax)
      throw UsageError("--attention is of linear attention, and the method '" + name + "' is not");
}

}  // namespace

std::vector<std::string> scan_names() {
  std::vector<std::string> names;
  for (const Collective* collective : collectives())
    if (collective->kind == Kind::exclusive_scan) names.push_back(collective->name);
  return names;
}

void require_scans(const std::vector<std::string>& scans, const std::vector<std::string>& methods) {
  if (scans.empty()) return;
  resolve_names("scan", scans, scan_names());
  if (std::none_of(methods.begin(), methods.end(),
                   [](const std::string& name) { return !find_method(name).scan.empty(); }))
    throw UsageError("--scan: none of these methods carries states by a scan: " +
                     one_line(fmt::format("{}", fmt::join(methods, ", ")), 120));
}

std::vector<std::string> scans_of(const SpMethod& method, const std::vector<std::string>& scans) {
  if (scans.empty() || method.scan.empty()) return {""};
  return resolve_names("scan", scans, scan_names());
}

std::vector<std::vector<std::shared_ptr<const Workload>>> comparison_groups(
    const RawOperators& raw, const std::vector<std::string>& names, const std::vector<std::string>& executors,
    std::uint64_t seed) {
  require_scans(raw.scans, names);
  check_attention(raw, names);
  Groups groups(raw, names);
  std::vector<AttentionChoice> attentions{{}};
  if (!raw.attentions.empty()) attentions = resolve_values("attention", raw.attentions, attention_choices);
  for (const AttentionChoice& attention : attentions)
    for (const Asked& asked : layers_of(raw, attention, executors, seed)) {
      check_layer(asked.layer);
      groups.add(asked);
    }
  return groups.all();
}

}  // namespace baton
