// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/models/shape.hpp"

#include <numeric>

namespace baton {

std::vector<Weight> ModelShape::weights(Attention kind) const {
  const std::int64_t keys = heads * d_k, values = heads * d_v, shared = key_heads(kind);
  std::vector<Weight> all{{"norm", 1, width, true},
                          {"query", width, keys},
                          {"key", width, shared * d_k},
                          {"value", width, shared * d_v}};
  if (has_gates(kind)) {
    all.push_back({"gate_down", width, gate_rank});
    all.push_back({"gate_up", gate_rank, keys});
    all.push_back({"gate_bias", 1, keys, true});
  }
  if (gates_output(kind)) all.push_back({"output_gate", width, values});
  if (kind == Attention::linear) all.push_back({"output_norm", 1, d_v, true});
  all.push_back({"output", values, width});
  all.push_back({"mlp_norm", 1, width, true});
  all.push_back({"mlp_gate", width, mlp});
  all.push_back({"mlp_up", width, mlp});
  all.push_back({"mlp_down", mlp, width});
  return all;
}

std::int64_t ModelShape::parameters(Attention kind) const {
  const auto all = weights(kind);
  return std::accumulate(all.begin(), all.end(), std::int64_t{0},
                         [](std::int64_t sum, const Weight& weight) { return sum + weight.count(); });
}

std::int64_t ModelShape::parameters(bool has_head) const {
  std::int64_t sum = has_head ? 2 * vocabulary * width + width : 0;
  for (const Attention kind : layers) sum += parameters(kind);
  return sum;
}

double ModelShape::flops_per_token(std::int64_t sequence, bool has_head) const {
  double flops = has_head ? 6.0 * static_cast<double>(vocabulary * width) : 0;
  for (const Attention kind : layers) {
    for (const Weight& weight : weights(kind))
      if (!weight.is_vector) flops += 6.0 * static_cast<double>(weight.count());
    const AttentionFlops forward = attention_flops(kind, Rule::decay, heads, d_k, d_v);
    flops += 3 * (forward.per_token + forward.per_pair * static_cast<double>(sequence));
  }
  return flops;
}

}  // namespace baton
