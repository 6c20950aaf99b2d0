// SPDX-License-Identifier: Apache-2.0
// Random layers solved by the references.
#include "sp_methods/layer_oracle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "collectives/schedule/slice.hpp"
#include "sp_methods/kernels/reference/attention.hpp"

namespace baton {
namespace {

/// The number of `dtype` nearest to it.
double rounded(float value, Dtype dtype) { return dtype == Dtype::f32 ? value : from_bf16(to_bf16(value)); }

}  // namespace

const char* to_string(GateDraw draw) { return draw == GateDraw::layer ? "layer" : "strong"; }

LayerOracle::LayerOracle(Attention attention, const GlaShape& share, int ranks, bool alone, GateDraw gates,
                         std::uint64_t seed, Dtype dtype)
    : attention_(attention), share_(share), ranks_(ranks), alone_(alone) {
  draw(gates, seed, dtype);
  const std::int64_t tokens = share.tokens * (alone ? 1 : ranks);
  for (std::int64_t first = 0; first < share.tokens * ranks; first += tokens) solve(first, tokens);
}

std::vector<float> LayerOracle::input(const std::string& name, int rank, const Positions& positions) const {
  if (name == "prefix") return prefix(rank);
  const Tensor rows = expected(name == "out" ? "o" : name, positions);
  return {rows.begin(), rows.end()};
}

std::vector<double> LayerOracle::expected(const std::string& name, const Positions& positions) const {
  const Tensor& all = tensors_.at(name);
  const std::int64_t row = share_.heads * width(name);
  Tensor rows;
  for (std::int64_t t = 0; t < share_.tokens; ++t) {
    const auto begin = all.begin() + positions.at(t) * row;
    rows.insert(rows.end(), begin, begin + row);
  }
  return rows;
}

void LayerOracle::draw(GateDraw gates, std::uint64_t seed, Dtype dtype) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> uniform(-8, 0);
  const std::int64_t rows = share_.tokens * ranks_ * share_.heads;
  // The references get the very numbers that the kernels get.
  for (const char* name : {"q", "k", "v", "d_o"}) {
    Tensor& tensor = tensors_[name];
    tensor.resize(rows * width(name));
    for (double& value : tensor) value = rounded(normal(random), dtype);
  }
  Tensor& gate = tensors_["g"];
  gate.resize(rows * width("g"));
  for (double& value : gate) {
    const double drawn =
        gates == GateDraw::layer ? log_sigmoid<double>(normal(random)) / 16 : uniform(random);
    value = rounded(static_cast<float>(drawn), dtype);
  }
  for (const char* name : {"o", "dq", "dk", "dv", "dg", "lse"}) tensors_[name].resize(rows * width(name));
}

void LayerOracle::solve(std::int64_t first_token, std::int64_t tokens) {
  for (std::int64_t head = 0; head < share_.heads; ++head) solve_head(first_token, tokens, head);
}

void LayerOracle::solve_head(std::int64_t first_token, std::int64_t tokens, std::int64_t head) {
  const auto rows = [&](const char* name) { return head_rows(name, first_token, tokens, head); };
  const Tensor q = rows("q"), k = rows("k"), v = rows("v"), g = rows("g"), d_o = rows("d_o");
  const ReferenceInputs in{q, k, v, g, {}};
  GlaShape shape = share_;
  shape.tokens = tokens;
  const bool linear = attention_ == Attention::linear;
  const auto gradients =
      linear ? gla_reference_backward(in, d_o, {}, shape) : softmax_reference_backward(in, d_o, shape);
  put_head("o", first_token, head,
           linear ? gla_reference_forward(in, shape).o : softmax_reference_forward(in, shape));
  put_head("dq", first_token, head, gradients.dq);
  put_head("dk", first_token, head, gradients.dk);
  put_head("dv", first_token, head, gradients.dv);
  put_head("dg", first_token, head, gradients.dg);
  if (!linear) put_head("lse", first_token, head, softmax_reference_lse(in, shape));
}

LayerOracle::Tensor LayerOracle::head_rows(const std::string& name, std::int64_t first_token,
                                           std::int64_t tokens, std::int64_t head) const {
  const std::int64_t w = width(name);
  Tensor rows;
  for (std::int64_t t = first_token; t < first_token + tokens; ++t) {
    const auto begin = tensors_.at(name).begin() + (t * share_.heads + head) * w;
    rows.insert(rows.end(), begin, begin + w);
  }
  return rows;
}

void LayerOracle::put_head(const std::string& name, std::int64_t first_token, std::int64_t head,
                           const Tensor& rows) {
  const std::int64_t w = width(name);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(rows.size()); ++i)
    tensors_[name][((first_token + i / w) * share_.heads + head) * w + i % w] = rows[i];
}

std::vector<float> LayerOracle::prefix(int rank) const {
  const std::int64_t state = share_.d_k * share_.d_v, tokens = share_.tokens * rank;
  std::vector<float> all(share_.heads * state, 0.0f);
  if (alone_ || tokens == 0) return all;
  for (std::int64_t head = 0; head < share_.heads; ++head) {
    const auto rows = [&](const char* name) { return head_rows(name, 0, tokens, head); };
    const Tensor q = rows("q"), k = rows("k"), v = rows("v"), g = rows("g");
    GlaShape shape = share_;
    shape.tokens = tokens;
    const Tensor final_state = gla_reference_forward({q, k, v, g, {}}, shape).final_state;
    std::copy(final_state.begin(), final_state.end(), all.begin() + head * state);
  }
  return all;
}

std::int64_t LayerOracle::width(const std::string& name) const {
  if (name == "g" || name == "dg") return share_.gate_width();
  if (name == "lse") return 1;
  return name == "q" || name == "k" || name == "dq" || name == "dk" ? share_.d_k : share_.d_v;
}

double relative_error(const std::vector<float>& got, const std::vector<double>& expected) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(got[i])) return std::numeric_limits<double>::infinity();
    difference += (got[i] - expected[i]) * (got[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

}  // namespace baton
