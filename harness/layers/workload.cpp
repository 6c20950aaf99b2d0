// SPDX-License-Identifier: Apache-2.0
// Layers as workloads. The size that is timed is verified: some heads at full length by the
// recurrence, and all heads by the other methods of the comparison group.
#include "harness/layers/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collectives/schedule/errors.hpp"
#include "harness/layers/given_lengths.hpp"
#include "harness/layers/sketches.hpp"
#include "harness/layers/verify.hpp"
#include "sp_methods/attention_flops.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {
namespace {

class OperatorWorkload : public Workload {
 public:
  OperatorWorkload(const SpMethod& method, const Layer& layer, const LayerDraw& draw)
      : method_(method),
        layer_(layer),
        draw_(draw),
        sequence_(layer.mask.end),
        scan_(method.scan.empty() || layer.scan.empty() ? method.scan : layer.scan) {}

  std::string name() const override { return method_.name; }
  std::int64_t state_bytes() const override { return maps().state_bytes(); }
  std::int64_t state_rows() const override { return maps().rows(); }
  bool cuts_blocks() const override {
    return !scan_.empty() && find_collective(scan_).cuts_blocks && !is_alone();
  }

  Refusal unsupported(int ranks) const override {
    if (padded_.tokens > most_given_tokens)
      return fmt::format("its documents have {} tokens with their padding, more than {}", padded_.tokens,
                         most_given_tokens);
    if (is_by_cudnn() && layer_.dtype != Dtype::bf16)
      return "cuDNN computes blocks of bf16 tensors on GPUs, not of " + std::string(to_string(layer_.dtype));
    return method_.unsupported ? method_.unsupported(packed(layer_, ranks), ranks) : Refusal{};
  }
  Schedule build_rank(int rank, const Split& split) const override {
    Layer layer = packed(layer_, split.ranks);
    layer.blocks = split.blocks;
    return baton::build(method_, layer, rank, split.ranks, split.ranks_per_node);
  }
  std::optional<Cost> claim(const Split& split) const override {
    Layer layer = packed(layer_, split.ranks);
    layer.blocks = split.blocks;
    return method_.claim(layer, split);
  }

  void load(Executor& executor, const std::vector<Schedule>& schedules, std::uint64_t seed,
            Oracles& oracles) const override;
  Comparison compare(const Executor& executor, const std::vector<Schedule>& schedules, std::uint64_t seed,
                     Oracles& oracles) const override;

  std::shared_ptr<const Workload> sized(int ranks) const override;
  std::shared_ptr<const Workload> reduced(int ranks) const override;
  std::vector<std::string> varying_outputs() const override;

  double payload_bytes(int) const override { return 0; }
  double port_bytes(int) const override { return 0; }
  AxisValues axes() const override;
  WorkloadKind kind() const override { return WorkloadKind::layer; }
  Variant variant() const override {
    if (method_.sequence != Sequence::cut) return Variant::whole;
    return layer_.mode == Mode::exposed        ? Variant::exposed
           : layer_.mode == Mode::compute_only ? Variant::without_exchange
                                               : Variant::published;
  }

 private:
  /// True if the number of all tokens is given, and not that of a rank's.
  bool has_sequence() const { return sequence_ != Mask::unlimited; }
  /// True if each document is padded by itself, as shares are.
  bool pads_documents() const { return draw_.packing.multiple > 0 && layer_.shares.are_equal(); }
  /// True if the pairs of queries and keys do not follow from the number of tokens alone.
  bool has_some_pairs() const {
    return method_.attention == Attention::softmax &&
           (layer_.mask.has_window() || draw_.packing.has_documents());
  }
  /// The shares in words, with the multiple that each document is padded to.
  std::string shares() const {
    return to_string(layer_.shares) + (pads_documents() ? fmt::format(":{}", draw_.packing.multiple) : "");
  }
  /// The layer with its documents on so many ranks.
  Layer packed(Layer layer, int ranks) const {
    layer.starts =
        padded_.tokens > 0 ? padded_.starts : draw_.packing.starts(layer.share.tokens, ranks, layer.mask.end);
    return layer;
  }
  LayerProblem problem(std::size_t ranks, std::uint64_t seed) const;
  std::shared_ptr<const LayerOracle> oracle(const LayerProblem& problem, Oracles& oracles) const;
  Shape maps() const { return shape_of_maps(layer_, layer_.share.heads); }
  const char* attention() const { return attention_name(method_.attention, layer_.rule, layer_.share.gate); }
  bool is_by_cudnn() const { return layer_.kernels.softmax == SoftmaxBody::cudnn; }
  std::pair<std::string, std::string> kernel() const;
  AxisValue scan() const;
  bool is_alone() const { return layer_.mode == Mode::compute_only || method_.sequence == Sequence::own; }

  const SpMethod& method_;
  Layer layer_;
  LayerDraw draw_;
  std::int64_t sequence_;  // tokens of the sequence, of padding none
  std::string scan_;
  PaddedDocuments padded_;    // of so many ranks, if each is padded
  double padding_ = 0;        // tokens of padding over those of the sequence
  double visible_pairs_ = 0;  // where they depend on the number of ranks, which it then has
};

std::vector<std::string> OperatorWorkload::varying_outputs() const {
  if (is_by_cudnn() && layer_.pass != Pass::forward && !cudnn_library().is_deterministic())
    return {"dq", "dk", "dv"};
  std::vector<std::string> all;
  for (const TensorKind& kind : tensor_kinds())
    if (!method_.is_deterministic) all.emplace_back(kind.name);
  return all;
}

std::shared_ptr<const Workload> OperatorWorkload::sized(int ranks) const {
  if (!has_sequence() && !has_some_pairs()) return nullptr;
  auto sized = std::make_shared<OperatorWorkload>(*this);
  Layer& layer = sized->layer_;
  if (has_sequence())
    layer.share.tokens = layer_.shares.are_equal() ? Cut::padded(method_.layout, ranks, sequence_).tokens
                                                   : cut_of(layer_, method_.layout, ranks).tokens;
  if (has_some_pairs()) sized->visible_pairs_ = sized->problem(ranks, 0).visible_pairs();
  if (pads_documents()) {
    sized->padded_ = padded_documents(packed(layer, ranks).starts, sequence_, draw_.packing.multiple);
    layer.mask.end = sized->padded_.tokens;
    layer.share.tokens = Cut::padded(method_.layout, ranks, layer.mask.end).tokens;
  }
  if (has_sequence() && layer.shares.are_equal())
    sized->padding_ = static_cast<double>(layer.share.tokens * ranks) / static_cast<double>(sequence_) - 1;
  return sized;
}

std::shared_ptr<const Workload> OperatorWorkload::reduced(int ranks) const {
  Layer small = layer_;
  small.dtype = Dtype::f32;  // the same text, on a host
  small.kernels = {};
  small.share.d_k = std::min<std::int64_t>(small.share.d_k, 16);
  small.share.d_v = std::min<std::int64_t>(small.share.d_v, small.share.latent ? 12 : 16);
  small.share.chunk = std::min<std::int64_t>(small.share.chunk, 8);
  // Two chunks and a short one, an even number.
  small.share.tokens = 2 * (small.share.chunk + small.share.chunk / 4);
  if (has_sequence()) small.mask.end = ranks * small.share.tokens - 1;
  if (!layer_.shares.are_equal()) {
    small.shares = baton::reduced(layer_.shares, ranks, layer_.share.tokens, small.share.tokens);
    small.mask.end = small.shares.sequence;
  }
  if (small.mask.has_window())  // as large a part of a share
    small.mask.window = small.mask.window * small.share.tokens / layer_.share.tokens + 1;
  // As few heads as the method takes: one may cut them. As many as here share one of keys.
  const std::int64_t batch = layer_.share.batch, key_heads = find_tensor("k")->heads(layer_.share);
  const std::int64_t shared = layer_.share.heads / key_heads;
  std::int64_t least = std::max<std::int64_t>(2, layer_.groups);
  if (shared > 1) least = std::min(least, key_heads / batch);
  const auto set_key_heads = [&](std::int64_t count) {
    small.share.heads = shared * count * batch;
    small.share.kv_heads = layer_.share.group_heads() > 1 ? count * batch : 0;
    small.share.qk_heads = layer_.share.query_heads() < layer_.share.heads ? count * batch : 0;
  };
  set_key_heads(least);
  const LayerDraw draw = baton::reduced(draw_, layer_.share.tokens, small.share.tokens);
  while (OperatorWorkload(method_, small, draw).unsupported(ranks) && small.share.heads < layer_.share.heads)
    set_key_heads(++least);
  const auto one = std::make_shared<OperatorWorkload>(method_, small, draw);
  return one->pads_documents() ? one->sized(ranks) : one;
}

LayerProblem OperatorWorkload::problem(std::size_t ranks, std::uint64_t seed) const {
  const auto& [gates, packing] = draw_;
  static_cast<void>(packing);  // which sets the starts
  return {.attention = method_.attention,
          .share = layer_.share,
          .ranks = static_cast<int>(ranks),
          .alone = is_alone(),
          .gates = gates,
          .seed = seed,
          .dtype = layer_.dtype,
          .rule = layer_.rule,
          .starts = packed(layer_, static_cast<int>(ranks)).starts,
          .has_closed_gates = layer_.segmented,
          .mask = layer_.mask,
          .states = layer_.states,
          .shares = layer_.shares,
          .ends = padded_.ends};
}

std::shared_ptr<const LayerOracle> OperatorWorkload::oracle(const LayerProblem& problem,
                                                            Oracles& oracles) const {
  const LayerShape& s = problem.share;
  const OracleWork work = oracle_work(oracles.team(), problem);
  const double bytes = 8.0 * static_cast<double>(work.heads.size() * problem.all_tokens()) *
                       static_cast<double>(3 * s.d_k + 2 * s.d_v);
  return oracles.get<LayerOracle>(oracle_key(problem), bytes, [&] { return LayerOracle(problem, work); });
}

void OperatorWorkload::load(Executor& executor, const std::vector<Schedule>& schedules, std::uint64_t seed,
                            Oracles& oracles) const {
  write_layer(executor, schedules, method_, *oracle(problem(schedules.size(), seed), oracles));
}

Comparison OperatorWorkload::compare(const Executor& executor, const std::vector<Schedule>& schedules,
                                     std::uint64_t seed, Oracles& oracles) const {
  const LayerProblem layer = problem(schedules.size(), seed);
  LayerSketch sketch{.method = method_.name, .tensors = {}};
  const std::shared_ptr<const LayerOracle> right = oracle(layer, oracles);
  Comparison found = compare_layer(executor, schedules, method_, *right, &sketch);
  if (oracles.team().sum(found.wrong) > 0) return found;  // it must not be what others are compared with
  for (auto& [name, sums] : sketch.tensors) oracles.team().sum(sums);
  const double bytes = 40.0 * static_cast<double>(layer.all_tokens() * layer.share.heads);
  const auto first = oracles.get<LayerSketch>(
      fmt::format("sketch of {}{}, {}", to_string(layer_.pass), given_outputs(schedules), oracle_key(layer)),
      bytes, [&] { return sketch; });
  if (oracles.team().rank() > 0) return found;  // all have the same sketches
  const std::int64_t tokens = layer.all_tokens();
  const double least = has_some_pairs() ? least_rms(layer, Positions::run(0, tokens), tokens) : 0;
  const auto least_norm = [&](const std::string& name, std::int64_t head) {
    return std::max(least * std::sqrt(static_cast<double>(tokens * layer.width(name))),
                    least_of_terms(layer.dtype) * right->norm_of_terms(name, head));
  };
  return sum(std::move(found), compare_sketches(sketch, *first, tokens, found.tolerance, least_norm));
}

/// The layout of a method: "contiguous", "zigzag" or "other".
std::string layout_of(const SpMethod& method) {
  if (method.positions || method.layout == Layout::striped) return "other";
  return method.layout == Layout::zigzag ? "zigzag" : "contiguous";
}

/// The kernel of softmax blocks and its version; empty on hosts and for linear attention.
std::pair<std::string, std::string> OperatorWorkload::kernel() const {
  if (method_.attention != Attention::softmax || layer_.dtype != Dtype::bf16) return {};
  if (!is_by_cudnn()) return {to_string(SoftmaxBody::own), ""};
  return {to_string(SoftmaxBody::cudnn), cudnn_library().lacking() ? "" : cudnn_library().version()};
}

/// The scan, which stands in names where it is not the method's own: rows of one method compete.
AxisValue OperatorWorkload::scan() const {
  if (is_alone()) return {"scan", "", in_record_alone};
  const bool is_asked_for = !layer_.scan.empty() && !scan_.empty();
  return {"scan", scan_, is_asked_for ? in_name : in_record_alone, "scan:" + scan_};
}

AxisValues OperatorWorkload::axes() const {
  const LayerShape& share = layer_.share;
  const auto direction = layer_.pass == Pass::forward    ? "forward"
                         : layer_.pass == Pass::backward ? "reverse"
                                                         : "both";
  const Mode mode = is_alone() ? Mode::compute_only : layer_.mode;
  // The word of a rule with matrices says the kind of its gates.
  const bool has_word = has_matrices(layer_.rule);
  const AttentionFlops flops =
      attention_flops(method_.attention, layer_.rule, share.heads, share.d_k, share.d_v);
  // All pairs are twice those of a causal mask. Where a record has visible_pairs, they are counted.
  const double of_mask = layer_.mask.kind == MaskKind::full && !has_some_pairs() ? 2 : 1;
  const double passes = layer_.pass == Pass::forward ? 1 : layer_.pass == Pass::backward ? 2 : 3;
  AxisValues all{{"bench", "operator", in_record_alone},
                 {"name", method_.name, in_name},
                 {"mode", to_string(mode), method_.sequence == Sequence::cut ? in_name : in_record_alone},
                 {"direction", direction, in_record_alone},
                 {"layout", layout_of(method_), in_record_alone},
                 scan(),
                 {"pass", to_string(layer_.pass)},
                 {"state", to_string(layer_.states)},
                 {"attention", attention(), has_word ? in_all : in_contest},
                 {"flops_per_token", passes * flops.per_token, in_record_alone},
                 {"flops_per_pair", passes * of_mask * flops.per_pair, in_record_alone}};
  for (AxisValue one : axes_of(share, draw_)) {
    if (has_word && one.key == "gate") one.parts = in_record_alone;
    if (has_sequence() && one.key == "tokens") one.parts = in_record_alone;
    all.add(one);
  }
  if (has_sequence()) all.add({"padding", padding_, in_record_alone});
  if (visible_pairs_ > 0) all.add({"visible_pairs", visible_pairs_, in_record_alone});
  all.add({{"sequence", has_sequence() ? sequence_ : 0},
           {"pad_documents", pads_documents() ? draw_.packing.multiple : 0, in_record_alone},
           {"shares", shares(), shares() == "padded" ? in_record_alone : in_name},
           {"mask", to_string(layer_.mask)},
           {"groups", layer_.groups},
           {"dtype", to_string(layer_.dtype)},
           {"kernel", kernel().first, is_by_cudnn() ? in_all : in_record_alone, "kernel:cudnn"},
           {"kernel_version", kernel().second, in_record_alone}});
  return all;
}

}  // namespace

std::shared_ptr<const Workload> operator_workload(const SpMethod& method, const Layer& layer,
                                                  const LayerDraw& draw) {
  return std::make_shared<OperatorWorkload>(method, layer, draw);
}

}  // namespace baton
