// SPDX-License-Identifier: Apache-2.0
// The oracles' gradients against central differences of their own forward pass, in double
// precision.
//
//   loss = sum(w (.) o) + sum(u (.) final state)
//   for every input number x: (loss(x + h) - loss(x - h)) / 2h
//
// Cost: two forward passes a number, on tiny shapes.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "sp_methods/kernels/reference/attention.hpp"
#include "sp_methods/kernels/reference/maps.hpp"
#include "tests/sp_methods/kernels/reference/derivatives.hpp"

namespace baton {
namespace {

struct Case {
  LayerShape shape;
  Numbers q, k, v, g, initial, d_o, d_final;
  ReferenceInputs inputs() const { return {q, k, v, g, initial}; }
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
           fill(s.d_k * s.d_v),
           fill(s.tokens * s.d_v),
           fill(s.d_k * s.d_v)};
  for (double& g : out.g) g = -gate_scale * std::abs(g);
  return out;
}

class GlaReference : public testing::TestWithParam<GateKind> {};

TEST_P(GlaReference, gradients_are_central_differences) {
  for (const double gate_scale : {0.05, 1.0, 6.0}) {
    Case c = make_case(GetParam(), gate_scale);
    const auto loss = [&] {
      const auto out = gla_reference_forward(c.inputs(), c.shape);
      return dot(out.o, c.d_o) + dot(out.final_state, c.d_final);
    };
    const auto gradients = gla_reference_backward(c.inputs(), c.d_o, c.d_final, c.shape);
    expect_derivative(c.q, gradients.dq, loss, "dq");
    expect_derivative(c.k, gradients.dk, loss, "dk");
    expect_derivative(c.v, gradients.dv, loss, "dv");
    expect_derivative(c.g, gradients.dg, loss, "dg");
    expect_derivative(c.initial, gradients.initial_state, loss, "initial state");
  }
}

TEST_P(GlaReference, two_halves_hand_over_one_state) {
  Case c = make_case(GetParam(), 0.3);
  const auto whole = gla_reference_forward(c.inputs(), c.shape);
  LayerShape left = c.shape, right = c.shape;
  left.tokens = 3;
  right.tokens = c.shape.tokens - left.tokens;
  const auto before = gla_reference_forward(c.inputs(), left);
  ReferenceInputs rest = c.inputs();
  rest.q = rest.q.subspan(static_cast<std::size_t>(3 * left.d_k));
  rest.k = rest.k.subspan(static_cast<std::size_t>(3 * left.d_k));
  rest.v = rest.v.subspan(static_cast<std::size_t>(3 * left.d_v));
  rest.g = rest.g.subspan(static_cast<std::size_t>(3 * left.gate_width()));
  rest.initial_state = before.final_state;
  const auto after = gla_reference_forward(rest, right);
  for (std::size_t i = 0; i < after.o.size(); ++i) {
    EXPECT_NEAR(after.o[i], whole.o[before.o.size() + i], 1e-14);
  }
  for (std::size_t i = 0; i < whole.final_state.size(); ++i) {
    EXPECT_NEAR(after.final_state[i], whole.final_state[i], 1e-14);
  }
}

TEST_P(GlaReference, maps_of_runs_are_those_of_the_recurrence) {
  const Case c = make_case(GetParam(), 0.3);
  const std::int64_t tokens = c.shape.tokens, width = c.shape.gate_width();
  const auto run = [&](const Numbers& rows, std::int64_t of_token, std::int64_t first, std::int64_t end) {
    return std::vector<float>(rows.begin() + first * of_token, rows.begin() + end * of_token);
  };
  ReferenceMap forward(c.shape, true), backward(c.shape, false);
  for (const auto& [first, end] : {std::pair<std::int64_t, std::int64_t>{4, tokens}, {0, 4}})
    forward.add(run(c.k, c.shape.d_k, first, end), run(c.v, c.shape.d_v, first, end),
                run(c.g, width, first, end));
  for (const auto& [first, end] : {std::pair<std::int64_t, std::int64_t>{0, 4}, {4, tokens}})
    backward.add(run(c.q, c.shape.d_k, first, end), run(c.d_o, c.shape.d_v, first, end),
                 run(c.g, width, first, end));
  const auto states = gla_reference_forward(c.inputs(), c.shape).final_state;
  const auto gradients = gla_reference_backward(c.inputs(), c.d_o, c.d_final, c.shape).initial_state;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const std::size_t row = i / static_cast<std::size_t>(c.shape.d_v);
    EXPECT_NEAR(forward.decay()[row] * c.initial[i] + forward.state()[i], states[i], 1e-5);
    EXPECT_NEAR(backward.decay()[row] * c.d_final[i] + backward.state()[i], gradients[i], 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(all_gates, GlaReference,
                         testing::Values(GateKind::vector, GateKind::scalar, GateKind::none),
                         [](const auto& info) {
                           return info.param == GateKind::vector   ? "vector"
                                  : info.param == GateKind::scalar ? "scalar"
                                                                   : "none";
                         });

TEST(softmax_reference, gradients_are_central_differences) {
  Case c = make_case(GateKind::none, 0.0);
  const auto loss = [&] { return dot(softmax_reference_forward(c.inputs(), c.shape).o, c.d_o); };
  const auto gradients = softmax_reference_backward(c.inputs(), c.d_o, c.shape);
  expect_derivative(c.q, gradients.dq, loss, "dq");
  expect_derivative(c.k, gradients.dk, loss, "dk");
  expect_derivative(c.v, gradients.dv, loss, "dv");
}

}  // namespace
}  // namespace baton
