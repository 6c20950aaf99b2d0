// SPDX-License-Identifier: Apache-2.0
// The oracle of a low-rank rule: its gradients against central differences of its own forward pass,
// its matrix, and a delta rule written as a low-rank one against the oracle of delta rules.
//
//   loss = sum(w (.) o) + sum(u (.) final state)
//   for every input number x: (loss(x + h) - loss(x - h)) / 2h
//
// Cost: two forward passes a number, on tiny shapes.
#include "sp_methods/kernels/reference/low_rank.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>

#include "sp_methods/kernels/reference/delta_rule.hpp"
#include "tests/sp_methods/kernels/reference/derivatives.hpp"

namespace baton {
namespace {

struct Case {
  LayerShape shape;
  Numbers q, k, v, g, a, b, initial, d_o, d_final;
  LowRankReferenceInputs inputs() const { return {{q, k, v, g, initial}, a, b}; }
};

Case make_case(GateKind kind, double gate_scale) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  const auto fill = [&](std::int64_t count) {
    Numbers out(static_cast<std::size_t>(count));
    for (double& x : out) x = normal(random) / 2;
    return out;
  };
  const LayerShape s{7, 1, 3, 4, 64, kind};
  const std::int64_t keys = s.tokens * s.d_k, values = s.tokens * s.d_v, state = s.d_v * s.d_k;
  Case out{s,          fill(keys), fill(keys),  fill(values), fill(s.tokens * s.gate_width()),
           fill(keys), fill(keys), fill(state), fill(values), fill(state)};
  for (double& g : out.g) g = -gate_scale * std::abs(g);
  return out;
}

class LowRankReference : public testing::TestWithParam<GateKind> {};

TEST_P(LowRankReference, gradients_are_central_differences) {
  for (const double gate_scale : {0.05, 1.0, 6.0}) {
    Case c = make_case(GetParam(), gate_scale);
    const auto loss = [&] {
      const auto out = low_rank_reference_forward(c.inputs(), c.shape);
      return dot(out.o, c.d_o) + dot(out.final_state, c.d_final);
    };
    const auto gradients = low_rank_reference_backward(c.inputs(), c.d_o, c.d_final, c.shape);
    expect_derivative(c.q, gradients.of.dq, loss, "dq");
    expect_derivative(c.k, gradients.of.dk, loss, "dk");
    expect_derivative(c.v, gradients.of.dv, loss, "dv");
    expect_derivative(c.g, gradients.of.dg, loss, "dg");
    expect_derivative(c.a, gradients.da, loss, "da");
    expect_derivative(c.b, gradients.db, loss, "db");
    expect_derivative(c.initial, gradients.of.initial_state, loss, "initial state");
  }
}

TEST_P(LowRankReference, the_matrix_maps_the_state_and_transposed_its_gradient) {
  Case c = make_case(GetParam(), 0.3);
  const auto matrix = low_rank_reference_matrix(c.inputs(), c.shape);
  const auto state = low_rank_reference_forward(c.inputs(), c.shape).final_state;
  const auto gradient = low_rank_reference_backward(c.inputs(), c.d_o, c.d_final, c.shape).of.initial_state;
  const Numbers initial = std::exchange(c.initial, {}), d_final = std::exchange(c.d_final, {});
  const auto from_zero = low_rank_reference_forward(c.inputs(), c.shape).final_state;
  const auto local = low_rank_reference_backward(c.inputs(), c.d_o, {}, c.shape).of.initial_state;
  const std::size_t d_k = static_cast<std::size_t>(c.shape.d_k);
  for (std::size_t i = 0; i < state.size(); ++i) {
    const std::size_t row = i / d_k * d_k, at = i % d_k;
    double mapped = from_zero[i], back = local[i];
    for (std::size_t j = 0; j < d_k; ++j) {
      mapped += matrix[at * d_k + j] * initial[row + j];
      back += matrix[j * d_k + at] * d_final[row + j];
    }
    EXPECT_NEAR(state[i], mapped, 1e-13);
    EXPECT_NEAR(gradient[i], back, 1e-13);
  }
}

/// a = e^g (.) k, b = -beta k, and values times beta.
TEST_P(LowRankReference, a_delta_rule_is_one) {
  Case c = make_case(GetParam(), 0.5);
  Numbers beta(static_cast<std::size_t>(c.shape.tokens));
  const std::size_t d_k = static_cast<std::size_t>(c.shape.d_k), d_v = static_cast<std::size_t>(c.shape.d_v);
  const std::size_t width = static_cast<std::size_t>(c.shape.gate_width());
  const Numbers values = c.v;
  for (std::size_t t = 0; t < beta.size(); ++t) {
    beta[t] = 0.1 + 0.1 * static_cast<double>(t);
    for (std::size_t i = 0; i < d_k; ++i) {
      const double gate = width == 0 ? 0 : c.g[t * width + (width == 1 ? 0 : i)];
      c.a[t * d_k + i] = std::exp(gate) * c.k[t * d_k + i];
      c.b[t * d_k + i] = -beta[t] * c.k[t * d_k + i];
    }
    for (std::size_t j = 0; j < d_v; ++j) c.v[t * d_v + j] *= beta[t];
  }
  const DeltaReferenceInputs delta{{c.q, c.k, values, c.g, c.initial}, beta};
  const auto out = low_rank_reference_forward(c.inputs(), c.shape),
             expected = delta_reference_forward(delta, c.shape);
  for (std::size_t i = 0; i < out.o.size(); ++i) EXPECT_NEAR(out.o[i], expected.o[i], 1e-13);
  for (std::size_t i = 0; i < out.final_state.size(); ++i)
    EXPECT_NEAR(out.final_state[i], expected.final_state[i], 1e-13);
  const auto gradients = low_rank_reference_backward(c.inputs(), c.d_o, c.d_final, c.shape);
  const auto of_delta = delta_reference_backward(delta, c.d_o, c.d_final, c.shape);
  for (std::size_t i = 0; i < c.q.size(); ++i) EXPECT_NEAR(gradients.of.dq[i], of_delta.of.dq[i], 1e-13);
  for (std::size_t i = 0; i < c.v.size(); ++i)
    EXPECT_NEAR(gradients.of.dv[i] * beta[i / d_v], of_delta.of.dv[i], 1e-13);
}

INSTANTIATE_TEST_SUITE_P(all_gates, LowRankReference,
                         testing::Values(GateKind::vector, GateKind::scalar, GateKind::none),
                         [](const auto& info) {
                           return info.param == GateKind::vector   ? "vector"
                                  : info.param == GateKind::scalar ? "scalar"
                                                                   : "none";
                         });

}  // namespace
}  // namespace baton
