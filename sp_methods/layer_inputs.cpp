// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/layer_inputs.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include "collectives/schedule/slice.hpp"

namespace baton {
namespace {

/// Logs of gates as a layer makes them, to draw from.
const std::array<float, 1 << drawn_bits>& layer_gates() {
  static const auto values = [] {
    std::array<float, 1 << drawn_bits> drawn = normal_values();
    for (float& value : drawn) value = log_sigmoid(value) / 16;
    return drawn;
  }();
  return values;
}

/// A number for a tensor's name, which all processes and all runs share.
std::uint64_t number_of(const std::string& name) {
  std::uint64_t number = 0;
  for (const char letter : name) number = number * 256 + static_cast<unsigned char>(letter);
  return number;
}

/// A sum over half a chunk stays far from the guard of the kernels (gates.hpp), whatever the chunk.
double strongest_mixed_gate(std::int64_t chunk) { return std::min(0.5, 64.0 / static_cast<double>(chunk)); }

}  // namespace

const char* to_string(GateDraw draw) {
  return draw == GateDraw::layer ? "layer" : draw == GateDraw::strong ? "strong" : "mixed";
}

std::int64_t LayerProblem::width(const std::string& name) const {
  if (name == "g" || name == "dg") return share.gate_width();
  if (name == "lse") return 1;
  return name == "q" || name == "k" || name == "dq" || name == "dk" ? share.d_k : share.d_v;
}

float LayerInputValues::gate(std::int64_t head, std::int64_t channel, std::uint16_t drawn) const {
  const double uniform = (drawn + 0.5) / (1 << drawn_bits);
  if (problem_.gates == GateDraw::layer) return layer_gates()[drawn];
  if (problem_.gates == GateDraw::strong) return static_cast<float>(-8 * uniform);
  const std::int64_t place = problem_.share.gate == GateKind::scalar ? head : channel;
  switch ((static_cast<std::uint64_t>(place) + mixed(problem_.seed)) % 4) {
    case 0:
      return static_cast<float>(-(0.5 + uniform) /
                                static_cast<double>(problem_.share.tokens * problem_.ranks));
    case 1: return static_cast<float>(-(0.5 + 0.5 * uniform) * strongest_mixed_gate(problem_.share.chunk));
    default: return layer_gates()[drawn];
  }
}

template <class Number>
void LayerInputValues::fill_row(const std::string& name, std::int64_t position, std::int64_t head,
                                Number* row) const {
  const std::int64_t width = problem_.width(name);
  const std::uint64_t tensor = key_of(problem_.seed, number_of(name));
  const std::uint64_t key =
      key_of(tensor, static_cast<std::uint64_t>(position * problem_.share.heads + head));
  const bool is_gate = name == "g";
  std::uint64_t bits = 0;  // four values from one hash
  for (std::int64_t c = 0; c < width; ++c, bits >>= drawn_bits) {
    if (c % 4 == 0) bits = mixed(key + static_cast<std::uint64_t>(c));
    const auto drawn = static_cast<std::uint16_t>(bits);
    const float value = is_gate ? gate(head, c, drawn) : normal_values()[drawn];
    row[c] = problem_.dtype == Dtype::f32 ? value : from_bf16(to_bf16(value));
  }
}

std::vector<float> LayerInputValues::of_rank(const std::string& name, const Positions& positions) const {
  const std::int64_t heads = problem_.share.heads, width = problem_.width(name);
  std::vector<float> rows(problem_.share.tokens * heads * width);
  for (std::int64_t t = 0; t < problem_.share.tokens; ++t)
    for (std::int64_t head = 0; head < heads; ++head)
      fill_row(name, positions.at(t), head, rows.data() + (t * heads + head) * width);
  return rows;
}

std::vector<double> LayerInputValues::of_head(const std::string& name, std::int64_t head, std::int64_t first,
                                              std::int64_t tokens) const {
  const std::int64_t width = problem_.width(name);
  std::vector<double> rows(tokens * width);
  for (std::int64_t t = 0; t < tokens; ++t) fill_row(name, first + t, head, rows.data() + t * width);
  return rows;
}

}  // namespace baton
