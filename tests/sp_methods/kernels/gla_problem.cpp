// SPDX-License-Identifier: Apache-2.0
// Bodies of the random layers, the oracle's answers and the errors that the tests print at their
// end.
#include "tests/sp_methods/kernels/gla_problem.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>

#include "sp_methods/kernels/reference/attention.hpp"
#include "sp_methods/kernels/reference/roundings.hpp"
#include "sp_methods/layer_oracle.hpp"
#include "tests/held_out_seed.hpp"

namespace baton::test {
namespace {

constexpr double tolerance = 2e-5;

float draw_gate(const Problem& problem, std::mt19937& random, std::size_t i) {
  std::normal_distribution<float> normal;
  switch (problem.gates) {
    case Gates::layer: return log_sigmoid(normal(random)) / 16.0F;
    case Gates::unit_normal: return std::max(log_sigmoid(normal(random)), -5.0F);
    case Gates::constant: return problem.constant;
    case Gates::near_zero:  // decay near 1
      return -1e-6F * std::abs(normal(random));
    case Gates::near_one:  // decay near 0
      return -20.0F - 10.0F * std::abs(normal(random));
    case Gates::mixed: return i % 3 == 0 ? -12.0F : log_sigmoid(normal(random)) / 16.0F;
  }
  return 0.0F;
}

std::string gate_name(GateKind kind) {
  return kind == GateKind::vector ? "vector" : kind == GateKind::scalar ? "scalar" : "none";
}

/// The greatest error of every gate kind and tensor, printed when the run ends.
class ErrorSummary : public testing::Environment {
 public:
  void note(const std::string& key, double error) { worst_[key] = std::max(worst_[key], error); }
  void TearDown() override {
    for (const auto& [key, error] : worst_)
      std::printf("greatest relative error %-40s %.2e\n", key.c_str(), error);
  }

 private:
  std::map<std::string, double> worst_;
};

ErrorSummary* const summary = [] {
  auto* environment = new ErrorSummary;  // GoogleTest deletes it
  testing::AddGlobalTestEnvironment(environment);
  return environment;
}();

template <class Forward, class Backward>
Results<double> all_heads(const Tensors& tensors, const LayerShape& s, std::uint64_t rounding,
                          Forward forward, Backward backward) {
  Results<double> out;
  for (std::int64_t h = 0; h < s.heads; ++h) {
    auto q = head_of(tensors.q, h, s.heads, s.d_k), k = head_of(tensors.k, h, s.heads, s.d_k);
    auto v = head_of(tensors.v, h, s.heads, s.d_v), d_o = head_of(tensors.d_o, h, s.heads, s.d_v);
    auto g = head_of(tensors.g, h, s.heads, s.gate_width());
    Roundings roundings(rounding_of(rounding, static_cast<std::uint64_t>(h)));
    for (auto* input : {&q, &k, &v, &d_o, &g}) roundings.round(*input);
    const ReferenceInputs in{q, k, v, g, {}};
    put_head(out.o, forward(in), h, s.heads, s.d_v);
    const ReferenceGradients gradients = backward(in, d_o);
    put_head(out.dq, gradients.dq, h, s.heads, s.d_k);
    put_head(out.dk, gradients.dk, h, s.heads, s.d_k);
    put_head(out.dv, gradients.dv, h, s.heads, s.d_v);
    put_head(out.dg, gradients.dg, h, s.heads, s.gate_width());
  }
  return out;
}

}  // namespace

void note_error(const std::string& key, double error) { summary->note(key, error); }

std::vector<double> head_of(const std::vector<float>& x, std::int64_t head, std::int64_t heads,
                            std::int64_t width) {
  std::vector<double> out;
  if (width == 0) return out;
  for (std::size_t row = static_cast<std::size_t>(head * width); row < x.size();
       row += static_cast<std::size_t>(heads * width)) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(width); ++c) out.push_back(x[row + c]);
  }
  return out;
}

void put_head(std::vector<double>& x, const std::vector<double>& values, std::int64_t head,
              std::int64_t heads, std::int64_t width) {
  if (width == 0) return;
  x.resize(values.size() * static_cast<std::size_t>(heads));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto w = static_cast<std::size_t>(width);
    x[(i / w * static_cast<std::size_t>(heads) + static_cast<std::size_t>(head)) * w + i % w] = values[i];
  }
}

std::string Problem::name() const {
  const char* kinds[] = {"layer", "unit_normal", "constant", "near_zero", "near_one", "mixed"};
  return gate_name(shape.gate) + " gate " + kinds[static_cast<int>(gates)] + " " + std::to_string(constant) +
         ", tokens " + std::to_string(shape.tokens) + ", heads " + std::to_string(shape.heads) + ", d_k " +
         std::to_string(shape.d_k) + ", d_v " + std::to_string(shape.d_v) + ", chunk " +
         std::to_string(shape.chunk) + ", seed " + std::to_string(seed);
}

GlaInputs Tensors::inputs(const LayerShape& shape, std::int64_t first) const {
  const auto row = first * shape.heads;
  return {q.data() + row * shape.d_k, k.data() + row * shape.d_k, v.data() + row * shape.d_v,
          g.empty() ? nullptr : g.data() + row * shape.gate_width()};
}

Tensors draw(const Problem& problem) {
  std::mt19937 random(problem.seed);
  std::normal_distribution<float> normal;
  const LayerShape& s = problem.shape;
  const auto fill = [&](std::vector<float>& x, std::int64_t width) {
    x.resize(static_cast<std::size_t>(s.tokens * s.heads * width));
    for (float& value : x) value = normal(random);
  };
  Tensors out;
  fill(out.q, s.d_k);
  fill(out.k, s.d_k);
  fill(out.v, s.d_v);
  fill(out.d_o, s.d_v);
  out.g.resize(static_cast<std::size_t>(s.tokens * s.heads * s.gate_width()));
  for (std::size_t i = 0; i < out.g.size(); ++i) out.g[i] = draw_gate(problem, random, i);
  return out;
}

Results<double> reference(const Tensors& tensors, const LayerShape& shape, std::uint64_t rounding) {
  return all_heads(
      tensors, shape, rounding, [&](const ReferenceInputs& in) { return gla_reference_forward(in, shape).o; },
      [&](const ReferenceInputs& in, const std::vector<double>& d_o) {
        return gla_reference_backward(in, d_o, {}, shape);
      });
}

Results<double> softmax_reference(const Tensors& tensors, const LayerShape& shape) {
  return all_heads(
      tensors, shape, 0, [&](const ReferenceInputs& in) { return softmax_reference_forward(in, shape).o; },
      [&](const ReferenceInputs& in, const std::vector<double>& d_o) {
        return softmax_reference_backward(in, d_o, shape);
      });
}

Results<float> room(const LayerShape& s) {
  const auto make = [&](std::int64_t width) {
    return std::vector<float>(static_cast<std::size_t>(s.tokens * s.heads * width), NAN);
  };
  return {make(s.d_v), make(s.d_k), make(s.d_k), make(s.d_v), make(s.gate_width())};
}

double relative_error(const std::vector<float>& x, const std::vector<double>& y, double least_norm) {
  if (x.size() != y.size()) return INFINITY;
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    difference += (x[i] - y[i]) * (x[i] - y[i]);
    norm += y[i] * y[i];
  }
  norm = std::max(norm, least_norm * least_norm);
  return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

double bf16_error(const std::vector<float>& x, const Results<double>& exact,
                  std::vector<double> Results<double>::*tensor, const Tensors& tensors,
                  const LayerShape& shape, double tolerance) {
  const double error = relative_error(x, exact.*tensor);
  if (error <= tolerance) return error;
  std::vector<double> squares;
  for (int key = 1; key <= rounded_solutions; ++key)
    add_squares_of_terms(squares, reference(tensors, shape, key).*tensor, exact.*tensor);
  const double terms = std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
  return relative_error(x, exact.*tensor, least_of_terms(Dtype::bf16) * terms);
}

RankTokens rank_tokens(const LayerShape& whole, int rank, int ranks) {
  const auto first = whole.tokens * rank / ranks;
  RankTokens out{whole, first};
  out.shape.tokens = whole.tokens * (rank + 1) / ranks - first;
  return out;
}

GlaGradients gradients_at(Results<float>& results, const LayerShape& s, std::int64_t first) {
  const auto row = first * s.heads;
  return {results.dq.data() + row * s.d_k, results.dk.data() + row * s.d_k, results.dv.data() + row * s.d_v,
          s.gate_width() == 0 ? nullptr : results.dg.data() + row * s.gate_width()};
}

void expect_close(const Results<float>& results, const Results<double>& oracle, const Problem& problem,
                  const std::string& what) {
  const auto check = [&](const char* tensor, const std::vector<float>& x, const std::vector<double>& y) {
    if (y.empty()) return;
    const double error = relative_error(x, y);
    EXPECT_LT(error, tolerance) << what << ", " << tensor << ", " << problem.name();
    summary->note(what.substr(0, what.find(',')) + " " + gate_name(problem.shape.gate) + " " + tensor, error);
  };
  check("o", results.o, oracle.o);
  check("dq", results.dq, oracle.dq);
  check("dk", results.dk, oracle.dk);
  check("dv", results.dv, oracle.dv);
  check("dg", results.dg, oracle.dg);
}

std::vector<Problem> problems() {
  std::vector<Problem> out;
  for (const GateKind kind : {GateKind::vector, GateKind::scalar, GateKind::none}) {
    for (const LayerShape& shape :
         {LayerShape{256, 2, 32, 48, 16, kind}, LayerShape{203, 1, 24, 16, 32, kind},
          LayerShape{96, 3, 16, 40, 128, kind}, LayerShape{512, 2, 128, 128, 64, kind}}) {
      out.push_back({shape, Gates::layer, 0.0F, 11});
      if (kind == GateKind::none) continue;
      for (const Gates gates : {Gates::unit_normal, Gates::near_zero, Gates::near_one, Gates::mixed}) {
        out.push_back({shape, gates, 0.0F, 12});
      }
      for (const float constant : {-1.0F, -1.8F, -2.5F, -5.0F, -8.0F, -12.0F, -16.0F, -20.0F}) {
        out.push_back({shape, Gates::constant, constant, 13});
      }
    }
  }
  return out;
}

Problem held_out() {
  static std::mt19937 seeds(held_out_seed());
  Problem out;
  out.seed = seeds();
  std::mt19937 random(out.seed);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  out.shape = {pick(8, 400), pick(1, 4),   pick(1, 140),
               pick(1, 140), pick(1, 100), static_cast<GateKind>(pick(0, 2))};
  out.gates = static_cast<Gates>(pick(0, 5));
  out.constant = -0.1F * static_cast<float>(pick(0, 90));
  return out;
}

}  // namespace baton::test
