// SPDX-License-Identifier: Apache-2.0
// Segments on the host: each is a short share of its own, whose chunkwise kernels do the work.
#include "sp_methods/kernels/gla_segments.hpp"

#include <Eigen/Core>
#include <cmath>
#include <vector>

namespace baton {
namespace {

using Matrix = Eigen::Map<Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
using ConstMatrix = Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
using Vector = Eigen::Map<Eigen::VectorXf>;
using ConstVector = Eigen::Map<const Eigen::VectorXf>;

/// One segment: a share of the tokens, pointers to its first token, and room for its chunks'
/// states.
class Segment {
 public:
  /// Makes segment number `place` of the rank, counted from the left.
  Segment(const Segments& cut, std::int64_t place)
      : cut_(cut), first_chunk_(edge(place)), chunks_(edge(place + 1) - first_chunk_), shape_(cut.shape) {
    const std::int64_t first = first_chunk_ * cut.shape.chunk;
    shape_.tokens = std::min(cut.shape.tokens - first, chunks_ * cut.shape.chunk);
    row_ = first * cut.shape.heads;
    const std::int64_t heads = cut.work.heads(cut.shape);
    states_.resize(heads * chunks_ * state());
    decays_.resize(heads * chunks_ * cut.shape.d_k);
    map_decay_.resize(heads * cut.shape.d_k);
    map_state_.resize(heads * state());
  }

  std::int64_t first_chunk() const { return first_chunk_; }
  std::int64_t chunks() const { return chunks_; }

  template <class Element>
  Element* at(Element* tensor, std::int64_t width) const {
    return tensor == nullptr ? nullptr : tensor + row_ * width;
  }
  GlaInputs at(const GlaInputs& x) const {
    return {at(x.q, shape_.d_k), at(x.k, shape_.d_k), at(x.v, shape_.d_v), at(x.g, shape_.gate_width())};
  }
  GlaGradients at(const GlaGradients& x) const {
    return {at(x.dq, shape_.d_k), at(x.dk, shape_.d_k), at(x.dv, shape_.d_v), at(x.dg, shape_.gate_width())};
  }

  Chunks parameters() const { return {shape_, cut_.work}; }

  /// Runs chunk_states or chunk_state_gradients on the segment from zero; `x` has the inputs.
  template <class Contract>
  void walk(typename Contract::template Operands<OnHost> x) {
    x.states = states_.data();
    x.decays = decays_.data();
    x.map_decay = map_decay_.data();
    x.map_state = map_state_.data();
    Contract::on_host(x, parameters());
  }
  /// The states at the edges of the segment's chunks for an incoming state [heads, d_k, d_v].
  ChunkEdges<OnHost> edges(const std::vector<float>& incoming) const {
    return {states_.data(), decays_.data(), incoming.data()};
  }

  ConstVector map_decay(std::int64_t h) const { return {map_decay_.data() + h * shape_.d_k, shape_.d_k}; }
  ConstMatrix map_state(std::int64_t h) const {
    return {map_state_.data() + h * state(), shape_.d_k, shape_.d_v};
  }

 private:
  std::int64_t edge(std::int64_t place) const { return cut_.shape.chunks() * place / cut_.count; }
  std::int64_t state() const { return cut_.shape.d_k * cut_.shape.d_v; }

  const Segments& cut_;
  std::int64_t first_chunk_, chunks_, row_ = 0;
  LayerShape shape_;
  std::vector<float> states_, decays_, map_decay_, map_state_;
};

/// The true states [heads, d_k, d_v] of all heads at edge `e`.
std::vector<float> true_edge(const SegmentEdges<OnHost>& edges, const Segments& cut, std::int64_t e) {
  const std::int64_t d_k = cut.shape.d_k, d_v = cut.shape.d_v;
  std::vector<float> all(cut.work.heads(cut.shape) * d_k * d_v);
  for (std::int64_t h = 0; h < cut.work.heads(cut.shape); ++h) {
    const std::int64_t number = h * (cut.count + 1) + e;
    Matrix state(all.data() + h * d_k * d_v, d_k, d_v);
    state.setZero();
    if (edges.states != nullptr) state = ConstMatrix(edges.states + number * d_k * d_v, d_k, d_v);
    if (edges.incoming == nullptr) continue;
    const Eigen::VectorXf decay = ConstVector(edges.gates + number * d_k, d_k).array().exp();
    state += decay.asDiagonal() * ConstMatrix(edges.incoming + h * d_k * d_v, d_k, d_v);
  }
  return all;
}

/// Stores the map of a segment as number `e` in the order of the pass.
template <class Out>
void keep_map(const Out& out, const Segment& segment, const Segments& cut, std::int64_t e) {
  const std::int64_t d_k = cut.shape.d_k, d_v = cut.shape.d_v;
  for (std::int64_t h = 0; h < cut.work.heads(cut.shape); ++h) {
    Matrix(out.states + (h * (cut.count + 1) + e) * d_k * d_v, d_k, d_v) = segment.map_state(h);
    Vector(out.totals + (h * cut.count + e) * d_k, d_k) = segment.map_decay(h).array().log();
  }
}

}  // namespace

void SegmentStates::on_host(const Operands<OnHost>& x, const Segments& cut) {
  for (std::int64_t e = 0; e < cut.count; ++e) {
    Segment segment(cut, e);
    segment.walk<ChunkStates>({.in = segment.at(x.in)});
    keep_map(x, segment, cut, e);
  }
}

void SegmentStateGradients::on_host(const Operands<OnHost>& x, const Segments& cut) {
  for (std::int64_t e = 0; e < cut.count; ++e) {
    Segment segment(cut, cut.count - 1 - e);
    segment.walk<ChunkStateGradients>({.in = segment.at(x.in), .d_o = segment.at(x.d_o, cut.shape.d_v)});
    keep_map(x, segment, cut, e);
  }
}

void ScanSegments::on_host(const Operands<OnHost>& x, const Segments& cut) {
  const std::int64_t d_k = cut.shape.d_k, d_v = cut.shape.d_v;
  for (std::int64_t h = 0; h < cut.work.heads(cut.shape); ++h) {
    Eigen::MatrixXf state = Eigen::MatrixXf::Zero(d_k, d_v);
    Eigen::VectorXf gate = Eigen::VectorXf::Zero(d_k);
    for (std::int64_t e = 0; e <= cut.count; ++e) {
      const std::int64_t number = h * (cut.count + 1) + e;
      Matrix edge(x.states + number * d_k * d_v, d_k, d_v);
      const Eigen::MatrixXf own = edge;
      edge = state;
      Vector(x.gates + number * d_k, d_k) = gate;
      if (e == cut.count) break;
      const ConstVector total(x.totals + (h * cut.count + e) * d_k, d_k);
      const Eigen::VectorXf decay = total.array().exp();
      state = decay.asDiagonal() * state + own;
      gate += total;
    }
    Vector(x.map_decay + h * d_k, d_k) = gate.array().exp();
    Matrix(x.map_state + h * d_k * d_v, d_k, d_v) = state;
  }
}

void SegmentOutput::on_host(const Operands<OnHost>& x, const Segments& cut) {
  for (std::int64_t e = 0; e < cut.count; ++e) {
    Segment segment(cut, e);
    const GlaInputs in = segment.at(x.in);
    float* const o = segment.at(x.o, cut.shape.d_v);
    const auto incoming = true_edge(x.before, cut, e);
    segment.walk<ChunkStates>({.in = in});
    IntraOutput::on_host({.in = in, .o = o}, segment.parameters());
    InterOutput::on_host({.in = in, .before = segment.edges(incoming), .o = o}, segment.parameters());
  }
}

void ChunkStarts::on_host(const Operands<OnHost>& x, const Segments& cut) {
  const std::int64_t d_k = cut.shape.d_k, d_v = cut.shape.d_v;
  for (std::int64_t e = 0; e < cut.count; ++e) {
    Segment segment(cut, e);
    const auto before = true_edge(x.before, cut, e);
    segment.walk<ChunkStates>({.in = segment.at(x.in)});
    if (x.states != nullptr) keep_map(x, segment, cut, e);
    const ChunkEdges<OnHost> edges = segment.edges(before);
    for (std::int64_t h = 0; h < cut.work.heads(cut.shape); ++h)
      for (std::int64_t n = 0; n < segment.chunks(); ++n) {
        const std::int64_t from = h * segment.chunks() + n;
        const std::int64_t into = h * cut.shape.chunks() + segment.first_chunk() + n;
        const ConstVector decays(edges.decays + from * d_k, d_k);
        if (x.decays != nullptr) Vector(x.decays + into * d_k, d_k) = decays;
        Matrix(x.starts + into * d_k * d_v, d_k, d_v) =
            ConstMatrix(edges.states + from * d_k * d_v, d_k, d_v) +
            decays.asDiagonal() * ConstMatrix(before.data() + h * d_k * d_v, d_k, d_v);
      }
  }
}

void SegmentStarts::on_host(const Operands<OnHost>& x, const Segments& cut) {
  const std::int64_t d_k = cut.shape.d_k, d_v = cut.shape.d_v;
  for (std::int64_t h = 0; h < cut.work.heads(cut.shape); ++h) {
    Eigen::MatrixXf state = Eigen::MatrixXf::Zero(d_k, d_v);
    if (x.incoming != nullptr) state = ConstMatrix(x.incoming + h * d_k * d_v, d_k, d_v);
    for (std::int64_t e = 0; e < cut.count; ++e) {
      const std::int64_t number = h * cut.count + e;
      Matrix(x.starts + number * d_k * d_v, d_k, d_v) = state;
      const Eigen::VectorXf decay = ConstVector(x.totals + number * d_k, d_k).array().exp();
      state = decay.asDiagonal() * state + ConstMatrix(x.states + (number + h) * d_k * d_v, d_k, d_v);
    }
  }
}

namespace {

/// The states before the chunks of one segment, as segment_gradients reads them.
struct SegmentBefore {
  std::vector<float> starts, decays, incoming;

  SegmentBefore(const ChunkStartsInSegments<OnHost>& x, const Segment& segment, const Segments& cut,
                std::int64_t place) {
    const std::int64_t d_k = cut.shape.d_k, state = d_k * cut.shape.d_v;
    const auto add = [](std::vector<float>& to, const float* from, std::int64_t count) {
      if (from == nullptr) return to.resize(to.size() + count, 0.0F);
      to.insert(to.end(), from, from + count);
    };
    for (std::int64_t h = 0; h < cut.work.heads(cut.shape); ++h) {
      const std::int64_t first = h * cut.shape.chunks() + segment.first_chunk();
      const bool is_true = x.segments == nullptr;
      add(starts, x.chunks + first * state, segment.chunks() * state);
      add(decays, is_true ? nullptr : x.decays + first * d_k, segment.chunks() * d_k);
      add(incoming, is_true ? nullptr : x.segments + (h * cut.count + place) * state, state);
    }
  }
};

}  // namespace

void SegmentGradients::on_host(const Operands<OnHost>& x, const Segments& cut) {
  for (std::int64_t e = 0; e < cut.count; ++e) {
    Segment segment(cut, cut.count - 1 - e);
    const GlaInputs in = segment.at(x.in);
    const float* const d_o = segment.at(x.d_o, cut.shape.d_v);
    const SegmentBefore before(x.before, segment, cut, cut.count - 1 - e);
    const auto suffix = true_edge(x.after, cut, e);
    const GlaGradients out = segment.at(x.out);
    segment.walk<ChunkStateGradients>({.in = in, .d_o = d_o});
    IntraGradients::on_host({.in = in, .d_o = d_o, .out = out}, segment.parameters());
    InterGradients::on_host({.in = in,
                             .d_o = d_o,
                             .before = {before.starts.data(), before.decays.data(), before.incoming.data()},
                             .after = segment.edges(suffix),
                             .out = out},
                            segment.parameters());
  }
}

}  // namespace baton
