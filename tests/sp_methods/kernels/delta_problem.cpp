// SPDX-License-Identifier: Apache-2.0
// Bodies of the random layers with a delta rule and of the oracle's answers.
#include "tests/sp_methods/kernels/delta_problem.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>

namespace baton::test {
namespace {

constexpr double tolerance = 1e-5;
constexpr double least_norm = 1e-20;

std::string gate_name(GateKind kind) {
  return kind == GateKind::vector ? "vector" : kind == GateKind::scalar ? "scalar" : "none";
}

/// Makes every row of x [.., width] one of length one.
void normalise(std::vector<float>& x, std::int64_t width) {
  for (auto row = x.begin(); row != x.end(); row += width) {
    double sum = 0;
    for (std::int64_t i = 0; i < width; ++i) sum += row[i] * row[i];
    for (std::int64_t i = 0; i < width; ++i) row[i] /= static_cast<float>(std::sqrt(sum));
  }
}

double norm(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

/// One head's inputs in double.
struct HeadInputs {
  std::vector<double> q, k, v, g, beta, before, after, d_o;

  HeadInputs(const DeltaTensors& x, const LayerShape& s, std::int64_t head)
      : q(head_of(x.of.q, head, s.heads, s.d_k)),
        k(head_of(x.of.k, head, s.heads, s.d_k)),
        v(head_of(x.of.v, head, s.heads, s.d_v)),
        g(head_of(x.of.g, head, s.heads, s.gate_width())),
        beta(head_of(x.beta, head, s.heads, 1)),
        before(head_of(x.before, head, s.heads, s.d_v * s.d_k)),
        after(head_of(x.after, head, s.heads, s.d_v * s.d_k)),
        d_o(head_of(x.of.d_o, head, s.heads, s.d_v)) {}

  DeltaReferenceInputs reference() const { return {{q, k, v, g, before}, beta}; }
};

}  // namespace

std::string DeltaProblem::name() const {
  return gate_name(shape.gate) + (has_equal_gates ? " gates, all -" : " gates down to -") +
         std::to_string(gate) + ", tokens " + std::to_string(shape.tokens) + ", heads " +
         std::to_string(shape.heads) + ", d_k " + std::to_string(shape.d_k) + ", d_v " +
         std::to_string(shape.d_v) + ", chunk " + std::to_string(shape.chunk) + ", seed " +
         std::to_string(seed);
}

DeltaInputs<OnHost> DeltaTensors::inputs(const LayerShape& shape, std::int64_t first) const {
  return {of.inputs(shape, first), beta.data() + first * shape.heads};
}

const float* DeltaTensors::d_o(const LayerShape& shape, std::int64_t first) const {
  return of.d_o.data() + first * shape.heads * shape.d_v;
}

DeltaTensors draw(const DeltaProblem& problem) {
  const LayerShape& s = problem.shape;
  DeltaTensors out;
  out.of = draw(Problem{s, Gates::layer, 0.0F, problem.seed});
  std::mt19937 random(problem.seed + 1000);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> uniform(0, 1);
  normalise(out.of.k, s.d_k);
  for (float& g : out.of.g) g = -problem.gate * (problem.has_equal_gates ? 1.0F : uniform(random));
  out.beta.resize(static_cast<std::size_t>(s.tokens * s.heads));
  for (float& beta : out.beta) beta = 1.0F / (1.0F + std::exp(-normal(random)));
  for (std::vector<float>* state : {&out.before, &out.after}) {
    state->resize(static_cast<std::size_t>(s.heads * s.d_v * s.d_k));
    for (float& value : *state) value = normal(random);
  }
  return out;
}

DeltaResults<double> delta_reference(const DeltaTensors& tensors, const LayerShape& s, bool has_states) {
  DeltaResults<double> out;
  for (std::int64_t h = 0; h < s.heads; ++h) {
    HeadInputs in(tensors, s, h);
    if (!has_states) in.before.clear(), in.after.clear();
    const auto forward = delta_reference_forward(in.reference(), s);
    const auto gradients = delta_reference_backward(in.reference(), in.d_o, in.after, s);
    put_head(out.of.o, forward.o, h, s.heads, s.d_v);
    put_head(out.of.dq, gradients.of.dq, h, s.heads, s.d_k);
    put_head(out.of.dk, gradients.of.dk, h, s.heads, s.d_k);
    put_head(out.of.dv, gradients.of.dv, h, s.heads, s.d_v);
    put_head(out.of.dg, gradients.of.dg, h, s.heads, s.gate_width());
    put_head(out.dbeta, gradients.dbeta, h, s.heads, 1);
    put_head(out.final, forward.final_state, h, s.heads, s.d_v * s.d_k);
    put_head(out.d_before, gradients.of.initial_state, h, s.heads, s.d_v * s.d_k);
  }
  return out;
}

std::vector<double> delta_matrices(const DeltaTensors& tensors, const LayerShape& s) {
  std::vector<double> all;
  for (std::int64_t h = 0; h < s.heads; ++h)
    put_head(all, delta_reference_matrix(HeadInputs(tensors, s, h).reference(), s), h, s.heads,
             s.d_k * s.d_k);
  return all;
}

DeltaResults<float> delta_room(const LayerShape& s) {
  const auto make = [&](std::int64_t count) {
    return std::vector<float>(static_cast<std::size_t>(count), NAN);
  };
  const std::int64_t state = s.heads * s.d_v * s.d_k;
  return {room(s), make(s.tokens * s.heads), make(state), make(state)};
}

void expect_delta(const char* tensor, const std::vector<float>& x, const std::vector<double>& y,
                  const DeltaProblem& problem, const std::string& key) {
  if (y.empty()) return;
  const double size = norm(y);
  const double error = relative_error(x, y) * (size == 0 ? 1 / least_norm : std::min(1.0, size / least_norm));
  EXPECT_LT(error, tolerance) << key << ", " << tensor << ", " << problem.name();
  note_error(key + " " + gate_name(problem.shape.gate) + " " + tensor, error);
}

void expect_delta(const DeltaResults<float>& results, const DeltaResults<double>& oracle,
                  const DeltaProblem& problem, const std::string& key) {
  const auto check = [&](const char* tensor, const std::vector<float>& x, const std::vector<double>& y) {
    expect_delta(tensor, x, y, problem, key);
  };
  check("o", results.of.o, oracle.of.o);
  check("dq", results.of.dq, oracle.of.dq);
  check("dk", results.of.dk, oracle.of.dk);
  check("dv", results.of.dv, oracle.of.dv);
  check("dg", results.of.dg, oracle.of.dg);
  check("dbeta", results.dbeta, oracle.dbeta);
  check("final state", results.final, oracle.final);
  check("d_before", results.d_before, oracle.d_before);
}

std::vector<DeltaProblem> delta_problems() {
  std::vector<DeltaProblem> out;
  for (const GateKind kind : {GateKind::vector, GateKind::scalar, GateKind::none})
    for (const LayerShape& shape : {LayerShape{48, 2, 24, 20, 16, kind}, LayerShape{43, 3, 24, 20, 16, kind},
                                    LayerShape{160, 1, 128, 128, 64, kind}})
      for (const float gate : {0.02F, 0.3F, 3.0F, 8.0F}) {
        if (kind == GateKind::none && gate > 0.02F) continue;
        out.push_back({shape, gate, 21});
      }
  return out;
}

std::vector<DeltaProblem> equal_gate_problems() {
  std::vector<DeltaProblem> out;
  for (const GateKind kind : {GateKind::vector, GateKind::scalar})
    for (const LayerShape& shape : {LayerShape{2, 1, 1, 1, 2, kind}, LayerShape{8, 2, 3, 5, 1, kind},
                                    LayerShape{43, 3, 24, 20, 16, kind}})
      for (const float gate : {5.0F, 8.0F, 12.0F, 16.0F, 20.0F}) out.push_back({shape, gate, 22, true});
  return out;
}

}  // namespace baton::test
