// SPDX-License-Identifier: Apache-2.0
#include "harness/layers/comparison_groups.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <optional>
#include <set>

#include "collectives/schedule/errors.hpp"
#include "harness/layers/given_lengths.hpp"
#include "harness/machine/system.hpp"
#include "harness/options/checks.hpp"
#include "harness/options/common_options.hpp"

namespace baton {
namespace {

const Choices<Mode> mode_choices{
    {"compute_only", Mode::compute_only}, {"exposed", Mode::exposed}, {"overlapped", Mode::overlapped}};

/// A rule of linear attention and its kind of gate, which --gate-kind sets if it is empty.
struct AttentionChoice {
  Rule rule = Rule::decay;
  std::optional<GateKind> gate = {};
};

const Choices<ShareRule> share_choices{
    {"padded", ShareRule::padded}, {"even", ShareRule::even}, {"last", ShareRule::last}};

/// The shares that --shares names: one for each of its words, or given ones. Throws UsageError.
std::vector<Shares> shares_of(const std::vector<std::string>& words) {
  std::vector<Shares> all;
  if (!words.empty() && !words[0].empty() && std::isdigit(static_cast<unsigned char>(words[0][0])) != 0) {
    Shares& given = all.emplace_back(Shares{ShareRule::given, 0, given_lengths("--shares", words)});
    given.sequence = std::reduce(given.given.begin(), given.given.end());
  } else {
    for (const ShareRule rule : resolve_values("shares", words, share_choices)) all.push_back({rule});
  }
  return all;
}

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

/// The dtype that the user asked for; "auto" is bf16 on GPUs.
Dtype dtype_of(const std::string& word, const std::vector<std::string>& executors) {
  if (word != "auto") return word == "bf16" ? Dtype::bf16 : Dtype::f32;
  return are_on_gpus(executors) ? Dtype::bf16 : Dtype::f32;
}

/// The body of softmax blocks that the user asked for; "auto" is cuDNN on GPUs where it is found,
/// for masks without windows and documents.
SoftmaxBody kernel_of(const AskedLayer& asked, const std::vector<std::string>& executors) {
  const auto& [layer, draw, dtype, kernel] = asked;
  if (kernel != "auto") return value_of(kernel_choices, kernel);
  const bool by_cudnn = layer.dtype == Dtype::bf16 && are_on_gpus(executors) && !layer.mask.has_window() &&
                        !draw.packing.has_documents() && !cudnn_library().lacking();
  return by_cudnn ? SoftmaxBody::cudnn : SoftmaxBody::own;
}

/// Sets the widths and the number of key heads that --mla asks for. Throws UsageError.
void set_latent(LayerShape& share, const std::vector<std::int64_t>& widths) {
  if (widths.empty()) return;
  if (widths.size() != 2)
    throw UsageError(
        fmt::format("--mla needs two widths, of values and of positions, such as 512,64, found {}",
                    fmt::join(widths, ",")));
  if (widths[0] == 0) throw UsageError("--mla: the first width, of the values, must be 1 or more, found 0");
  share.latent = true;
  share.kv_heads = 1;
  share.d_k = widths[0] + widths[1];
  share.d_v = widths[0];
}

/// Gives a layer the number of all tokens that documents or shares have, and checks that they have
/// as many. Throws UsageError.
void set_sequence(Layer& layer, const std::vector<Shares>& all) {
  const bool is_known = layer.mask.end != Mask::unlimited;
  for (const Shares& shares : all) {
    if (shares.rule == ShareRule::given && !is_known) layer.mask.end = shares.sequence;
    if (shares.rule == ShareRule::given && layer.mask.end != shares.sequence)
      throw UsageError(fmt::format("--shares: {} tokens together, not the {} of the sequence",
                                   shares.sequence, layer.mask.end));
    if (!shares.are_equal() && layer.mask.end == Mask::unlimited)
      throw UsageError("--shares needs the number of all tokens, as --sequence 8K gives it");
  }
  if (layer.mask.end != Mask::unlimited) layer.share.tokens = layer.mask.end;
}

/// Throws UsageError if the documents of a layer cannot be padded, but shall be.
void check_padded_documents(const Layer& layer, const Packing& packing) {
  if (packing.multiple == 0) return;
  if (!packing.has_documents() || layer.mask.end == Mask::unlimited)
    throw UsageError(
        "--pad-documents needs documents and the number of all tokens: --documents, or --packed and "
        "--sequence");
  if (layer.mask.kind == MaskKind::full)
    throw UsageError("--pad-documents: a full mask would see the padding of each document");
}

/// Gives a token the heads of all sequences of the batch.
void set_batch(LayerShape& share) {
  share.heads *= share.batch;
  share.kv_heads *= share.batch;
  share.qk_heads *= share.batch;
}

/// The layers of one attention, in the order of their tables.
std::vector<AskedLayer> layers_of(const RawOperators& raw, const AttentionChoice& attention,
                                  const std::vector<std::string>& executors, std::uint64_t seed) {
  AskedLayer first;
  first.layer.rule = attention.rule;
  first.draw.packing.seed = seed;
  if (!raw.documents.empty()) {
    std::vector<std::int64_t>& lengths = first.draw.packing.lengths =
        given_lengths("--documents", raw.documents);
    first.layer.mask.end = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  }
  const std::vector<Shares> shares = shares_of(raw.shares);
  std::vector<AskedLayer> all = raw.layers.points(first);
  for (AskedLayer& asked : all) {
    Layer& layer = asked.layer;
    set_latent(layer.share, raw.mla);
    set_batch(layer.share);
    set_sequence(layer, shares);
    check_padded_documents(layer, asked.draw.packing);
    layer.dtype = dtype_of(asked.dtype, executors);
    layer.segmented = layer.dtype == Dtype::bf16;
    layer.kernels.softmax = kernel_of(asked, executors);
    if (attention.gate) layer.share.gate = *attention.gate;
  }
  return all;
}

/// Throws UsageError if no such layer can be built.
void check_layer(const Layer& layer) {
  const LayerShape& share = layer.share;
  if (share.kv_heads != 0 && share.heads % share.kv_heads != 0)
    throw UsageError(fmt::format("--kv-heads: {} heads of keys do not divide {} heads",
                                 share.kv_heads / share.batch, share.heads / share.batch));
  if (share.heads % share.query_heads() != 0)
    throw UsageError(fmt::format("--qk-heads: {} heads of q and k do not divide {} heads",
                                 share.qk_heads / share.batch, share.heads / share.batch));
  check_size(share.tokens, share.heads, std::max(share.d_k, share.d_v));
  // A state for each chunk, or a matrix.
  const std::int64_t states = share.chunks() * share.heads;
  check_size(states, share.d_k, has_matrices(layer.rule) ? std::max(share.d_k, share.d_v) : share.d_v);
}

/// Makes comparison groups, and no row twice.
class Groups {
 public:
  Groups(const RawOperators& raw, const std::vector<std::string>& names)
      : raw_(raw), names_(names), modes_(modes(raw.modes)), shares_(shares_of(raw.shares)) {}

  /// Adds the groups of layers of one attention.
  void add(const std::vector<AskedLayer>& layers) {
    for (const AskedLayer& asked : layers) {
      check_layer(asked.layer);
      add(asked, layers.front());
    }
  }

  std::vector<std::vector<std::shared_ptr<const Workload>>> all() { return std::move(all_); }

 private:
  /// Adds the group of a layer: every method that it has, in every mode and by every scan. `first`
  /// is the first of all layers.
  void add(const AskedLayer& asked, const AskedLayer& first) {
    std::vector<std::shared_ptr<const Workload>> group;
    for (const std::string& name : names_)
      for (const Mode mode : modes_)
        for (const std::string& scan : scans_of(find_method(name), raw_.scans))
          for (const Shares& shares : shares_)
            if (auto one = workload(find_method(name), asked, first, {mode, scan, shares}))
              group.push_back(std::move(one));
    if (!group.empty()) all_.push_back(std::move(group));
  }

  /// What rows of a group differ in, beside their method.
  struct Choice {
    Mode mode;
    std::string scan;
    Shares shares;
  };

  /// A row; null for one that was not asked for, or that is there.
  std::shared_ptr<const Workload> workload(const SpMethod& method, const AskedLayer& asked,
                                           const AskedLayer& first, const Choice& choice) {
    const bool is_softmax = method.attention == Attention::softmax;
    if (is_softmax && !raw_.attentions.empty()) return nullptr;
    const bool is_of_decay = asked.layer.rule == Rule::decay;
    if (has_all_methods(raw_) && is_of_decay && method.rules.front() != Rule::decay) return nullptr;
    if (has_all_methods(raw_) && method.needs_window && !asked.layer.mask.has_window()) return nullptr;
    Layer layer = asked.layer;
    layer.mode = method.sequence == Sequence::cut ? choice.mode : Mode::overlapped;
    layer.scan = choice.scan;
    layer.shares = choice.shares;
    if (!layer.shares.are_equal()) layer.shares.sequence = layer.mask.end;
    LayerDraw draw = asked.draw;
    if (is_softmax) {  // which has neither gates nor chunks
      layer.share.gate = GateKind::none;
      layer.share.chunk = first.layer.share.chunk;
      draw.gates = first.draw.gates;
    } else {
      layer.kernels.softmax = SoftmaxBody::own;  // which linear attention has no choice of
    }
    auto one = operator_workload(method, layer, draw);
    return names_of_rows_.insert(one->axes().folded(in_name)).second ? one : nullptr;
  }

  const RawOperators& raw_;
  const std::vector<std::string>& names_;
  std::vector<Mode> modes_;
  std::vector<Shares> shares_;
  std::set<std::string> names_of_rows_;
  std::vector<std::vector<std::shared_ptr<const Workload>>> all_;
};

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
  for (const AttentionChoice& attention : attentions) groups.add(layers_of(raw, attention, executors, seed));
  return groups.all();
}

}  // namespace baton
