// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/models/reference/mixers.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sp_methods/head_oracle.hpp"
#include "sp_methods/kernels/reference/roundings.hpp"

namespace baton {
namespace {

using Numbers = std::vector<double>;

/// Columns [head * width, (head + 1) * width) of rows [first, first + count) as one run; empty of
/// an empty matrix.
Numbers head_of(const Matrix& x, std::int64_t head, std::int64_t width, std::int64_t first,
                std::int64_t count) {
  if (x.size() == 0) return {};
  const Matrix part = x.block(first, head * width, count, width);
  return {part.data(), part.data() + part.size()};
}

void add_head(Matrix& x, const Numbers& part, std::int64_t head, std::int64_t width, std::int64_t first) {
  if (x.size() == 0) return;
  const std::int64_t count = static_cast<std::int64_t>(part.size()) / width;
  x.block(first, head * width, count, width) += Eigen::Map<const Matrix>(part.data(), count, width);
}

/// One head of one sequence.
struct Head {
  HeadInputs in;
  std::int64_t head, query_head, key_head, value_head, first;
  Numbers x = {}, steps = {};  // of Mamba-2: values behind the convolution, and their factors
};

/// One of q, k and v of a head in the weights [channels, taps] of a convolution.
struct Channels {
  std::int64_t first, width;
};

/// The channels of q, k and v of a head.
std::array<Channels, 3> channels_of(const Head& head) {
  const LayerShape& s = head.in.shape;
  const auto [q, k, v] = first_weights(s, head.head);
  const std::int64_t weights = s.conv_weights();
  return {{{q / weights, s.d_k}, {k / weights, s.d_k}, {v / weights, s.d_v}}};
}

/// Puts q, k and v of a head through the convolution.
void convolve(Head& head, const Matrix& weights) {
  Roundings roundings(head.in.rounding);
  const auto channels = channels_of(head);
  for (int i = 0; Numbers * rows : {&head.in.q, &head.in.k, &head.in.v}) {
    const Matrix w = weights.middleRows(channels[i].first, channels[i].width);
    head.in.convolutions.push_back({.width = channels[i].width,
                                    .taps = head.in.shape.conv,
                                    .has_unit_rows = head.in.rule == Rule::delta && i < 2,
                                    .has_bias = head.in.shape.conv_bias,
                                    .x = std::move(*rows),
                                    .w = {w.data(), w.data() + w.size()}});
    *rows = reference_rows(head.in.convolutions.back());
    roundings.round(*rows);
    ++i;
  }
}

/// Multiplies the values of a head by their steps, and by the inverse of the factor of its scores.
void take_steps(Head& head, const Matrix& steps) {
  const LayerShape& s = head.in.shape;
  head.steps = head_of(steps, head.head, 1, head.first, s.tokens);
  for (double& step : head.steps) step *= std::sqrt(static_cast<double>(s.d_k));
  head.x = head.in.v;
  for (std::size_t i = 0; i < head.x.size(); ++i) head.in.v[i] *= head.steps[i / s.d_v];
}

/// Adds the gradients of a head's steps and of its D, and turns that of its values into that of the
/// convolution's.
void add_step_gradients(AttentionGradients& d, Numbers& d_v, const ModelProblem& problem, const Head& head,
                        double skip) {
  const std::int64_t width = head.in.shape.d_v;
  for (std::size_t i = 0; i < d_v.size(); ++i) {
    const std::int64_t t = head.first + static_cast<std::int64_t>(i) / width;
    const double step = head.steps[i / width];
    d.of.steps(t, head.head) += std::sqrt(static_cast<double>(head.in.shape.d_k)) * d_v[i] * head.x[i];
    d.skip[t / problem.stack.tokens](0, head.head) += head.in.d_o[i] * head.x[i];
    d_v[i] = step * d_v[i] + skip * head.in.d_o[i];
  }
}

/// Calls `body` with every head of every sequence.
template <class Body>
void for_each_head(const ModelProblem& problem, Attention kind, const AttentionRows& rows,
                   std::uint64_t rounding, const Body& body) {
  const Stack& stack = problem.stack;
  LayerShape shape = stack.shape.share(kind, stack.is_alone() ? stack.tokens : problem.all_tokens());
  for (std::int64_t first = 0; first < problem.all_tokens(); first += shape.tokens)
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      const bool is_linear = kind == Attention::linear;
      Head one{HeadInputs(shape), head, head / (shape.heads / shape.query_heads()), head, head, first};
      one.key_head = is_linear ? one.query_head : head / shape.group_heads();
      one.value_head = is_linear ? head : one.key_head;
      one.in.attention = kind;
      one.in.rule = stack.shape.rule(kind);
      one.in.rounding = rounding_of(rounding, first * shape.heads + head);
      const auto rows_of = [&](const Matrix& x, std::int64_t of, std::int64_t width) {
        return head_of(x, of, width, first, shape.tokens);
      };
      one.in.q = rows_of(rows.q, one.query_head, shape.d_k),
      one.in.k = rows_of(rows.k, one.key_head, shape.d_k);
      one.in.v = rows_of(rows.v, one.value_head, shape.d_v);
      one.in.g = rows_of(rows.g, head, shape.gate_width()), one.in.beta = rows_of(rows.beta, head, 1);
      if (rows.conv.size() > 0) convolve(one, rows.conv);
      if (rows.steps.size() > 0) take_steps(one, rows.steps);
      body(one);
    }
}

/// Solves one head.
std::map<std::string, Numbers> solved(const Head& head, bool has_gradients, const OracleWork& work) {
  const LayerProblem problem{.attention = head.in.attention, .share = head.in.shape, .rule = head.in.rule};
  HeadSums sums(problem, head.in, has_gradients);
  const int units = std::min(most_units(problem), work.parts * work.threads);
  work.for_each((units - work.part + work.parts - 1) / work.parts, [&](int i) {
    solve_unit(sums, head.in, has_gradients, {work.part + i * work.parts, units});
  });
  for (auto& [name, values] : sums.all()) work.sum(values);
  return std::move(sums.all());
}

/// Adds the gradients of a head's weights of the convolution, each rank's from its own tokens, for
/// those dz [tokens, 2 d_k + d_v] of its sums.
void add_weight_gradients(std::vector<Matrix>& into, const ModelProblem& problem, const Head& head,
                          const Numbers& dz) {
  const auto channels = channels_of(head);
  const std::int64_t row = 2 * head.in.shape.d_k + head.in.shape.d_v;
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const ReferenceConvolution& of = head.in.convolutions[i];
    for (int rank = 0; rank < problem.ranks; ++rank) {
      Numbers own(of.tokens() * of.width, 0.0);
      for (std::int64_t t = 0; t < of.tokens(); ++t)
        if ((head.first + t) / problem.stack.tokens == rank)
          std::copy_n(dz.begin() + t * row + offset, of.width, own.begin() + t * of.width);
      const Numbers dw = reference_weight_gradients(of, own);
      into[rank].middleRows(channels[i].first, of.width) +=
          Eigen::Map<const Matrix>(dw.data(), of.width, of.weights());
    }
    offset += of.width;
  }
}

}  // namespace

Matrix reference_attention(const ModelProblem& problem, Attention kind, const AttentionRows& rows,
                           std::uint64_t rounding, const OracleWork& work) {
  const LayerShape share = problem.stack.shape.share(kind, 1);
  Matrix o = Matrix::Zero(rows.q.rows(), share.heads * share.d_v);
  for_each_head(problem, kind, rows, rounding, [&](const Head& head) {
    Numbers of_head = solved(head, false, work).at("o");
    for (std::size_t i = 0; i < head.x.size(); ++i) of_head[i] += rows.skip(0, head.head) * head.x[i];
    add_head(o, of_head, head.head, share.d_v, head.first);
  });
  return o;
}

AttentionGradients reference_attention_backward(const ModelProblem& problem, Attention kind,
                                                const AttentionRows& rows, const Matrix& d_o,
                                                std::uint64_t rounding, const OracleWork& work) {
  const LayerShape share = problem.stack.shape.share(kind, 1);
  const auto like = [](const Matrix& x) -> Matrix { return Matrix::Zero(x.rows(), x.cols()); };
  AttentionGradients d{
      {like(rows.q), like(rows.k), like(rows.v), like(rows.g), like(rows.beta), {}, like(rows.steps), {}},
      std::vector<Matrix>(problem.ranks, like(rows.conv)),
      std::vector<Matrix>(problem.ranks, like(rows.skip))};
  for_each_head(problem, kind, rows, rounding, [&](Head& head) {
    head.in.d_o = head_of(d_o, head.head, share.d_v, head.first, head.in.shape.tokens);
    std::map<std::string, Numbers> of_head = solved(head, true, work);
    if (!head.steps.empty()) add_step_gradients(d, of_head.at("dv"), problem, head, rows.skip(0, head.head));
    const Numbers dz = solve_convolution(of_head, head.in);
    if (!dz.empty()) add_weight_gradients(d.conv, problem, head, dz);
    add_head(d.of.q, of_head.at("dq"), head.query_head, share.d_k, head.first);
    add_head(d.of.k, of_head.at("dk"), head.key_head, share.d_k, head.first);
    add_head(d.of.v, of_head.at("dv"), head.value_head, share.d_v, head.first);
    add_head(d.of.g, of_head.at("dg"), head.head, share.gate_width(), head.first);
    if (rows.beta.size() > 0) add_head(d.of.beta, of_head.at("dbeta"), head.head, 1, head.first);
  });
  return d;
}

}  // namespace baton
