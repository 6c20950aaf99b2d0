// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/layer_inputs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <numbers>

#include "collectives/schedule/slice.hpp"
#include "sp_methods/kernels/softmax.hpp"

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

/// The log of a gate as RWKV-7 makes it, arXiv 2503.14456.
float low_rank_gate(float normal) { return -std::exp(log_sigmoid(normal) - 0.5F); }

/// A number for a tensor's name, which all processes and all runs share.
std::uint64_t number_of(const std::string& name) {
  std::uint64_t number = 0;
  for (const char letter : name) number = number * 256 + static_cast<unsigned char>(letter);
  return number;
}

/// The strongest mixed gate of a token. Its sum over half a chunk stays far from the guard of the
/// kernels (gates.hpp), whatever the chunk.
double strongest_mixed_gate(std::int64_t chunk) { return std::min(0.5, 64.0 / static_cast<double>(chunk)); }

}  // namespace

const char* to_string(GateDraw draw) {
  switch (draw) {
    case GateDraw::layer: return "layer";
    case GateDraw::strong: return "strong";
    case GateDraw::weak: return "weak";
    case GateDraw::mixed: return "mixed";
  }
  return "?";
}

std::int64_t LayerProblem::width(const std::string& name) const {
  if (const TensorKind* kind = find_tensor(name)) return kind->width(share);
  return name == "lse" ? 1 : share.d_v;
}

bool LayerProblem::is_state(const std::string& name) {
  const TensorKind* kind = find_tensor(name);
  return kind != nullptr && kind->end.has_value();
}

std::vector<std::int64_t> LayerProblem::edges() const {
  std::vector<std::int64_t> all = starts;
  const Cut cut = Cut::of(Layout::contiguous, ranks, share.tokens, shares);
  for (std::int64_t rank = 0; rank < ranks && (alone || rank == 0); ++rank)
    all.push_back(cut.positions(rank).first);
  all.push_back(all_tokens());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

bool LayerProblem::is_padding(std::int64_t position) const {
  if (position >= mask.end || ends.empty()) return position >= mask.end;
  return position >= ends[std::upper_bound(starts.begin(), starts.end(), position) - starts.begin() - 1];
}

double LayerProblem::visible_pairs() const {
  SoftmaxShape all;
  all.q_tokens = all.k_tokens = real_tokens();
  all.q_positions = all.k_positions = Positions::run(0, all.q_tokens);
  all.mask = mask.within(starts);
  return all.visible_pairs();
}

std::int64_t LayerProblem::start_of(std::int64_t position) const {
  const std::vector<std::int64_t> all = edges();
  return *(std::upper_bound(all.begin(), all.end(), position) - 1);
}

const char* to_string(LengthDraw draw) { return draw == LengthDraw::uniform ? "uniform" : "lognormal"; }

namespace {

/// The length that a number of 64 random bits stands for.
std::int64_t drawn_length(std::int64_t mean, LengthDraw draw, std::uint64_t bits) {
  if (draw == LengthDraw::uniform)
    return 1 + static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(2 * mean - 1));
  constexpr double sigma = 1.17;
  const auto uniform = [](std::uint64_t of) { return (static_cast<double>(of >> 11U) + 0.5) * 0x1p-53; };
  const double normal = std::sqrt(-2 * std::log(uniform(bits))) *
                        std::cos(2 * std::numbers::pi * uniform(mixed(bits)));  // Box and Muller
  const double length = static_cast<double>(mean) * std::exp(sigma * normal - sigma * sigma / 2);
  return std::max<std::int64_t>(1, std::llround(std::min(length, 1e15)));
}

}  // namespace

std::vector<std::int64_t> starts_of(std::span<const std::int64_t> lengths) {
  std::vector<std::int64_t> starts;
  std::int64_t at = 0;
  for (const std::int64_t length : lengths) {
    if (length > 0) starts.push_back(at);
    at += length;
  }
  return starts;
}

PaddedDocuments padded_documents(const std::vector<std::int64_t>& starts, std::int64_t tokens,
                                 std::int64_t multiple) {
  PaddedDocuments padded;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t length = (i + 1 < starts.size() ? starts[i + 1] : tokens) - starts[i];
    padded.starts.push_back(padded.tokens);
    padded.ends.push_back(padded.tokens + length);
    padded.tokens += (length + multiple - 1) / multiple * multiple;
  }
  return padded;
}

std::vector<std::int64_t> drawn_starts(std::int64_t mean, std::int64_t tokens, int ranks, std::uint64_t seed,
                                       LengthDraw draw) {
  const std::uint64_t key = key_of(seed, number_of("packed"));
  std::vector<std::int64_t> starts;
  for (std::int64_t at = 0; at < tokens * ranks;) {
    starts.push_back(at);
    at += drawn_length(mean, draw, mixed(key + static_cast<std::uint64_t>(at)));
  }
  if (ranks < 3 || draw == LengthDraw::lognormal) return starts;  // a cut would change its long tail
  const std::int64_t border = tokens * (1 + static_cast<std::int64_t>(mixed(key) % (ranks - 1)));
  const auto nearest = std::lower_bound(starts.begin(), starts.end(), border);
  if (nearest == starts.end())
    starts.push_back(border);
  else
    *nearest = border;
  return starts;
}

std::uint64_t LayerProblem::kind_of_gate(std::int64_t place) const {
  return (static_cast<std::uint64_t>(place) + mixed(seed)) % 4;
}

float LayerInputValues::gate(std::int64_t head, std::int64_t channel, std::uint16_t drawn) const {
  const double uniform = (drawn + 0.5) / (1 << drawn_bits);
  const auto of_layer = [&] {
    return problem_.rule == Rule::low_rank ? low_rank_gate(normal_values()[drawn]) : layer_gates()[drawn];
  };
  if (problem_.gates == GateDraw::layer) return of_layer();
  if (problem_.gates == GateDraw::strong) return static_cast<float>(-8 * uniform);
  if (problem_.gates == GateDraw::weak) return static_cast<float>(-2e-4 * uniform);
  switch (problem_.kind_of_gate(problem_.share.gate == GateKind::scalar ? head : channel)) {
    case 0: return static_cast<float>(-(0.5 + uniform) / static_cast<double>(problem_.real_tokens()));
    case 1: return static_cast<float>(-(0.5 + 0.5 * uniform) * strongest_mixed_gate(problem_.share.chunk));
    default: return of_layer();
  }
}

class LayerInputValues::Rows {
 public:
  Rows(const LayerInputValues& inputs, const std::string& name)
      : inputs_(inputs),
        width_(inputs.problem_.width(name)),
        heads_(inputs.problem_.heads(name)),
        tensor_(key_of(inputs.problem_.seed, number_of(name == "b" ? "a" : name))),
        rates_(key_of(inputs.problem_.seed, number_of("b"))),
        is_narrow_(inputs.problem_.dtype == Dtype::bf16),
        is_gate_(name == "g"),
        is_strength_(name == "beta"),
        is_erasing_(name == "b"),
        is_row_(name == "q" || name == "k"),
        is_unit_(has_matrices(inputs.problem_.rule) && (is_row_ || name == "a" || is_erasing_)),
        is_closed_at_starts_(is_gate_ && inputs.problem_.has_closed_gates),
        is_often_sparse_(is_unit_ && name != "q" && inputs.problem_.gates == GateDraw::mixed),
        is_scaled_(is_unit_ && !(is_row_ && inputs.problem_.share.conv > 0)),
        weight_scale_(name == "conv_w" ? 1 / std::sqrt(static_cast<float>(inputs.problem_.share.conv)) : 1) {}

  std::int64_t width() const { return width_; }
  std::int64_t heads() const { return heads_; }

  template <class Number>
  void fill(std::int64_t position, std::int64_t head, Number* row) const {
    if (inputs_.problem_.is_padding(position)) {
      std::fill(row, row + width_, Number{0});
      return;
    }
    if (is_closed_at_starts_ && inputs_.is_first(position)) {
      std::fill(row, row + width_, closed_gate);
      return;
    }
    const auto place = static_cast<std::uint64_t>(position * heads_ + head);
    const std::uint64_t key = key_of(tensor_, place);
    std::uint64_t bits = 0;  // four values from one hash
    for (std::int64_t c = 0; c < width_; ++c, bits >>= drawn_bits) {
      if (c % 4 == 0) bits = mixed(key + static_cast<std::uint64_t>(c));
      row[c] = value(head, c, static_cast<std::uint16_t>(bits));
    }
    if (is_unit_) make_unit(row, is_often_sparse_ && !is_dense(key));
    if (is_erasing_) make_erasing(row, key_of(rates_, place));
    for (std::int64_t c = 0; c < width_ && is_narrow_; ++c)
      row[c] = from_bf16(to_bf16(static_cast<float>(row[c])));
  }

 private:
  float value(std::int64_t head, std::int64_t channel, std::uint16_t drawn) const {
    if (is_gate_) return inputs_.gate(head, channel, drawn);
    const float normal = weight_scale_ * normal_values()[drawn];
    return is_strength_ ? std::exp(log_sigmoid(normal)) : normal;
  }

  /// Scales a row to length one, a sparse one without the channels that keep a state. What a
  /// convolution comes before keeps its length.
  template <class Number>
  void make_unit(Number* row, bool is_sparse) const {
    double squares = 0;
    for (std::int64_t c = 0; c < width_; ++c) {
      if (is_sparse && inputs_.problem_.kind_of_gate(c) == 0) row[c] = 0;
      squares += static_cast<double>(row[c]) * row[c];
    }
    const double length = std::sqrt(squares);
    for (std::int64_t c = 0; c < width_ && length > 0 && is_scaled_; ++c)
      row[c] = static_cast<float>(row[c] / length);
  }

  /// Turns a row of the input a into that of the input b.
  template <class Number>
  void make_erasing(Number* row, std::uint64_t key) const {
    std::uint64_t bits = 0;
    for (std::int64_t c = 0; c < width_; ++c, bits >>= drawn_bits) {
      if (c % 4 == 0) bits = mixed(key + static_cast<std::uint64_t>(c));
      row[c] *= -std::exp(log_sigmoid(normal_values()[static_cast<std::uint16_t>(bits)]));
    }
  }

  /// True for about 2 d_k keys of a sequence.
  bool is_dense(std::uint64_t key) const {
    const auto tokens = static_cast<double>(inputs_.problem_.real_tokens());
    const double uniform = static_cast<double>(mixed(~key)) / 0x1p64;
    return uniform * tokens < 2 * static_cast<double>(inputs_.problem_.share.d_k);
  }

  const LayerInputValues& inputs_;
  std::int64_t width_, heads_;
  std::uint64_t tensor_, rates_;
  bool is_narrow_, is_gate_, is_strength_;
  bool is_erasing_;  // b of a low-rank rule
  bool is_row_;      // q and k
  bool is_unit_;     // q, k, a and b of a rule with matrices
  bool is_closed_at_starts_;
  bool is_often_sparse_;  // zero, for most tokens, in the channels that keep a state
  bool is_scaled_;        // to length one
  float weight_scale_;    // of a convolution's weights
};

void LayerInputValues::fill(const std::string& name, const Positions& positions, std::int64_t first,
                            std::span<float> rows) const {
  const Rows source(*this, name);
  float* row = rows.data();
  for (std::int64_t t = first; row < rows.data() + rows.size(); ++t)
    for (std::int64_t head = 0; head < source.heads(); ++head, row += source.width())
      source.fill(positions.at(t), head, row);
}

std::vector<double> LayerInputValues::of_head(const std::string& name, std::int64_t head, std::int64_t first,
                                              std::int64_t tokens) const {
  const Rows source(*this, name);
  std::vector<double> rows(tokens * source.width());
  for (std::int64_t t = 0; t < tokens; ++t) source.fill(first + t, head, rows.data() + t * source.width());
  return rows;
}

}  // namespace baton
