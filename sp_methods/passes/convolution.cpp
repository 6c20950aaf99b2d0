// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/passes/convolution.hpp"

#include <utility>

#include "sp_methods/passes/grouped_heads.hpp"
#include "sp_methods/passes/ring.hpp"

namespace baton {
namespace {

constexpr Slice LayerTensors::*gradients[]{&LayerTensors::dq, &LayerTensors::dk, &LayerTensors::dv};

/// The tensors that a convolution makes, in the order of its weights.
std::vector<const TensorKind*> convolved_tensors() {
  return {find_tensor("q"), find_tensor("k"), find_tensor("v")};
}

/// Elements of a token in q, k and v.
std::int64_t row_of(const LayerShape& share) {
  std::int64_t row = 0;
  for (const TensorKind* kind : convolved_tensors()) row += kind->heads(share) * kind->width(share);
  return row;
}

/// One tensor's weights in `all`, whose `channels` follow `before` others in this rank's share. A
/// rank that has some heads has its part of the weights of each tensor.
Slice own_weights(const Schedule& s, const LayerShape& share, const Slice& all, std::int64_t before,
                  std::int64_t channels) {
  if (all.empty()) return all;
  const std::int64_t parts = all.count * share.batch / (row_of(share) * share.conv_weights());
  const std::int64_t part = parts > 1 ? s.rank() : 0;
  return all.part((parts * before + part * channels) * share.conv_weights(), channels * share.conv_weights());
}

/// The tensor's rows of a rank.
ConvShape shape_of(const TensorKind& kind, const Layer& layer) {
  return {.heads = kind.heads(layer.share),
          .width = kind.width(layer.share),
          .taps = layer.share.conv,
          .batch = layer.share.batch,
          .has_unit_rows = layer.rule == Rule::delta && kind.name != "v",
          .has_bias = layer.share.conv_bias,
          .dtype = layer.dtype};
}

}  // namespace

TensorConvolution::TensorConvolution(Schedule& schedule, const Layer& layer, const TensorKind& kind,
                                     const Slice& x, const Slice& w, const Cut& cut, std::int64_t rank)
    : schedule_(schedule),
      layer_(layer),
      x_(x),
      y_(schedule.scratch("conv_rows", x.count, layer.dtype)),
      w_(w),
      row_(kind.heads(layer.share) * kind.width(layer.share)),
      runs_(cut.runs()) {
  const ConvShape shape = shape_of(kind, layer);
  const std::int64_t halo_elements = shape.before() * row_;
  Slice halos;
  if (runs_.size() > 1 && halo_elements > 0)  // a lone run has nothing before it
    halos = saved_for_backward(schedule_, layer_, std::string(halo_prefix) + std::string(kind.name),
                               cut.pieces() * halo_elements, layer_.dtype);
  for (int i = 0; i < cut.pieces(); ++i) {
    Piece piece{shape, i == 0 ? 0 : cut.piece(rank, 0), cut.place(rank, i)};
    piece.shape.tokens = cut.piece(rank, i);
    for (const std::int64_t start : layer_.starts)
      if (const std::int64_t t = start - cut.positions(rank).at(piece.first);
          - shape.before() < t && t < piece.shape.tokens)
        piece.shape.starts.push_back(t);
    if (!halos.empty() && !halo(runs_, piece.place, shape.before()).empty())
      piece.halo = halos.part(i * halo_elements, halo_elements);
    if (piece.shape.tokens > 0) pieces_.push_back(std::move(piece));
  }
}

/// Rows [first, first + count) of `all`.
Slice TensorConvolution::rows(const Slice& all, std::int64_t first, std::int64_t count) const {
  return all.part(first * row_, count * row_);
}

/// The parts of all halos, in the order of the sequence, in which all ranks exchange them.
std::vector<TensorConvolution::Part> TensorConvolution::parts() const {
  const std::int64_t before = layer_.share.conv - 1;
  std::vector<Part> all;
  for (std::size_t place = 0; place < runs_.size(); ++place) {
    if (runs_[place].count == 0) continue;
    const std::vector<Run> runs = halo(runs_, place, before);
    std::int64_t offset = before;
    for (const Run& run : runs) offset -= run.count;
    for (const Run& run : runs) {
      all.push_back({run, static_cast<std::int64_t>(place), offset});
      offset += run.count;
    }
  }
  return all;
}

TensorConvolution::Piece& TensorConvolution::piece_at(std::int64_t place) {
  return *std::find_if(pieces_.begin(), pieces_.end(), [&](const Piece& one) { return one.place == place; });
}

/// The run of this rank that has the tokens `own`.
TensorConvolution::Piece& TensorConvolution::piece_of(const Run& own) {
  return pieces_.size() > 1 && own.first >= pieces_.back().first ? pieces_.back() : pieces_.front();
}

/// Records this rank's part in a message, or a copy if it has both ends.
void TensorConvolution::move(const Slice& into, std::int64_t to, const Slice& leaves, std::int64_t from) {
  if (is_own(from) && is_own(to)) return schedule_.copy(into, leaves);
  if (is_own(from)) schedule_.send(static_cast<int>(to), leaves);
  if (is_own(to)) schedule_.recv(into, static_cast<int>(from));
}

void TensorConvolution::exchange_rows() {
  for (const auto& [run, place, offset] : parts()) {
    const std::int64_t to = runs_[place].rank;
    const Slice into = is_own(to) ? rows(piece_at(place).halo, offset, run.count) : Slice{};
    move(into, to, is_own(run.rank) ? rows(x_, run.first, run.count) : Slice{}, run.rank);
  }
}

ConvInputs<Recorded> TensorConvolution::inputs(const Piece& piece, bool with_halo) const {
  return {.x = rows(x_, piece.first, piece.shape.tokens), .halo = with_halo ? piece.halo : Slice{}, .w = w_};
}

void TensorConvolution::record_rows(bool at_edge) {
  for (const Piece& piece : pieces_) {
    const std::int64_t edge = piece.behind();
    const std::int64_t first = at_edge ? 0 : edge, count = at_edge ? edge : piece.shape.tokens - edge;
    if (count == 0) continue;
    record<Conv>(schedule_, piece.shape.rows(first, count),
                 {.in = inputs(piece, at_edge), .y = rows(y_, piece.first + first, count)});
  }
}

/// Records dz of some rows of a piece.
void TensorConvolution::record_activation_gradients(Piece& piece, const Slice& dy, std::int64_t first,
                                                    std::int64_t count) {
  if (count == 0) return;
  record<ConvActivationGradients>(schedule_, piece.shape.rows(first, count),
                                  {.in = inputs(piece, first == 0),
                                   .dy = rows(dy, piece.first + first, count),
                                   .dz = rows(piece.dz, first, count)});
}

void TensorConvolution::record_edge_gradients(const Slice& dy) {
  for (Piece& piece : pieces_) {
    piece.dz = schedule_.scratch("conv_dz", piece.shape.tokens * row_);
    if (piece.halo.empty()) continue;
    const std::int64_t before = piece.shape.before();
    record_activation_gradients(piece, dy, 0, piece.edge());
    piece.back = schedule_.scratch("conv_back", before * row_);
    record<ConvInputGradients>(
        schedule_, piece.shape.rows(-before, before),
        {.dz = rows(piece.dz, 0, piece.edge()), .w = w_, .later = {}, .dx = {}, .back = piece.back});
  }
}

void TensorConvolution::exchange_gradients() {
  for (const auto& [run, place, offset] : parts()) {
    const std::int64_t from = runs_[place].rank;
    const Slice leaves = is_own(from) ? rows(piece_at(place).back, offset, run.count) : Slice{};
    Slice came;
    if (is_own(run.rank)) came = schedule_.scratch("conv_came_back", run.count * row_);
    move(came, run.rank, leaves, from);
    if (!is_own(run.rank)) continue;
    Piece& piece = piece_of(run);
    if (piece.later.empty())  // the next run has all rows that any has
      piece.later = came;
    else
      add(schedule_,
          rows(piece.later, run.first - piece.first - piece.shape.tokens + piece.edge(), run.count), came);
  }
}

void TensorConvolution::record_gradients(const Slice& dx, const Slice& dy, const Slice& dw) {
  for (Piece& piece : pieces_) {
    const std::int64_t tokens = piece.shape.tokens, alone = tokens - (piece.later.empty() ? 0 : piece.edge());
    record_activation_gradients(piece, dy, piece.behind(), tokens - piece.behind());
    const auto [x, halo, w] = inputs(piece, true);
    record<ConvWeightGradients>(schedule_, piece.shape.rows(0, tokens),
                                {.x = x, .halo = halo, .dz = piece.dz, .dw = dw});
    const auto record_rows = [&](std::int64_t first, std::int64_t count, const Slice& later) {
      if (count == 0) return;
      record<ConvInputGradients>(
          schedule_, piece.shape.rows(first, count),
          {.dz = piece.dz, .w = w_, .later = later, .dx = rows(dx, piece.first + first, count), .back = {}});
    };
    record_rows(0, alone, {});
    record_rows(alone, tokens - alone, piece.later);
  }
}

Convolution::Convolution(Schedule& schedule, const Layer& layer, const LayerTensors& x, Layout layout,
                         bool is_whole)
    : schedule_(schedule), layer_(layer) {
  const int ranks = is_whole ? 1 : schedule.ranks(), rank = is_whole ? 0 : schedule.rank();
  const Cut cut = is_whole ? Cut{.tokens = layer.share.tokens} : cut_of(layer, layout, ranks);
  std::int64_t before = 0;
  for (const TensorKind* kind : convolved_tensors()) {
    const std::int64_t channels = kind->heads(layer.share) * kind->width(layer.share) / layer.share.batch;
    const auto weights = [&](const Slice& all) {
      return own_weights(schedule, layer.share, all, before, channels);
    };
    tensors_.emplace_back(schedule, layer, *kind, x.*kind->slice, weights(x.conv_w), cut, rank);
    dw_.push_back(weights(x.dconv_w));
    before += channels;
  }
  if (layer.pass != Pass::backward) {
    for (TensorConvolution& one : tensors_) one.exchange_rows();
    wait_if_exposed(schedule, layer);
  }
  for (const bool at_edge : {false, true})
    for (TensorConvolution& one : tensors_) one.record_rows(at_edge);
}

LayerTensors Convolution::inside(const LayerTensors& x) {
  LayerTensors inner = x;
  inner.q = tensors_[0].y(), inner.k = tensors_[1].y(), inner.v = tensors_[2].y();
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Slice& dx = x.*gradients[i];
    if (dy_[i].empty() && !dx.empty()) dy_[i] = schedule_.scratch("conv_gradients", dx.count, layer_.dtype);
    inner.*gradients[i] = dy_[i];
  }
  return inner;
}

void Convolution::record_backward(const LayerTensors& x) {
  fill(schedule_, x.dconv_w, 0.0F);
  for (std::size_t i = 0; i < tensors_.size(); ++i) tensors_[i].record_edge_gradients(dy_[i]);
  for (TensorConvolution& one : tensors_) one.exchange_gradients();
  wait_if_exposed(schedule_, layer_);
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    tensors_[i].record_gradients(x.*gradients[i], dy_[i], dw_[i]);
}

Convolution::Build convolved(Convolution::Build build, Layout layout, Sequence sequence) {
  return [build = grouped(std::move(build), layout), layout, sequence](Schedule& s, const Layer& layer,
                                                                       const LayerTensors& x) {
    if (layer.share.conv == 0) return build(s, layer, x);
    Layer own = layer;
    if (sequence == Sequence::whole) own.share.tokens = s.rank() == 0 ? s.ranks() * layer.share.tokens : 0;
    const bool is_whole = sequence != Sequence::cut || layer.mode == Mode::compute_only;
    if (is_whole && sequence != Sequence::whole)  // starts are those of all ranks
      for (std::int64_t& start : own.starts)
        start -= cut_of(layer, Layout::contiguous, s.ranks()).positions(s.rank()).first;
    Convolution convolution(s, own, x, layout, is_whole);
    build(s, layer, convolution.inside(x));
    if (layer.pass != Pass::forward) convolution.record_backward(x);
  };
}

std::vector<std::int64_t> convolution_bytes(const Layer& layer, int ranks, Layout layout) {
  std::vector<std::int64_t> sent(ranks, 0);
  if (layer.share.conv == 0 || layer.mode == Mode::compute_only) return sent;
  const std::vector<Run> runs = cut_of(layer, layout, ranks).runs();
  const std::int64_t row = row_of(layer.share);
  for (std::size_t place = 0; place < runs.size(); ++place)
    for (const Run& run : halo(runs, place, layer.share.conv - 1)) {
      if (run.rank == runs[place].rank || runs[place].count == 0) continue;
      if (layer.pass != Pass::backward) sent[run.rank] += run.count * row * bytes_of(layer.dtype);
      if (layer.pass != Pass::forward) sent[runs[place].rank] += run.count * row * bytes_of(Dtype::f32);
    }
  return sent;
}

bool lacks_halos(const Layer& layer, int ranks, Layout layout) {
  return layer.share.conv > 1 && cut_of(layer, layout, ranks).has_empty_piece();
}

}  // namespace baton
