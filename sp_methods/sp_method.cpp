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

/// Adds the buffers that the layer's pass needs on a rank of so many tokens.
LayerTensors declare(Schedule& s, const Layer& layer, std::int64_t tokens) {
  const GlaShape& share = layer.share;
  const std::int64_t rows = tokens * share.heads;
  const std::int64_t key_rows = tokens * share.key_heads();
  const std::int64_t gates = rows * share.gate_width();
  const auto input = [&](const char* name, std::int64_t count) { return s.input(name, count, layer.dtype); };
  const auto output = [&](const char* name, std::int64_t count) {
    return s.output(name, count, true, layer.dtype);
  };
  LayerTensors x;
  x.q = input("q", rows * share.d_k);
  x.k = input("k", key_rows * share.d_k);
  x.v = input("v", key_rows * share.value_width());
  x.g = input("g", gates);
  const bool has_beta = layer.rule == Rule::delta, has_a_and_b = layer.rule == Rule::low_rank;
  if (has_beta) x.beta = input("beta", rows);
  if (has_a_and_b) x.a = input("a", rows * share.d_k), x.b = input("b", rows * share.d_k);
  if (layer.pass != Pass::backward) x.o = output("o", rows * share.d_v);
  if (layer.pass == Pass::forward) return x;
  x.d_o = input("d_o", rows * share.d_v);
  x.dq = output("dq", rows * share.d_k);
  x.dk = output("dk", key_rows * share.d_k);
  x.dv = output("dv", key_rows * share.value_width());
  x.dg = output("dg", gates);
  if (has_beta) x.dbeta = output("dbeta", rows);
  if (has_a_and_b) x.da = output("da", rows * share.d_k), x.db = output("db", rows * share.d_k);
  return x;
}

/// Why a method that takes packed documents or not cannot take those of this layer.
Refusal refuse_packed(const Layer& layer, bool packs) {
  if (layer.starts.empty()) return {};
  if (!packs) return "it takes one document, not packed ones";
  if (layer.segmented || layer.dtype != Dtype::f32)
    return "packed documents have kernels of f32 tensors on hosts, none of " +
           std::string(to_string(layer.dtype)) + " on GPUs";
  return {};
}

/// Methods know some rules of linear attention. A state has one head of keys for each head of
/// queries, and values of its own.
void refuse_unknown_layers(SpMethod& method) {
  method.unsupported = [own = method.unsupported, rules = method.rules, packs = method.packs,
                        is_linear = method.attention == Attention::linear](const Layer& layer,
                                                                           int ranks) -> Refusal {
    const GlaShape& share = layer.share;
    if (is_linear && share.latent) return "linear attention has values of its own, not those of latent keys";
    if (is_linear && share.key_heads() != share.heads)
      return "linear attention has as many heads of keys as of queries, not " +
             std::to_string(share.key_heads()) + " for " + std::to_string(share.heads);
    if (std::find(rules.begin(), rules.end(), layer.rule) == rules.end())
      return "its text has the " + std::string(to_string(rules.front())) + " rule, not the " +
             to_string(layer.rule) + " rule";
    if (Refusal reason = refuse_packed(layer, packs)) return reason;
    return own ? own(layer, ranks) : Refusal{};
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

const char* to_string(Attention attention) { return attention == Attention::linear ? "linear" : "softmax"; }

const char* to_string(Rule rule) {
  return rule == Rule::delta ? "delta" : rule == Rule::low_rank ? "low-rank" : "decay";
}

const char* attention_name(Attention attention, Rule rule, GateKind gate) {
  if (attention == Attention::softmax || rule == Rule::decay) return to_string(attention);
  if (rule == Rule::low_rank) return "rwkv7";
  return gate == GateKind::vector ? "kda" : gate == GateKind::scalar ? "gdn" : "deltanet";
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

Positions positions_of(const SpMethod& method, int rank, int ranks, std::int64_t tokens) {
  return method.positions ? method.positions(rank, ranks, tokens) : contiguous_positions(rank, tokens);
}

std::int64_t tokens_of(const SpMethod& method, int rank, int ranks, std::int64_t tokens) {
  if (method.sequence != Sequence::whole) return tokens;
  return rank == 0 ? ranks * tokens : 0;
}

Slice saved_for_backward(Schedule& schedule, const Layer& layer, const std::string& name, std::int64_t count,
                         Dtype dtype) {
  if (layer.saved && layer.pass == Pass::backward) return layer.saved->at(name);
  if (layer.saved) return (*layer.saved)[name] = schedule.lasting_scratch(name, count, dtype);
  return layer.pass == Pass::backward ? schedule.input(name, count, dtype)
                                      : schedule.scratch(name, count, dtype);
}

Schedule build(const SpMethod& method, const Layer& layer, int rank, int ranks, int ranks_a_node) {
  Schedule schedule(rank, ranks, ranks_a_node);
  Layer own = layer;
  cut_at_starts(own.share, layer.starts, rank * layer.share.tokens);
  method.build(schedule, own, declare(schedule, own, tokens_of(method, rank, ranks, layer.share.tokens)));
  return schedule;
}

std::vector<Schedule> build_all(const SpMethod& method, const Layer& layer, int ranks, int ranks_a_node) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < ranks; ++rank)
    schedules.push_back(build(method, layer, rank, ranks, ranks_a_node));
  return schedules;
}

}  // namespace baton
