// SPDX-License-Identifier: Apache-2.0
// The oracle of a delta rule: its gradients against central differences of its own forward pass,
// two tokens written out by hand, columns apart, and its matrix, all in double precision.
//
//   loss = sum(w (.) o) + sum(u (.) final state)
//   for every input number x: (loss(x + h) - loss(x - h)) / 2h
//
// Cost: two forward passes a number, on tiny shapes.
#include "sp_methods/kernels/reference/delta_rule.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <utility>

#include "tests/sp_methods/kernels/reference/derivatives.hpp"

namespace baton {
namespace {

struct Case {
  LayerShape shape;
  Numbers q, k, v, g, beta, initial, d_o, d_final;
  DeltaReferenceInputs inputs() const { return {{q, k, v, g, initial}, beta}; }
};

Case make_case(GateKind kind, double gate_scale) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  const auto fill = [&](std::int64_t count) {
    Numbers out(static_cast<std::size_t>(count));
    for (double& x : out) x = normal(random);
    return out;
  };
  const LayerShape s{7, 1, 3, 4, 64, kind};
  Case out{s,
           fill(s.tokens * s.d_k),
           fill(s.tokens * s.d_k),
           fill(s.tokens * s.d_v),
           fill(s.tokens * s.gate_width()),
           fill(s.tokens),
           fill(s.d_v * s.d_k),
           fill(s.tokens * s.d_v),
           fill(s.d_v * s.d_k)};
  for (double& k : out.k) k /= 2;
  for (double& g : out.g) g = -gate_scale * std::abs(g);
  for (double& beta : out.beta) beta = 1 / (1 + std::exp(-beta));
  return out;
}

class DeltaReference : public testing::TestWithParam<GateKind> {};

TEST_P(DeltaReference, gradients_are_central_differences) {
  for (const double gate_scale : {0.05, 1.0, 6.0}) {
    Case c = make_case(GetParam(), gate_scale);
    const auto loss = [&] {
      const auto out = delta_reference_forward(c.inputs(), c.shape);
      return dot(out.o, c.d_o) + dot(out.final_state, c.d_final);
    };
    const auto gradients = delta_reference_backward(c.inputs(), c.d_o, c.d_final, c.shape);
    expect_derivative(c.q, gradients.of.dq, loss, "dq");
    expect_derivative(c.k, gradients.of.dk, loss, "dk");
    expect_derivative(c.v, gradients.of.dv, loss, "dv");
    expect_derivative(c.g, gradients.of.dg, loss, "dg");
    expect_derivative(c.beta, gradients.dbeta, loss, "dbeta");
    expect_derivative(c.initial, gradients.of.initial_state, loss, "initial state");
  }
}

TEST_P(DeltaReference, columns_of_values_stand_alone) {
  Case c = make_case(GetParam(), 0.3);
  const auto whole = delta_reference_forward(c.inputs(), c.shape);
  const auto gradients = delta_reference_backward(c.inputs(), c.d_o, c.d_final, c.shape);
  Numbers dk(c.k.size(), 0.0), dbeta(c.beta.size(), 0.0), dg(c.g.size(), 0.0), dq(c.q.size(), 0.0);
  const auto add = [](Numbers& sum, const Numbers& part) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  };
  const std::size_t d_k = static_cast<std::size_t>(c.shape.d_k), d_v = static_cast<std::size_t>(c.shape.d_v);
  for (std::size_t j = 0; j < d_v; ++j) {
    Case one = c;
    one.shape.d_v = 1;
    one.v.clear(), one.d_o.clear();
    for (std::size_t t = 0; t < c.beta.size(); ++t)
      one.v.push_back(c.v[t * d_v + j]), one.d_o.push_back(c.d_o[t * d_v + j]);
    one.initial.assign(c.initial.begin() + j * d_k, c.initial.begin() + (j + 1) * d_k);
    one.d_final.assign(c.d_final.begin() + j * d_k, c.d_final.begin() + (j + 1) * d_k);
    const auto out = delta_reference_forward(one.inputs(), one.shape);
    const auto back = delta_reference_backward(one.inputs(), one.d_o, one.d_final, one.shape);
    for (std::size_t t = 0; t < c.beta.size(); ++t) {
      EXPECT_EQ(out.o[t], whole.o[t * d_v + j]);
      EXPECT_EQ(back.of.dv[t], gradients.of.dv[t * d_v + j]);
    }
    for (std::size_t i = 0; i < d_k; ++i) EXPECT_EQ(out.final_state[i], whole.final_state[j * d_k + i]);
    add(dq, back.of.dq), add(dk, back.of.dk), add(dg, back.of.dg), add(dbeta, back.dbeta);
  }
  for (std::size_t i = 0; i < dk.size(); ++i) EXPECT_NEAR(dk[i], gradients.of.dk[i], 1e-13);
  for (std::size_t i = 0; i < dq.size(); ++i) EXPECT_NEAR(dq[i], gradients.of.dq[i], 1e-13);
  for (std::size_t i = 0; i < dg.size(); ++i) EXPECT_NEAR(dg[i], gradients.of.dg[i], 1e-13);
  for (std::size_t i = 0; i < dbeta.size(); ++i) EXPECT_NEAR(dbeta[i], gradients.dbeta[i], 1e-13);
}

TEST_P(DeltaReference, the_matrix_maps_the_state_and_transposed_its_gradient) {
  Case c = make_case(GetParam(), 0.3);
  const auto matrix = delta_reference_matrix(c.inputs(), c.shape);
  const auto state = delta_reference_forward(c.inputs(), c.shape).final_state;
  const auto gradient = delta_reference_backward(c.inputs(), c.d_o, c.d_final, c.shape).of.initial_state;
  const Numbers initial = std::exchange(c.initial, {}), d_final = std::exchange(c.d_final, {});
  const auto from_zero = delta_reference_forward(c.inputs(), c.shape).final_state;
  const auto local = delta_reference_backward(c.inputs(), c.d_o, {}, c.shape).of.initial_state;
  const std::size_t d_k = static_cast<std::size_t>(c.shape.d_k);
  for (std::size_t i = 0; i < state.size(); ++i) {
    const std::size_t row = i / d_k * d_k, a = i % d_k;
    double mapped = from_zero[i], back = local[i];
    for (std::size_t b = 0; b < d_k; ++b) {
      mapped += matrix[a * d_k + b] * initial[row + b];
      back += matrix[b * d_k + a] * d_final[row + b];
    }
    EXPECT_NEAR(state[i], mapped, 1e-13);
    EXPECT_NEAR(gradient[i], back, 1e-13);
  }
}

INSTANTIATE_TEST_SUITE_P(all_gates, DeltaReference,
                         testing::Values(GateKind::vector, GateKind::scalar, GateKind::none),
                         [](const auto& info) {
                           return info.param == GateKind::vector   ? "vector"
                                  : info.param == GateKind::scalar ? "scalar"
                                                                   : "none";
                         });

TEST(delta_reference, two_tokens_by_hand) {
  // d_k 2, d_v 1. Token 0 writes half of 3 at key (1, 0). Token 1 has key (1, 0) too: gates of a
  // half leave 0.75 there, so it writes a quarter of 1 - 0.75.
  const Numbers q{1, 0, 1, 1}, k{1, 0, 1, 0}, v{3, 1}, g{std::log(0.5), std::log(0.5)}, beta{0.5, 0.25};
  const Numbers initial{0, 4};
  const auto out = delta_reference_forward({{q, k, v, g, initial}, beta}, {2, 1, 2, 1, 64, GateKind::scalar});
  const double s = 1 / std::sqrt(2.0), at_key = 0.75 + 0.25 * (1 - 0.75);
  EXPECT_NEAR(out.o[0], s * 1.5, 1e-15);
  EXPECT_NEAR(out.o[1], s * (at_key + 1), 1e-15);
  EXPECT_NEAR(out.final_state[0], at_key, 1e-15);
  EXPECT_NEAR(out.final_state[1], 1, 1e-15);
}

}  // namespace
}  // namespace baton
