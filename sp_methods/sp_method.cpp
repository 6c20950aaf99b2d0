// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/sp_method.hpp"

#include <algorithm>
#include <utility>

#include "collectives/schedule/registry.hpp"

namespace baton {
namespace {

Registry<SpMethod>& registry() {
  static Registry<SpMethod> all("method");
  return all;
}

std::int64_t key_width(const LayerShape& share) { return share.d_k; }
std::int64_t value_width(const LayerShape& share) { return share.value_width(); }
std::int64_t output_width(const LayerShape& share) { return share.d_v; }
std::int64_t gate_width(const LayerShape& share) { return share.gate_width(); }
std::int64_t one(const LayerShape& /*share*/) { return 1; }
std::int64_t state_size(const LayerShape& share) { return share.d_k * share.d_v; }
std::int64_t all_heads(const LayerShape& share) { return share.heads; }
std::int64_t query_heads(const LayerShape& share) { return share.query_heads(); }
/// Softmax attention may have fewer heads of k than of q, and linear attention fewer of both.
std::int64_t key_heads(const LayerShape& share) { return std::min(share.key_heads(), share.query_heads()); }
std::int64_t value_heads(const LayerShape& share) { return share.key_heads(); }
/// Number of weights of the channels of q, k and v of a sequence, which lie in one row.
std::int64_t conv_width(const LayerShape& share) {
  return (2 * share.query_heads() * share.d_k + share.heads * share.d_v) / share.batch * share.conv_weights();
}

using enum TensorKind::Role;
using enum TensorKind::End;
constexpr TensorKind kinds[]{
    {"q", &LayerTensors::q, input, key_width, query_heads},
    {"k", &LayerTensors::k, input, key_width, key_heads},
    {"v", &LayerTensors::v, input, value_width, value_heads},
    {"g", &LayerTensors::g, input, gate_width, all_heads},
    {"beta", &LayerTensors::beta, input, one, all_heads, Rule::delta},
    {"a", &LayerTensors::a, input, key_width, all_heads, Rule::low_rank},
    {"b", &LayerTensors::b, input, key_width, all_heads, Rule::low_rank},
    {"o", &LayerTensors::o, output, output_width, all_heads},
    {"d_o", &LayerTensors::d_o, output_gradient, output_width, all_heads},
    {"dq", &LayerTensors::dq, gradient, key_width, query_heads},
    {"dk", &LayerTensors::dk, gradient, key_width, key_heads},
    {"dv", &LayerTensors::dv, gradient, value_width, value_heads},
    {"dg", &LayerTensors::dg, gradient, gate_width, all_heads},
    {"dbeta", &LayerTensors::dbeta, gradient, one, all_heads, Rule::delta},
    {"da", &LayerTensors::da, gradient, key_width, all_heads, Rule::low_rank},
    {"db", &LayerTensors::db, gradient, key_width, all_heads, Rule::low_rank},
    {"conv_w", &LayerTensors::conv_w, weight, conv_width, one},
    {"dconv_w", &LayerTensors::dconv_w, weight_gradient, conv_width, one},
};
constexpr TensorKind kinds_of_states[]{
    {"initial_state", &LayerTensors::initial_state, input, state_size, all_heads, {}, start},
    {"final_state", &LayerTensors::final_state, output, state_size, all_heads, {}, finish},
    {"d_final_state", &LayerTensors::d_final_state, output_gradient, state_size, all_heads, {}, finish},
    {"d_initial_state", &LayerTensors::d_initial_state, gradient, state_size, all_heads, {}, start},
};

/// The rank that has a state of the sequence. Zigzag tokens begin and end at the first one.
int owner_of(const TensorKind& kind, Layout layout, int ranks) {
  return *kind.end == start || layout == Layout::zigzag ? 0 : ranks - 1;
}

/// Adds the buffers that the layer's pass needs on a rank.
LayerTensors declare(Schedule& s, const SpMethod& method, const Layer& layer) {
  LayerTensors x;
  const std::int64_t tokens = tokens_of(method, s.rank(), s.ranks(), layer.share.tokens, layer.shares);
  const auto add = [&](const TensorKind& kind, std::int64_t rows, Dtype dtype) {
    const std::int64_t count = rows * kind.heads(layer.share) * kind.width(layer.share);
    const bool is_read = kind.role == input || kind.role == output_gradient || kind.role == weight;
    const std::string name(kind.name);
    x.*kind.slice = is_read ? s.input(name, count, dtype) : s.output(name, count, true, dtype);
  };
  for (const TensorKind& kind : kinds)
    if (kind.is_in(layer.rule, layer.pass)) {
      if (!kind.is_weight()) add(kind, tokens, layer.dtype);
      if (kind.is_weight() && kind.width(layer.share) > 0)
        add(kind, 1, kind.role == weight ? layer.dtype : Dtype::f32);
    }
  for (const TensorKind& kind : kinds_of_states)
    if (kind.is_in(layer.rule, layer.pass) && (*kind.end == start ? comes_in : goes_out)(layer.states))
      add(kind, s.rank() == owner_of(kind, method.layout, s.ranks()) ? 1 : 0, Dtype::f32);
  return x;
}

/// Why a method that takes states or not cannot take those of this layer.
Refusal refuse_states(const Layer& layer, const SpMethod& method, int ranks) {
  if (layer.states == States::none) return {};
  if (!method.has_states) return "it takes no state from before the sequence and gives none behind it";
  if ((layer.mode == Mode::compute_only || method.sequence == Sequence::own) && ranks > 1)
    return "without an exchange each rank has a sequence of its own, and a state is of one";
  const bool has_gradient = goes_out(layer.states) && layer.pass != Pass::forward;
  if (layer.dtype == Dtype::bf16 && layer.rule == Rule::decay && layer.share.gate == GateKind::scalar &&
      has_gradient)
    return "on GPUs dg of a gate a head is not exact beside the gradient of a state that goes out";
  if (layer.share.conv > 0) return "a state would need the rows before it for the convolution";
  return {};
}

/// Why a method that takes packed documents or not cannot take those of this layer.
Refusal refuse_packed(const Layer& layer, const SpMethod& method) {
  if (layer.starts.empty()) return {};
  if (!method.packs) return "it takes one document, not packed ones";
  if (method.attention == Attention::softmax) return {};
  const std::string separated =
      "on GPUs the gate of a document's first token separates it from the one before";
  if (layer.segmented && layer.share.gate == GateKind::none)
    return separated + ", and this layer has no gates";
  if (layer.segmented && layer.rule == Rule::low_rank)
    return separated + ", but a token of the low-rank rule reads the state before its own gate";
  return {};
}

/// Why a method that has convolutions or not cannot have that of this layer.
Refusal refuse_convolved(const Layer& layer, bool convolves) {
  if (layer.share.conv == 0) return {};
  if (!convolves) return "it has no convolution before q, k and v";
  if (layer.dtype == Dtype::bf16 && !layer.starts.empty())
    return "on GPUs a convolution takes one document, not packed ones";
  return {};
}

/// Why a method that repeats heads of q and k or not cannot take those of this layer.
Refusal refuse_grouped(const Layer& layer, const SpMethod& method) {
  const LayerShape& share = layer.share;
  if (share.query_heads() == share.heads) return {};
  const std::string found = ", not " + std::to_string(share.query_heads() / share.batch) + " for " +
                            std::to_string(share.heads / share.batch);
  if (method.attention == Attention::softmax)
    return "softmax attention has as many heads of q as of its output" + found;
  return method.groups_heads ? Refusal{} : "it has as many heads of q and k as of values" + found;
}

/// Why a method cannot take the shares of this layer on so many ranks.
Refusal refuse_shares(const Layer& layer, const SpMethod& method, int ranks) {
  const Shares& shares = layer.shares;
  if (shares.are_equal()) return {};
  if (!method.shares_unequally) return "its text has equal shares, as --shares padded gives";
  if (method.layout == Layout::striped && shares.rule != ShareRule::even)
    return "striped tokens are dealt in turn, as --shares even says";
  if (shares.rule == ShareRule::given && std::ssize(shares.given) != ranks)
    return "shares are given for " + std::to_string(shares.given.size()) + " ranks";
  const bool is_on_gpus = layer.dtype == Dtype::bf16 && method.attention == Attention::linear;
  if (is_on_gpus && cut_of(layer, method.layout, ranks).has_empty_piece())
    return "on GPUs linear layers take no piece without tokens";
  return {};
}

/// Methods know some rules of linear attention. A state has one head of keys for each head of
/// queries, and values of its own.
void refuse_unknown_layers(SpMethod& method) {
  method.unsupported = [method](const Layer& layer, int ranks) -> Refusal {
    const LayerShape& share = layer.share;
    const bool is_linear = method.attention == Attention::linear;
    const std::vector<Rule>& rules = method.rules;
    if (is_linear && share.latent) return "linear attention has values of its own, not those of latent keys";
    if (is_linear && share.key_heads() != share.heads)
      return "linear attention has as many heads of keys as of queries, not " +
             std::to_string(share.key_heads()) + " for " + std::to_string(share.heads);
    if (is_linear && (layer.mask.kind != MaskKind::causal || layer.mask.has_window()))
      return "its state is causal, and cannot take the mask " + to_string(layer.mask);
    if (method.needs_window && !layer.mask.has_window())
      return "it needs a window, such as --mask window:1024";
    if (std::find(rules.begin(), rules.end(), layer.rule) == rules.end())
      return "its text has the " + std::string(to_string(rules.front())) + " rule, not the " +
             to_string(layer.rule) + " rule";
    if (Refusal reason = refuse_shares(layer, method, ranks)) return reason;
    if (Refusal reason = refuse_packed(layer, method)) return reason;
    if (Refusal reason = refuse_grouped(layer, method)) return reason;
    if (Refusal reason = refuse_convolved(layer, method.convolves)) return reason;
    if (Refusal reason = refuse_states(layer, method, ranks)) return reason;
    return method.unsupported ? method.unsupported(layer, ranks) : Refusal{};
  };
}

}  // namespace

const char* to_string(Pass pass) {
  return pass == Pass::forward ? "forward" : pass == Pass::backward ? "backward" : "both";
}

const char* to_string(Mode mode) {
  return mode == Mode::overlapped ? "overlapped" : mode == Mode::exposed ? "exposed" : "compute_only";
}

const char* to_string(GateKind gate) {
  return gate == GateKind::vector ? "vector" : gate == GateKind::scalar ? "scalar" : "none";
}

std::string to_string(const Mask& mask) {
  if (mask.has_window()) return std::string(window_prefix) + std::to_string(mask.window);
  return mask.kind == MaskKind::causal ? "causal" : "full";
}

std::string to_string(const Shares& shares) {
  if (shares.rule == ShareRule::padded) return "padded";
  if (shares.rule != ShareRule::given) return shares.rule == ShareRule::even ? "even" : "last";
  std::string all;
  for (const std::int64_t share : shares.given)
    all.append(all.empty() ? "" : ",").append(std::to_string(share));
  return all;
}

const char* to_string(Attention attention) { return attention == Attention::linear ? "linear" : "softmax"; }

const char* to_string(Rule rule) {
  return rule == Rule::delta ? "delta" : rule == Rule::low_rank ? "low-rank" : "decay";
}

const char* to_string(States states) {
  return states == States::none  ? "none"
         : states == States::in  ? "in"
         : states == States::out ? "out"
                                 : "both";
}

const char* attention_name(Attention attention, Rule rule, GateKind gate) {
  if (attention == Attention::softmax || rule == Rule::decay) return to_string(attention);
  if (rule == Rule::low_rank) return "rwkv7";
  return gate == GateKind::vector ? "kda" : gate == GateKind::scalar ? "gdn" : "deltanet";
}

LayerTensors LayerTensors::rows(std::int64_t first, std::int64_t count, std::int64_t all) const {
  LayerTensors part;
  for (const TensorKind& kind : kinds) {
    const Slice& tensor = this->*kind.slice;
    const std::int64_t row = all == 0 ? 0 : tensor.count / all;
    part.*kind.slice = kind.is_weight() ? tensor : tensor.part(first * row, count * row);
  }
  return part;
}

std::span<const TensorKind> tensor_kinds() { return kinds; }

const TensorKind* find_tensor(std::string_view name) {
  for (const std::span<const TensorKind> all : {tensor_kinds(), std::span<const TensorKind>(kinds_of_states)})
    for (const TensorKind& kind : all)
      if (kind.name == name) return &kind;
  return nullptr;
}

RegisteredMethod::RegisteredMethod(const SpMethod& method) {
  add_or_exit([&method] {
    if (!method.claim)
      throw UsageError("the method '" + method.name +
                       "' has no .claim; one that returns std::nullopt claims nothing");
    SpMethod added = method;
    refuse_unknown_layers(added);
    registry().add(added.name, added);
  });
}

std::vector<const SpMethod*> sp_methods() { return registry().all(); }

const SpMethod& find_method(const std::string& name) { return registry().at(name); }

Positions positions_of(const SpMethod& method, int rank, int ranks, std::int64_t tokens,
                       const Shares& shares) {
  if (method.positions) return method.positions(rank, ranks, tokens);
  return Cut::of(method.layout, ranks, tokens, shares).positions(rank);
}

std::int64_t tokens_of(const SpMethod& method, int rank, int ranks, std::int64_t tokens,
                       const Shares& shares) {
  const Cut cut = Cut::of(method.layout, ranks, tokens, shares);
  if (method.sequence != Sequence::whole) return cut.share(rank);
  return rank == 0 ? cut.sequence() : 0;
}

Slice saved_for_backward(Schedule& schedule, const Layer& layer, const std::string& name, std::int64_t count,
                         Dtype dtype) {
  if (layer.saved && layer.pass == Pass::backward) return layer.saved->at(name);
  if (layer.saved) return (*layer.saved)[name] = schedule.lasting_scratch(name, count, dtype);
  return layer.pass == Pass::backward ? schedule.input(name, count, dtype)
                                      : schedule.scratch(name, count, dtype);
}

Schedule build(const SpMethod& method, const Layer& layer, int rank, int ranks, int ranks_per_node) {
  Schedule schedule(rank, ranks, ranks_per_node);
  Layer own = layer;
  own.share.tokens = cut_of(layer, method.layout, ranks).share(rank);
  own.cut_documents(cut_of(layer, Layout::contiguous, ranks).positions(rank).first);
  method.build(schedule, own, declare(schedule, method, own));
  return schedule;
}

std::vector<Schedule> build_all(const SpMethod& method, const Layer& layer, int ranks, int ranks_per_node) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < ranks; ++rank)
    schedules.push_back(build(method, layer, rank, ranks, ranks_per_node));
  return schedules;
}

}  // namespace baton
