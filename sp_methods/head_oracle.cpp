// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/head_oracle.hpp"

#include <algorithm>
#include <utility>

#include "sp_methods/kernels/reference/attention.hpp"
#include "sp_methods/kernels/reference/delta_rule.hpp"
#include "sp_methods/kernels/reference/low_rank.hpp"
#include "sp_methods/kernels/reference/roundings.hpp"

namespace baton {
namespace {

/// Columns [first, last) of rows [tokens, width].
std::vector<double> columns(const std::vector<double>& rows, std::int64_t width, std::int64_t first,
                            std::int64_t last) {
  std::vector<double> part;
  part.reserve(rows.size() / width * (last - first));
  for (auto row = rows.begin(); row != rows.end(); row += width)
    part.insert(part.end(), row + first, row + last);
  return part;
}

ReferenceInputs reference(const HeadInputs& head) {
  return {head.q, head.k, head.v, head.g, head.state, head.rounding};
}

/// The reference of the head's rule, for inputs `of` in place of its own.
ReferenceOutputs forward(const HeadInputs& head, const ReferenceInputs& of, const LayerShape& shape) {
  if (head.rule == Rule::delta) return delta_reference_forward({of, head.beta}, shape);
  if (head.rule == Rule::low_rank) return low_rank_reference_forward({of, head.a, head.b}, shape);
  return gla_reference_forward(of, shape);
}

struct LinearGradients {
  ReferenceGradients of;
  std::map<std::string, std::vector<double>> of_rule;  // those of the rule's own inputs
};

LinearGradients backward(const HeadInputs& head, const ReferenceInputs& of, const std::vector<double>& d_o,
                         const std::vector<double>& d_state, const LayerShape& shape) {
  if (head.rule == Rule::decay) return {gla_reference_backward(of, d_o, d_state, shape), {}};
  if (head.rule == Rule::delta) {
    DeltaReferenceGradients all = delta_reference_backward({of, head.beta}, d_o, d_state, shape);
    return {std::move(all.of), {{"dbeta", std::move(all.dbeta)}}};
  }
  LowRankReferenceGradients all = low_rank_reference_backward({of, head.a, head.b}, d_o, d_state, shape);
  return {std::move(all.of), {{"da", std::move(all.da)}, {"db", std::move(all.db)}}};
}

/// Solves a unit of linear attention: some columns of v and d_o.
void solve_columns(HeadSums& sums, const HeadInputs& head, bool has_gradients, const UnitOfWork& work) {
  const std::int64_t d_v = head.shape.d_v;
  const std::int64_t first = d_v * work.unit / work.units, last = d_v * (work.unit + 1) / work.units;
  const auto own = [&](const std::vector<double>& rows) { return columns(rows, d_v, first, last); };
  // A column of v is a row of a state where maps have matrices.
  const std::int64_t rows = has_matrices(head.rule) ? head.shape.d_k : 1;
  const auto own_state = [&](const std::vector<double>& all) {
    return columns(all, rows * d_v, rows * first, rows * last);
  };
  const std::vector<double> v = own(head.v), d_o = own(head.d_o), state = own_state(head.state),
                            d_state = own_state(head.d_state);
  LayerShape shape = head.shape;
  shape.d_v = last - first;
  const ReferenceInputs of{head.q, head.k, v, head.g, state, rounding_of(head.rounding, work.unit)};
  const auto add_state = [&](const char* name, const std::vector<double>& part) {
    if (sums.all().contains(name)) sums.add_columns(name, part, rows * d_v, rows * first, rows * last);
  };
  const ReferenceOutputs out = forward(head, of, shape);
  sums.add_columns("o", out.o, d_v, first, last);
  add_state("final_state", out.final_state);
  if (!has_gradients) return;
  const LinearGradients gradients = backward(head, of, d_o, d_state, shape);
  sums.add_columns("dv", gradients.of.dv, d_v, first, last);
  add_state("d_initial_state", gradients.of.initial_state);
  sums.add("dq", gradients.of.dq, work.unit);
  sums.add("dk", gradients.of.dk, work.unit);
  sums.add("dg", gradients.of.dg, work.unit);
  for (const auto& [name, part] : gradients.of_rule) sums.add(name, part, work.unit);
}

/// Adds gradients of values [tokens, d_v] to those of the latent keys that hold them [tokens, d_k].
void add_to_columns(std::vector<double>& dk, const std::vector<double>& dv, const LayerShape& shape) {
  for (std::size_t i = 0; i < dv.size(); ++i) dk[i / shape.d_v * shape.d_k + i % shape.d_v] += dv[i];
}

/// Solves a unit of softmax attention: some blocks of queries.
void solve_queries(HeadSums& sums, const HeadInputs& head, bool has_gradients, const UnitOfWork& work) {
  const QueryTurn turn{work.unit, work.units};
  const SoftmaxOutputs out = softmax_reference_forward(reference(head), head.shape, turn, head.mask);
  sums.add("o", out.o, work.unit);
  sums.add("lse", out.lse, work.unit);
  if (!has_gradients) return;
  ReferenceGradients gradients =
      softmax_reference_backward(reference(head), head.d_o, head.shape, turn, head.mask);
  if (head.shape.latent) add_to_columns(gradients.dk, std::exchange(gradients.dv, {}), head.shape);
  sums.add("dq", gradients.dq, work.unit);
  sums.add("dk", gradients.dk, work.unit);
  sums.add("dv", gradients.dv, work.unit);
}

}  // namespace

HeadInputs::HeadInputs(const LayerInputValues& inputs, std::int64_t head, std::int64_t first,
                       std::int64_t tokens, std::uint64_t key)
    : attention(inputs.problem().attention),
      rule(inputs.problem().rule),
      shape(inputs.problem().share),
      mask(inputs.problem().mask),
      // Kernels of bf16 tensors round these numbers again and again, and keep states in f32.
      rounding(inputs.problem().dtype == Dtype::bf16 ? 0 : key) {
  shape.tokens = tokens;
  if (mask.end != Mask::unlimited) mask.end -= first;
  const std::int64_t history =
      shape.conv == 0 ? 0 : std::min(shape.conv - 1, first - inputs.problem().start_of(first));
  Roundings roundings(key);
  const LayerProblem& problem = inputs.problem();
  const auto rows = [&](const char* name, std::int64_t before = 0) {
    const std::int64_t of = head / (shape.heads / problem.heads(name));
    std::vector<double> values = inputs.of_head(name, of, first - before, tokens + before);
    roundings.round(values);
    return values;
  };
  q = rows("q", history), k = rows("k", history), g = rows("g"), d_o = rows("d_o");
  v = shape.latent ? columns(k, shape.d_k, 0, shape.d_v) : rows("v", history);
  if (rule == Rule::delta) beta = rows("beta");
  if (rule == Rule::low_rank) a = rows("a"), b = rows("b");
  const auto whole = [&](const char* name) { return inputs.of_head(name, head, 0, 1); };
  if (comes_in(problem.states) && first == 0) state = whole("initial_state");
  if (goes_out(problem.states) && first + tokens == problem.sequence()) d_state = whole("d_final_state");
  if (shape.conv > 0) convolve(inputs, head, history);
}

/// Puts q, k and v, rows behind `history` ones, through the convolution.
void HeadInputs::convolve(const LayerInputValues& inputs, std::int64_t head, std::int64_t history) {
  const std::vector<double> all = inputs.of_head("conv_w", 0, 0, 1);
  for (std::vector<double>* rows : {&q, &k, &v}) {
    const std::int64_t width = rows == &v ? shape.d_v : shape.d_k;
    const auto weight = all.begin() + first_weights(shape, head)[convolutions.size()];
    convolutions.push_back({.width = width,
                            .taps = shape.conv,
                            .has_unit_rows = rule == Rule::delta && rows != &v,
                            .x = std::move(*rows),
                            .w = {weight, weight + width * shape.conv},
                            .history = history});
    *rows = reference_rows(convolutions.back());
    if (inputs.problem().dtype == Dtype::bf16)  // q, k and v are tensors of the layer's type
      for (double& y : *rows) y = from_bf16(to_bf16(static_cast<float>(y)));
  }
}

HeadSums::HeadSums(const LayerProblem& problem, const HeadInputs& head, bool has_gradients) {
  const auto add = [&](const char* name) {
    const std::int64_t rows = LayerProblem::is_state(name) ? 1 : head.shape.tokens;
    sums_[name].assign(rows * problem.width(name), 0.0);
  };
  for (const char* name : {"o", "lse"}) add(name);
  if (!head.d_state.empty()) add("final_state");
  if (!head.state.empty() && has_gradients) add("d_initial_state");
  for (const char* name : {"dq", "dk", "dv", "dg"})
    if (has_gradients) add(name);
  if (!has_gradients) return;
  if (problem.rule == Rule::delta) add("dbeta");
  if (problem.rule == Rule::low_rank) add("da"), add("db");
}

void HeadSums::add(const std::string& name, const std::vector<double>& part, int unit) {
  std::vector<double>& sum = sums_.at(name);
  for (std::size_t i = 0; i < runs; ++i) {
    const std::size_t run = (i + 7 * static_cast<std::size_t>(unit)) % runs;
    const std::lock_guard lock(locks_[run]);
    for (std::size_t at = part.size() * run / runs; at < part.size() * (run + 1) / runs; ++at)
      sum[at] += part[at];
  }
}

void HeadSums::add_columns(const std::string& name, const std::vector<double>& part, std::int64_t width,
                           std::int64_t first, std::int64_t last) {
  std::vector<double>& sum = sums_.at(name);
  for (std::size_t i = 0; i < part.size(); ++i)
    sum[i / (last - first) * width + first + i % (last - first)] += part[i];
}

int most_units(const LayerProblem& problem) {
  return problem.attention == Attention::linear ? static_cast<int>(problem.share.d_v) : 1 << 20;
}

void solve_unit(HeadSums& sums, const HeadInputs& head, bool has_gradients, const UnitOfWork& work) {
  if (head.attention == Attention::linear) return solve_columns(sums, head, has_gradients, work);
  solve_queries(sums, head, has_gradients, work);
}

std::vector<double> solve_convolution(std::map<std::string, std::vector<double>>& gradients,
                                      const HeadInputs& head) {
  if (head.convolutions.empty() || !gradients.contains("dq")) return {};
  const std::int64_t row = 2 * head.shape.d_k + head.shape.d_v;
  std::vector<double> all(head.shape.tokens * row);
  std::int64_t offset = 0;
  for (const char* name : {"dq", "dk", "dv"}) {
    const ReferenceConvolution& of = head.convolutions[name[1] == 'q' ? 0 : name[1] == 'k' ? 1 : 2];
    const std::vector<double> dz = reference_activation_gradients(of, gradients.at(name));
    for (std::int64_t t = 0; t < head.shape.tokens; ++t)
      std::copy_n(dz.begin() + t * of.width, of.width, all.begin() + t * row + offset);
    gradients.at(name) = reference_input_gradients(of, dz);
    offset += of.width;
  }
  return all;
}

std::array<std::int64_t, 3> first_weights(const LayerShape& shape, std::int64_t head) {
  const std::int64_t of_q = shape.query_heads() / shape.batch, of_v = shape.heads / shape.batch;
  const std::int64_t own = head % of_v / (of_v / of_q) * shape.d_k;
  const std::int64_t own_v = head % of_v * shape.d_v;
  const std::int64_t weights = shape.conv_weights();
  return {own * weights, (of_q * shape.d_k + own) * weights, (2 * of_q * shape.d_k + own_v) * weights};
}

std::vector<double> state_behind(const HeadInputs& head) {
  return forward(head, reference(head), head.shape).final_state;
}

std::vector<double> matrix_of(const HeadInputs& head) {
  if (head.rule == Rule::low_rank)
    return low_rank_reference_matrix({reference(head), head.a, head.b}, head.shape);
  return delta_reference_matrix({reference(head), head.beta}, head.shape);
}

}  // namespace baton
