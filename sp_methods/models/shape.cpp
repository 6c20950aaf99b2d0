// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/models/shape.hpp"

#include <numeric>

#include "sp_methods/attention_flops.hpp"

namespace baton {

namespace {

using WeightKind = Weight::Kind;

/// Adds the projection called `name` from `rows` to `columns` numbers: one matrix, or two with
/// `rank` numbers between them, which may be normed.
void add_projection(std::vector<Weight>& all, const std::string& name, std::int64_t rows,
                    std::int64_t columns, std::int64_t rank, bool is_normed = false) {
  if (rank == 0) {
    all.push_back({name, rows, columns});
    return;
  }
  all.push_back({name + "_down", rows, rank});
  if (is_normed) all.push_back({name + "_down_norm", 1, rank, WeightKind::norm});
  all.push_back({name + "_up", rank, columns});
}

/// Adds the weights of latent rows, and of the keys and values that are made from them.
void add_latent_keys(std::vector<Weight>& all, const SoftmaxLayers& of, std::int64_t width) {
  all.push_back({"latent_down", width, of.kv_rank});
  all.push_back({"latent_down_norm", 1, of.kv_rank, WeightKind::norm});
  if (of.shared_k > 0) all.push_back({"shared_key", width, of.shared_k});
  all.push_back({"key", of.kv_rank, of.heads * (of.d_k - of.shared_k)});
  all.push_back({"value", of.kv_rank, of.heads * of.d_v});
}

}  // namespace

LayerShape ModelShape::share(Attention kind, std::int64_t tokens) const {
  if (kind == Attention::softmax)
    return {.tokens = tokens,
            .heads = softmax.heads,
            .d_k = softmax.d_k,
            .d_v = softmax.d_v,
            .chunk = chunk,
            .gate = GateKind::none,
            .kv_heads = softmax.kv_heads};
  return {.tokens = tokens,
          .heads = linear.heads,
          .d_k = linear.d_k,
          .d_v = linear.d_v,
          .chunk = chunk,
          .gate = linear.gate,
          .conv = linear.conv,
          .conv_bias = linear.form == LinearForm::mamba,
          .qk_heads = linear.qk_heads};
}

std::vector<Weight> ModelShape::weights(LayerKind kind) const {
  const LayerShape of = share(kind, 1);
  const std::int64_t values = of.heads * of.d_v;
  const bool is_linear = kind == Attention::linear;
  std::vector<Weight> all{{"norm", 1, width, WeightKind::norm}};
  add_projection(all, "query", width, of.query_heads() * of.d_k, is_linear ? 0 : softmax.q_rank, true);
  if (is_latent(kind)) {
    add_latent_keys(all, softmax, width);
  } else {
    all.push_back({"key", width, (is_linear ? of.query_heads() : of.key_heads()) * of.d_k});
    all.push_back({"value", width, (is_linear ? of.heads : of.key_heads()) * of.d_v});
  }
  if (!is_linear && softmax.has_head_norms) {
    all.push_back({"query_norm", 1, of.d_k, WeightKind::norm});
    all.push_back({"key_norm", 1, of.d_k, WeightKind::norm});
  }
  if (of.conv > 0)
    all.push_back({"conv", 2 * of.query_heads() * of.d_k + values, of.conv_weights(), WeightKind::taps});
  if (has_gates(kind) && !is_lightning(kind)) {
    const std::int64_t gates = of.heads * of.gate_width();
    add_projection(all, "gate", width, gates, linear.gate_rank);
    all.push_back({"gate_bias", 1, gates, WeightKind::bias});
    if (has_decay_rates(kind)) all.push_back({"gate_rate", 1, of.heads, WeightKind::bias});
  }
  if (is_mamba(kind)) all.push_back({"skip", 1, of.heads, WeightKind::bias});
  if (rule(kind) == Rule::delta) all.push_back({"beta", width, of.heads});
  if (output_gate(kind) != OutputGate::none)
    add_projection(all, "output_gate", width, values, is_linear ? linear.output_gate_rank : 0);
  if (is_linear) all.push_back({"output_norm", 1, normed_width(), WeightKind::norm});
  all.push_back({"output", values, width});
  if (!kind.has_mlp) return all;
  all.push_back({"mlp_norm", 1, width, WeightKind::norm});
  if (mlp_form == MlpForm::swiglu) all.push_back({"mlp_gate", width, mlp});
  all.push_back({"mlp_up", width, mlp});
  all.push_back({"mlp_down", mlp, width});
  return all;
}

std::int64_t ModelShape::parameters(LayerKind kind) const {
  const auto all = weights(kind);
  return std::accumulate(all.begin(), all.end(), std::int64_t{0},
                         [](std::int64_t sum, const Weight& weight) { return sum + weight.count(); });
}

std::int64_t ModelShape::parameters(bool has_head) const {
  std::int64_t sum = has_head ? 2 * vocabulary * width + width : 0;
  for (const LayerKind& kind : layers) sum += parameters(kind);
  return sum;
}

double ModelShape::flops_per_token(std::int64_t sequence, bool has_head) const {
  double flops = has_head ? 6.0 * static_cast<double>(vocabulary * width) : 0;
  for (const LayerKind& kind : layers) {
    for (const Weight& weight : weights(kind))
      if (weight.kind == WeightKind::matrix) flops += 6.0 * static_cast<double>(weight.count());
    const LayerShape of = share(kind, 1);
    const AttentionFlops forward = attention_flops(kind, rule(kind), of.heads, of.d_k, of.d_v);
    flops += 3 * (forward.per_token + forward.per_pair * static_cast<double>(sequence));
  }
  return flops;
}

}  // namespace baton
