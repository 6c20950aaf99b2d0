// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/models/block.hpp"

#include <utility>

#include "sp_methods/models/state_space.hpp"
#include "sp_methods/models/whole_sequence.hpp"

namespace baton {

Block::Block(Schedule& schedule, const ModelShape& shape, int number, const SpMethod& method, Layer layer,
             const std::string& label, bool keeps)
    : runs_whole_(&method == &whole_sequence()),
      schedule_(schedule),
      shape_(shape),
      number_(number),
      kind_(shape.layers[number]),
      method_(method),
      layer_(std::move(layer)),
      memory_(schedule, layer_.share.tokens, layer_.dtype, label, keeps),
      products_(memory_),
      rows_(shape, kind_, memory_, products_) {
  if (runs_whole_) layer_.share.tokens *= schedule.ranks();
  if (keeps) layer_.saved = std::make_shared<std::map<std::string, Slice>>();
}

/// Records the norm of x, and returns its rows in working memory.
Slice Block::record_norm(const Slice& x, const PlacedWeight& weight) {
  const Slice y = memory_.working("normed", shape_.width);
  record<RmsNorm>(schedule_, rows(shape_.width), {x, weight.slice, y});
  return y;
}

void Block::record_projections(const LayerWeights& weights, const Slice& x) {
  const Slice all = schedule_.scratch("normed", share().tokens * shape_.width, layer_.dtype);
  const Slice own = runs_whole_ ? all.block(schedule_.rank(), schedule_.ranks()) : all;
  record<RmsNorm>(schedule_, rows(shape_.width), {x, weights["norm"].slice, own});
  if (shape_.output_gate(kind_) != OutputGate::none)
    products_.project_through(weights, "output_gate", own, memory_.kept("u", values()));
  if (runs_whole_) {
    gather_rows(schedule_, all);
    memory_.work_on(share().tokens);
  }
  rows_.record(weights, all, positions());
  if (shape_.has_gates(kind_)) record_gates(weights, all);
  if (!has_rule(Rule::delta)) return;
  const Slice b = memory_.working("b", share().heads);
  products_.project(b, all, weights["beta"]);
  record<Logistic>(schedule_, rows(share().heads), {b, memory_.kept("beta", share().heads)});
}

/// The positions of this rank's tokens.
Positions Block::positions() const {
  if (is_alone()) return Positions::run(0, tokens());
  return positions_of(method_, schedule_.rank(), schedule_.ranks(), tokens());
}

void Block::record_gates(const LayerWeights& weights, const Slice& n) {
  if (shape_.is_lightning(kind_)) {
    // From the first layer to the last the slopes become flatter (arXiv 2501.08313).
    const double others = shape_.count() - 1, factor = 1 - number_ / (others + 1e-5) + 1e-5;
    const Rows rows{tokens(), gates(), static_cast<float>(factor), layer_.dtype};
    return baton::record<FixedGates>(schedule_, rows, {memory_.kept("g", gates())});
  }
  const bool has_rates = shape_.has_decay_rates(kind_);
  const Slice z = has_rates ? memory_.kept("z", gates()) : memory_.working("z", gates());
  products_.project_through(weights, "gate", n, z);
  const Slice g = memory_.kept("g", gates()), &bias = weights["gate_bias"].slice;
  if (has_rates)
    record<DecayGates>(schedule_, decay_rows(), {z, bias, weights["gate_rate"].slice, g});
  else
    record<LogGates>(schedule_, log_gate_rows(), {z, bias, g});
}

/// The inputs of attention.
LayerTensors Block::attention_tensors(const LayerWeights& weights) const {
  LayerTensors x{.q = memory_.kept("q"), .k = memory_.kept("k"), .v = memory_.kept("v")};
  if (shape_.has_gates(kind_)) x.g = memory_.kept("g");
  if (has_rule(Rule::delta)) x.beta = memory_.kept("beta");
  if (weights.has("conv")) x.conv_w = weights["conv"].slice;
  return x;
}

/// Records the attention in the layer's pass. Layers of Mamba-2 also set the gradients of their
/// steps and of D.
void Block::record_attention(const LayerWeights& weights, const LayerTensors& x, const Slice& d_delta,
                             const Slice& d_skip) {
  if (!is_mamba()) return method_.build(schedule_, layer_, x);
  Layer own = layer_;
  own.share.conv = shape_.linear.conv;
  record_state_space(schedule_, method_, own, x,
                     {.z = memory_.kept("z"),
                      .bias = weights["gate_bias"].slice,
                      .skip = weights["skip"].slice,
                      .d_delta = d_delta,
                      .d_skip = d_skip},
                     is_alone() || runs_whole_);
}

/// Records the norm of linear attention's output. Returns softmax attention's as it is.
Slice Block::record_output_norm(const LayerWeights& weights, const Slice& o) {
  if (!is_linear()) return o;
  const Slice y = memory_.working("normed_o", values());
  record<RmsNorm>(schedule_, value_rows(), {o, weights["output_norm"].slice, y});
  return y;
}

/// Records the output of Mamba-2 behind its gate, which its norm takes.
Slice Block::record_gated() {
  const Slice y = memory_.working("gated", values());
  record<SwiGlu>(schedule_, rows(values()), {memory_.kept("u"), memory_.kept("o"), y});
  return y;
}

/// Records norm and gate of the attention's output. Returns it as the output projection takes it.
Slice Block::record_output(const LayerWeights& weights) {
  const OutputGate gate = shape_.output_gate(kind_);
  if (is_mamba()) return record_output_norm(weights, record_gated());
  if (gate == OutputGate::none) return record_output_norm(weights, memory_.kept("o"));
  const Slice y = memory_.working("gated", values());
  if (gate == OutputGate::silu)
    record<GatedNorm>(schedule_, value_rows(),
                      {memory_.kept("o"), memory_.kept("u"), weights["output_norm"].slice, y});
  else
    record<SigmoidGate>(schedule_, rows(values()),
                        {record_output_norm(weights, memory_.kept("o")), memory_.kept("u"), y});
  return y;
}

Slice Block::record_mlp_product() {
  const Slice m = memory_.working("m", shape_.mlp);
  record<SwiGlu>(schedule_, rows(shape_.mlp), {mlp_gate(), memory_.kept("b"), m});
  return m;
}

void Block::record_forward(const LayerWeights& weights, const Slice& x, const Slice& out) {
  memory_.keep("x", x);
  record_projections(weights, x);
  LayerTensors attention = attention_tensors(weights);
  attention.o = memory_.kept("o", values());
  layer_.pass = Pass::forward;
  record_attention(weights, attention, {}, {});
  if (runs_whole_) {
    memory_.work_on(tokens() / schedule_.ranks());
    memory_.keep("o", attention.o.block(schedule_.rank(), schedule_.ranks()));
  }
  const bool has_mlp = shape_.layers[number_].has_mlp;
  const Slice h = has_mlp ? memory_.kept("h", shape_.width) : out;
  products_.project(h, record_output(weights), weights["output"], x);
  if (!has_mlp) return;
  const Slice n = record_norm(h, weights["mlp_norm"]);
  if (weights.has("mlp_gate")) products_.project(memory_.kept("a", shape_.mlp), n, weights["mlp_gate"]);
  products_.project(memory_.kept("b", shape_.mlp), n, weights["mlp_up"]);
  products_.project(out, record_mlp_product(), weights["mlp_down"], h);
}

/// Records the gradients of the MLP, and returns the gradient of its input h.
Slice Block::record_mlp_backward(const LayerWeights& weights, const LayerWeights& gradients,
                                 const Slice& d_out) {
  const Slice m = record_mlp_product(), d_m = memory_.working("d_m", shape_.mlp);
  products_.project_back(d_m, d_out, weights["mlp_down"]);
  products_.record_gradient(gradients["mlp_down"], m, d_out);
  const bool is_gated = weights.has("mlp_gate");
  const Slice d_a = is_gated ? memory_.working("d_a", shape_.mlp) : Slice{},
              d_b = memory_.working("d_b", shape_.mlp);
  record<SwiGluGradients>(schedule_, rows(shape_.mlp), {mlp_gate(), memory_.kept("b"), d_m, d_a, d_b});
  const Slice h = memory_.kept("h"), n = record_norm(h, weights["mlp_norm"]),
              d_n = memory_.working("d_n", shape_.width);
  if (is_gated) products_.record_gradient(gradients["mlp_gate"], n, d_a);
  products_.record_gradient(gradients["mlp_up"], n, d_b);
  if (is_gated) products_.project_back(d_n, d_a, weights["mlp_gate"]);
  products_.project_back(d_n, d_b, weights["mlp_up"], is_gated ? d_n : Slice{});
  const Slice d_h = memory_.working("d_h", shape_.width);
  record<RmsNormGradients>(schedule_, rows(shape_.width),
                           {h, weights["mlp_norm"].slice, d_n, d_out, d_h, gradients["mlp_norm"].slice});
  return d_h;
}

/// Records the gradients of Mamba-2's gate and norm for that of the normed output, and returns that
/// of o.
Slice Block::record_gated_backward(const LayerWeights& weights, const LayerWeights& gradients,
                                   const Slice& gated, const Slice& d_y, Slice& d_gate) {
  const Slice d_gated = memory_.working("d_normed_o", values()), d_o = memory_.working("d_o", values());
  record<RmsNormGradients>(
      schedule_, value_rows(),
      {gated, weights["output_norm"].slice, d_y, {}, d_gated, gradients["output_norm"].slice});
  d_gate = memory_.working("d_u", values());
  record<SwiGluGradients>(schedule_, rows(values()),
                          {memory_.kept("u"), memory_.kept("o"), d_gated, d_gate, d_o});
  return d_o;
}

/// Records the gradients of the output's projection, gate and norm, and returns that of o. `d_gate`
/// gets that of the gate's projection, if there is one.
Slice Block::record_output_backward(const LayerWeights& weights, const LayerWeights& gradients,
                                    const Slice& d_h, Slice& d_gate) {
  const Slice gated = is_mamba() ? record_gated() : Slice{},
              y = is_mamba() ? record_output_norm(weights, gated) : record_output(weights),
              d_y = memory_.working("d_gated", values());
  products_.project_back(d_y, d_h, weights["output"]);
  products_.record_gradient(gradients["output"], y, d_h);
  if (is_mamba()) return record_gated_backward(weights, gradients, gated, d_y, d_gate);
  const OutputGate gate = shape_.output_gate(kind_);
  Slice d_o = d_y;
  if (gate != OutputGate::none) {
    d_gate = memory_.working("d_u", values());
    d_o = memory_.working(is_linear() && gate == OutputGate::sigmoid ? "d_normed_o" : "d_o", values());
  }
  if (gate == OutputGate::silu) {
    record<GatedNormGradients>(schedule_, value_rows(),
                               {memory_.kept("o"), memory_.kept("u"), weights["output_norm"].slice, d_y, d_o,
                                d_gate, gradients["output_norm"].slice});
    return d_o;
  }
  if (gate == OutputGate::sigmoid)
    record<SigmoidGateGradients>(
        schedule_, rows(values()),
        {record_output_norm(weights, memory_.kept("o")), memory_.kept("u"), d_y, d_o, d_gate});
  if (!is_linear()) return d_o;
  const Slice d_normed = std::exchange(d_o, memory_.working("d_o", values()));
  record<RmsNormGradients>(
      schedule_, value_rows(),
      {memory_.kept("o"), weights["output_norm"].slice, d_normed, {}, d_o, gradients["output_norm"].slice});
  return d_o;
}

/// Records the gradients of the attention, and returns its tensors.
LayerTensors Block::record_attention_backward(const LayerWeights& weights, const LayerWeights& gradients,
                                              const Slice& d_o, const Slice& d_delta) {
  LayerTensors x = attention_tensors(weights);
  x.d_o = d_o;
  const auto like = [&](const char* name, const Slice& of) {
    return of.empty() ? Slice{} : schedule_.scratch(name, of.count, layer_.dtype);
  };
  x.dq = like("dq", x.q), x.dk = like("dk", x.k), x.dv = like("dv", x.v);
  x.dg = like("dg", x.g), x.dbeta = like("dbeta", x.beta);
  if (gradients.has("conv")) x.dconv_w = gradients["conv"].slice;
  layer_.pass = Pass::backward;
  (*layer_.saved)["out"] = memory_.kept("o");  // as softmax methods call it
  // Keys are there from the forward pass on. Without a fence their gather would begin while a later
  // layer's still uses the memory, and ranks would wait for one another in groups of messages.
  if (!is_linear()) schedule_.fence();
  record_attention(weights, x, d_delta, is_mamba() ? gradients["skip"].slice : Slice{});
  return x;
}

/// Records the gradients of the gates, and returns that of their projection.
Slice Block::record_gates_backward(const LayerWeights& weights, const LayerWeights& gradients,
                                   const Slice& d_g, const Slice& d_delta) {
  const Slice d_z = schedule_.scratch("d_z", d_g.count, layer_.dtype);
  const Slice& d_bias = gradients["gate_bias"].slice;
  if (shape_.has_decay_rates(kind_))
    record<DecayGateGradients>(schedule_, decay_rows(),
                               {memory_.kept("z"), weights["gate_bias"].slice, weights["gate_rate"].slice,
                                d_g, d_delta, d_z, d_bias, gradients["gate_rate"].slice});
  else
    record<LogGateGradients>(schedule_, log_gate_rows(), {memory_.kept("g"), d_g, d_z, d_bias});
  return d_z;
}

void Block::record_backward(const LayerWeights& weights, const LayerWeights& gradients, const Slice& d_out,
                            const Slice& d_x) {
  const Slice d_h = shape_.layers[number_].has_mlp ? record_mlp_backward(weights, gradients, d_out) : d_out;
  Slice d_gate;
  const Slice d_o = record_output_backward(weights, gradients, d_h, d_gate);
  const Slice d_delta = is_mamba() ? memory_.working("ddelta", gates()) : Slice{};
  const LayerTensors x = record_attention_backward(weights, gradients, d_o, d_delta);
  ProjectionGradients products = rows_.record_backward(weights, gradients, positions(), x);
  if (!d_gate.empty()) products.emplace_back("output_gate", d_gate);
  if (!x.dg.empty() && !shape_.is_lightning(kind_))
    products.emplace_back("gate", record_gates_backward(weights, gradients, x.dg, d_delta));
  if (!x.dbeta.empty()) {
    const Slice d_b = memory_.working("d_b", share().heads);
    record<LogisticGradients>(schedule_, rows(share().heads), {memory_.kept("beta"), x.dbeta, d_b});
    products.emplace_back("beta", d_b);
  }
  const Slice n = record_norm(memory_.kept("x"), weights["norm"]), d_n = memory_.working("d_n", shape_.width);
  Slice sum;
  for (const auto& [name, d_y] : products) {
    products_.project_back_through(weights, gradients, name, n, d_y, d_n, sum);
    sum = d_n;
  }
  record<RmsNormGradients>(
      schedule_, rows(shape_.width),
      {memory_.kept("x"), weights["norm"].slice, d_n, d_h, d_x, gradients["norm"].slice});
}

}  // namespace baton
