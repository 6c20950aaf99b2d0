// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/models/block.hpp"

#include <utility>
#include <vector>

#include "sp_methods/models/whole_sequence.hpp"

namespace baton {

Block::Block(Schedule& schedule, const ModelShape& shape, Attention kind, const SpMethod& method, Layer layer,
             std::int64_t tokens, const std::string& label, bool keeps)
    : runs_whole_(&method == &whole_sequence()),
      schedule_(schedule),
      shape_(shape),
      kind_(kind),
      method_(method),
      layer_(std::move(layer)),
      tokens_(tokens),
      label_(label),
      keeps_(keeps) {
  layer_.share = shape.share(kind, runs_whole_ ? tokens * schedule.ranks() : tokens);
  if (keeps) layer_.saved = std::make_shared<std::map<std::string, Slice>>();
}

Slice Block::kept(const std::string& name, std::int64_t row) {
  return kept_[name] = keeps_ ? schedule_.lasting_scratch(name + label_, tokens_ * row, layer_.dtype)
                              : schedule_.scratch(name + label_, tokens_ * row, layer_.dtype);
}

void Block::project(const Slice& into, const Slice& x, const PlacedWeight& weight, const Slice& c) {
  record<Matmul>(schedule_,
                 {.rows = tokens_,
                  .columns = weight.weight.columns,
                  .depth = weight.weight.rows,
                  .adds = !c.empty(),
                  .dtype = x.dtype,
                  .out = into.dtype},
                 {.a = x, .b = weight.slice, .c = c, .out = into});
}

void Block::project_back(const Slice& into, const Slice& d_y, const PlacedWeight& weight, const Slice& c) {
  record<Matmul>(schedule_,
                 {.rows = tokens_,
                  .columns = weight.weight.rows,
                  .depth = weight.weight.columns,
                  .transposes_b = true,
                  .adds = !c.empty(),
                  .dtype = d_y.dtype,
                  .out = into.dtype},
                 {.a = d_y, .b = weight.slice, .c = c, .out = into});
}

void Block::record_gradient(const PlacedWeight& gradient, const Slice& x, const Slice& d_y) {
  record<Matmul>(schedule_,
                 {.rows = gradient.weight.rows,
                  .columns = gradient.weight.columns,
                  .depth = tokens_,
                  .transposes_a = true,
                  .dtype = x.dtype,
                  .out = gradient.slice.dtype},
                 {.a = x, .b = d_y, .out = gradient.slice});
}

/// Records the norm of x, and returns its rows in working memory.
Slice Block::record_norm(const Slice& x, const PlacedWeight& weight) {
  const Slice y = working("normed", shape_.width);
  record<RmsNorm>(schedule_, rows(shape_.width), {x, weight.slice, y});
  return y;
}

void Block::record_projections(const LayerWeights& weights, const Slice& x) {
  const Slice all = schedule_.scratch("normed", layer_.share.tokens * shape_.width, layer_.dtype);
  const Slice own = runs_whole_ ? all.block(schedule_.rank(), schedule_.ranks()) : all;
  record<RmsNorm>(schedule_, rows(shape_.width), {x, weights["norm"].slice, own});
  const auto make = [&](const char* name, const char* weight, const Slice& n) {
    project(kept(name, weights[weight].weight.columns), n, weights[weight]);
  };
  if (runs_whole_) {
    if (shape_.gates_output(kind_)) make("u", "output_gate", own);
    gather_rows(schedule_, all);
    tokens_ = layer_.share.tokens;
  }
  make("q", "query", all);
  make("k", "key", all);
  make("v", "value", all);
  if (shape_.gates_output(kind_) && !runs_whole_) make("u", "output_gate", all);
  if (!shape_.has_gates(kind_)) return;
  make("t", "gate_down", all);
  const std::int64_t keys = shape_.heads * shape_.d_k;
  const Slice z = working("z", keys);
  project(z, kept("t"), weights["gate_up"]);
  record<LogGates>(schedule_, gate_rows(), {z, weights["gate_bias"].slice, kept("g", keys)});
}

/// Records the norm and the gate of linear attention's output. Returns the output as the output
/// projection takes it.
Slice Block::record_output(const LayerWeights& weights) {
  if (kind_ == Attention::softmax) return kept("o");
  const Slice y = working("gated", shape_.heads * shape_.d_v), &weight = weights["output_norm"].slice;
  if (shape_.gates_output(kind_))
    record<GatedNorm>(schedule_, head_rows(), {kept("o"), kept("u"), weight, y});
  else
    record<RmsNorm>(schedule_, head_rows(), {kept("o"), weight, y});
  return y;
}

Slice Block::record_mlp_product() {
  const Slice m = working("m", shape_.mlp);
  record<SwiGlu>(schedule_, rows(shape_.mlp), {kept("a"), kept("b"), m});
  return m;
}

void Block::record_forward(const LayerWeights& weights, const Slice& x, const Slice& out) {
  kept_["x"] = x;
  record_projections(weights, x);
  const Slice o = kept("o", shape_.heads * shape_.d_v);
  layer_.pass = Pass::forward;
  const Slice g = shape_.has_gates(kind_) ? kept("g") : Slice{};
  method_.build(schedule_, layer_, {.q = kept("q"), .k = kept("k"), .v = kept("v"), .g = g, .o = o});
  if (runs_whole_) {
    tokens_ /= schedule_.ranks();
    kept_["o"] = o.block(schedule_.rank(), schedule_.ranks());
  }
  const Slice h = kept("h", shape_.width);
  project(h, record_output(weights), weights["output"], x);
  const Slice n = record_norm(h, weights["mlp_norm"]);
  project(kept("a", shape_.mlp), n, weights["mlp_gate"]);
  project(kept("b", shape_.mlp), n, weights["mlp_up"]);
  project(out, record_mlp_product(), weights["mlp_down"], h);
}

/// Records the gradients of the MLP, and returns the gradient of its input h.
Slice Block::record_mlp_backward(const LayerWeights& weights, const LayerWeights& gradients,
                                 const Slice& d_out) {
  const Slice m = record_mlp_product(), d_m = working("d_m", shape_.mlp);
  project_back(d_m, d_out, weights["mlp_down"]);
  record_gradient(gradients["mlp_down"], m, d_out);
  const Slice d_a = working("d_a", shape_.mlp), d_b = working("d_b", shape_.mlp);
  record<SwiGluGradients>(schedule_, rows(shape_.mlp), {kept("a"), kept("b"), d_m, d_a, d_b});
  const Slice h = kept("h"), n = record_norm(h, weights["mlp_norm"]), d_n = working("d_n", shape_.width);
  record_gradient(gradients["mlp_gate"], n, d_a);
  record_gradient(gradients["mlp_up"], n, d_b);
  project_back(d_n, d_a, weights["mlp_gate"]);
  project_back(d_n, d_b, weights["mlp_up"], d_n);
  const Slice d_h = working("d_h", shape_.width);
  record<RmsNormGradients>(schedule_, rows(shape_.width),
                           {h, weights["mlp_norm"].slice, d_n, d_out, d_h, gradients["mlp_norm"].slice});
  return d_h;
}

/// Records the gradients of the attention, and returns those of q, k, v and g. `d_gate` gets that
/// of the output's gate, if there is one.
LayerTensors Block::record_attention_backward(const LayerWeights& weights, const LayerWeights& gradients,
                                              const Slice& d_h, Slice& d_gate) {
  const std::int64_t values = shape_.heads * shape_.d_v;
  const Slice y = record_output(weights), d_y = working("d_gated", values);
  project_back(d_y, d_h, weights["output"]);
  record_gradient(gradients["output"], y, d_h);
  Slice d_o = d_y;
  if (shape_.gates_output(kind_)) {
    d_o = working("d_o", values);
    d_gate = working("d_u", values);
    record<GatedNormGradients>(schedule_, head_rows(),
                               {kept("o"), kept("u"), weights["output_norm"].slice, d_y, d_o, d_gate,
                                gradients["output_norm"].slice});
  } else if (kind_ == Attention::linear) {
    d_o = working("d_o", values);
    record<RmsNormGradients>(
        schedule_, head_rows(),
        {kept("o"), weights["output_norm"].slice, d_y, {}, d_o, gradients["output_norm"].slice});
  }
  LayerTensors x{.q = kept("q"), .k = kept("k"), .v = kept("v"), .d_o = d_o};
  x.dq = schedule_.scratch("dq", x.q.count, layer_.dtype);
  x.dk = schedule_.scratch("dk", x.k.count, layer_.dtype);
  x.dv = schedule_.scratch("dv", x.v.count, layer_.dtype);
  if (shape_.has_gates(kind_)) {
    x.g = kept("g");
    x.dg = schedule_.scratch("dg", x.g.count, layer_.dtype);
  }
  layer_.pass = Pass::backward;
  (*layer_.saved)["out"] = kept("o");  // as softmax methods call it
  // Keys are there from the forward pass on. Without a fence their gather would begin while a later
  // layer's still uses the memory, and ranks would wait for one another in groups of messages.
  if (kind_ == Attention::softmax) schedule_.fence();
  method_.build(schedule_, layer_, x);
  return x;
}

/// Records the gradients of the gates, and returns the gradient of t, which is between their two
/// projections.
Slice Block::record_gates_backward(const LayerWeights& weights, const LayerWeights& gradients,
                                   const Slice& d_g) {
  const Slice d_z = schedule_.scratch("d_z", d_g.count, layer_.dtype), d_t = working("d_t", shape_.gate_rank);
  record<LogGateGradients>(schedule_, gate_rows(), {kept("g"), d_g, d_z, gradients["gate_bias"].slice});
  record_gradient(gradients["gate_up"], kept("t"), d_z);
  project_back(d_t, d_z, weights["gate_up"]);
  return d_t;
}

void Block::record_backward(const LayerWeights& weights, const LayerWeights& gradients, const Slice& d_out,
                            const Slice& d_x) {
  const Slice d_h = record_mlp_backward(weights, gradients, d_out);
  Slice d_gate;
  const LayerTensors x = record_attention_backward(weights, gradients, d_h, d_gate);
  std::vector<std::pair<const char*, Slice>> products{{"query", x.dq}, {"key", x.dk}, {"value", x.dv}};
  if (!d_gate.empty()) products.emplace_back("output_gate", d_gate);
  if (!x.dg.empty()) products.emplace_back("gate_down", record_gates_backward(weights, gradients, x.dg));
  const Slice n = record_norm(kept("x"), weights["norm"]), d_n = working("d_n", shape_.width);
  Slice sum;
  for (const auto& [name, d_y] : products) {
    record_gradient(gradients[name], n, d_y);
    project_back(d_n, d_y, weights[name], sum);
    sum = d_n;
  }
  record<RmsNormGradients>(schedule_, rows(shape_.width),
                           {kept("x"), weights["norm"].slice, d_n, d_h, d_x, gradients["norm"].slice});
}

}  // namespace baton
