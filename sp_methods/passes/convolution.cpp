// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/passes/convolution.hpp"

#include <algorithm>
#include <utility>

#include "sp_methods/passes/ring.hpp"

namespace baton {
namespace {

constexpr Slice LayerTensors::*inputs_of_layer[]{&LayerTensors::q, &LayerTensors::k, &LayerTensors::v};
constexpr Slice LayerTensors::*gradients_of_layer[]{&LayerTensors::dq, &LayerTensors::dk, &LayerTensors::dv};

/// Elements of a token in q, k and v.
std::int64_t row_of(const LayerShape& share) { return share.heads * (2 * share.d_k + share.d_v); }

ConvIn<Recorded, Tensor> read(const auto& rows) { return {rows.q, rows.k, rows.v}; }
ConvIn<Recorded, State> read_sums(const auto& rows) { return {rows.q, rows.k, rows.v}; }
ConvOut<Recorded, Tensor> written(const auto& rows) { return {rows.q, rows.k, rows.v}; }
ConvOut<Recorded, State> written_sums(const auto& rows) { return {rows.q, rows.k, rows.v}; }

}  // namespace

Convolution::Convolution(Schedule& schedule, const Layer& layer, const LayerTensors& x, Layout layout,
                         bool is_whole)
    : schedule_(schedule),
      layer_(layer),
      row_(row_of(layer.share)),
      weights_(own_weights(x.conv_w)),
      dw_(own_weights(x.dconv_w)) {
  make_pieces(layout, is_whole);
  for (Slice LayerTensors::*tensor : inputs_of_layer)
    y_.*tensor = schedule.scratch("conv_rows", (x.*tensor).count, layer.dtype);
  if (layer.pass != Pass::backward) exchange_rows(x);
  record_rows(x);
}

void Convolution::make_pieces(Layout layout, bool is_whole) {
  const int ranks = is_whole ? 1 : schedule_.ranks(), rank = is_whole ? 0 : schedule_.rank();
  const Cut cut{is_whole ? Layout::contiguous : layout, ranks, layer_.share.tokens};
  const Positions at = cut.positions(rank);
  const std::int64_t rows = layer_.share.conv - 1, halo_elements = rows * row_;
  runs_ = cut.runs();
  Slice halos;
  if (runs_.size() > 1 && rows > 0)  // a lone run has nothing before it
    halos = saved_for_backward(schedule_, layer_, "conv_halo", cut.pieces() * halo_elements, layer_.dtype);
  for (int i = 0; i < cut.pieces(); ++i) {
    Piece piece{.shape = {.share = layer_.share, .dtype = layer_.dtype}};
    piece.shape.share.tokens = cut.piece(i);
    piece.shape.has_unit_rows = layer_.rule == Rule::delta;
    piece.first = i == 0 ? 0 : cut.piece(0);
    piece.place = cut.place(rank, i);
    for (const std::int64_t start : layer_.starts)
      if (const std::int64_t t = start - at.at(piece.first); - rows < t && t < piece.tokens())
        piece.shape.starts.push_back(t);
    piece.shape.later = piece.tokens() - piece.edge();
    if (!halos.empty() && !halo(runs_, piece.place, rows).empty())
      piece.halo = halos.part(i * halo_elements, halo_elements);
    if (piece.tokens() > 0) pieces_.push_back(std::move(piece));
  }
}

Slice Convolution::own_weights(const Slice& weights) const {
  const std::int64_t own = row_ / layer_.share.batch * layer_.share.conv;
  return weights.count == own || weights.empty() ? weights : weights.part(schedule_.rank() * own, own);
}

/// Rows [first, first + count) of `rows` ones that lie in memory of three tensors.
Convolution::Rows Convolution::part_of(const Rows& all, std::int64_t rows, std::int64_t first,
                                       std::int64_t count) const {
  const auto part = [&](const Slice& slice) {
    const std::int64_t row = rows == 0 ? 0 : slice.count / rows;
    return slice.part(first * row, count * row);
  };
  return {part(all.q), part(all.k), part(all.v)};
}

Convolution::Rows Convolution::rows_of(const LayerTensors& x, const Piece& piece, std::int64_t first,
                                       std::int64_t count) const {
  return part_of({x.q, x.k, x.v}, layer_.share.tokens, piece.first + first, count);
}

Convolution::Rows Convolution::gradients_of(const LayerTensors& x, const Piece& piece, std::int64_t first,
                                            std::int64_t count) const {
  return part_of({x.dq, x.dk, x.dv}, layer_.share.tokens, piece.first + first, count);
}

/// Rows [first, first + count) of packed ones, which lie as those of q, of k and of v.
Convolution::Rows Convolution::in_order(const Slice& packed, std::int64_t first, std::int64_t count) const {
  const std::int64_t rows = packed.count / row_, d_k = layer_.share.heads * layer_.share.d_k;
  const Rows all{packed.part(0, rows * d_k), packed.part(rows * d_k, rows * d_k),
                 packed.part(2 * rows * d_k, packed.count - 2 * rows * d_k)};
  return part_of(all, rows, first, count);
}

void Convolution::copy(const Rows& into, const Rows& from) {
  schedule_.copy(into.q, from.q);
  schedule_.copy(into.k, from.k);
  schedule_.copy(into.v, from.v);
}

/// The parts of all halos, in the order of the sequence, in which all ranks exchange them.
std::vector<Convolution::Part> Convolution::parts() const {
  const std::int64_t rows = layer_.share.conv - 1;
  std::vector<Part> all;
  for (std::size_t place = 0; place < runs_.size(); ++place) {
    if (runs_[place].count == 0) continue;
    const std::vector<Run> runs = halo(runs_, place, rows);
    std::int64_t offset = rows;
    for (const Run& run : runs) offset -= run.count;
    for (const Run& run : runs) {
      all.push_back({run, static_cast<std::int64_t>(place), offset});
      offset += run.count;
    }
  }
  return all;
}

Convolution::Piece& Convolution::piece_at(std::int64_t place) {
  return *std::find_if(pieces_.begin(), pieces_.end(), [&](const Piece& one) { return one.place == place; });
}

/// The run of this rank that has the tokens `own`.
Convolution::Piece& Convolution::piece_of(const Run& own) {
  return pieces_.size() > 1 && own.first >= pieces_.back().first ? pieces_.back() : pieces_.front();
}

void Convolution::exchange_rows(const LayerTensors& x) {
  const std::int64_t rows = layer_.share.conv - 1;
  for (const Part& part : parts()) {
    const auto& [run, place, offset] = part;
    const std::int64_t to = runs_[place].rank;
    Rows own;
    if (is_own(run.rank)) own = part_of({x.q, x.k, x.v}, layer_.share.tokens, run.first, run.count);
    if (is_own(run.rank) && is_own(to)) {
      copy(in_order(piece_at(place).halo, offset, run.count), own);
    } else if (is_own(run.rank)) {
      const Slice leaves = schedule_.scratch("conv_leaves", run.count * row_, layer_.dtype);
      copy(in_order(leaves, 0, run.count), own);
      schedule_.send(static_cast<int>(to), leaves);
    } else if (is_own(to)) {
      const Slice& halo = piece_at(place).halo;
      const bool is_all = run.count == rows;
      const Slice came = is_all ? halo : schedule_.scratch("conv_came", run.count * row_, layer_.dtype);
      schedule_.recv(came, static_cast<int>(run.rank));
      if (!is_all) copy(in_order(halo, offset, run.count), in_order(came, 0, run.count));
    }
  }
  wait_if_exposed(schedule_, layer_);
}

ConvInputs<Recorded> Convolution::inputs(const LayerTensors& x, const Piece& piece, bool with_halo) const {
  ConvInputs<Recorded> in{.x = read(rows_of(x, piece, 0, piece.tokens())), .halo = {}, .w = weights_};
  if (with_halo && !piece.halo.empty()) in.halo = read(in_order(piece.halo, 0, piece.shape.before()));
  return in;
}

/// Records y of the rows that need no halo, then of the others.
void Convolution::record_rows(const LayerTensors& x) {
  for (const bool at_edge : {false, true})
    for (const Piece& piece : pieces_) {
      const std::int64_t edge = piece.halo.empty() ? 0 : piece.edge();
      const std::int64_t first = at_edge ? 0 : edge, count = at_edge ? edge : piece.tokens() - edge;
      if (count == 0) continue;
      record<Conv>(schedule_, piece.shape.rows(first, count),
                   {.in = inputs(x, piece, at_edge), .y = written(rows_of(y_, piece, first, count))});
    }
}

LayerTensors Convolution::inside(const LayerTensors& x) {
  LayerTensors inner = x;
  for (Slice LayerTensors::*tensor : inputs_of_layer) inner.*tensor = y_.*tensor;
  for (Slice LayerTensors::*tensor : gradients_of_layer) {
    if ((y_.*tensor).empty() && !(x.*tensor).empty())
      y_.*tensor = schedule_.scratch("conv_gradients", (x.*tensor).count, layer_.dtype);
    inner.*tensor = y_.*tensor;
  }
  return inner;
}

/// Records dz of some rows of a piece.
void Convolution::record_activation_gradients(const LayerTensors& x, Piece& piece, std::int64_t first,
                                              std::int64_t count) {
  if (count == 0) return;
  record<ConvActivationGradients>(schedule_, piece.shape.rows(first, count),
                                  {.in = inputs(x, piece, first == 0),
                                   .dy = read(gradients_of(y_, piece, first, count)),
                                   .dz = written_sums(part_of(piece.dz, piece.tokens(), first, count))});
}

void Convolution::record_backward(const LayerTensors& x) {
  fill(schedule_, x.dconv_w, 0.0F);
  const std::int64_t rows = layer_.share.conv - 1;
  for (Piece& piece : pieces_) {
    piece.dz = in_order(schedule_.scratch("conv_dz", piece.tokens() * row_), 0, piece.tokens());
    if (piece.halo.empty()) continue;
    record_activation_gradients(x, piece, 0, piece.edge());
    piece.back = schedule_.scratch("conv_back", rows * row_);
    record<ConvHaloGradients>(schedule_, piece.shape.rows(0, piece.edge()),
                              {.dz = read_sums(part_of(piece.dz, piece.tokens(), 0, piece.edge())),
                               .w = weights_,
                               .dx = written_sums(in_order(piece.back, 0, rows))});
  }
  exchange_gradients();
  for (Piece& piece : pieces_) {
    const std::int64_t edge = piece.halo.empty() ? 0 : piece.edge(), tokens = piece.tokens();
    record_activation_gradients(x, piece, edge, tokens - edge);
    record<ConvWeightGradients>(schedule_, piece.shape.rows(0, tokens),
                                {.in = inputs(x, piece, true), .dz = read_sums(piece.dz), .dw = dw_});
    const std::int64_t alone = piece.later.empty() ? tokens : piece.shape.later;
    for (const auto& [first, count] : {std::pair{std::int64_t{0}, alone}, std::pair{alone, tokens - alone}}) {
      if (count == 0) continue;
      const Rows later = first == 0 && alone > 0 ? Rows{} : in_order(piece.later, 0, piece.edge());
      record<ConvInputGradients>(schedule_, piece.shape.rows(first, count),
                                 {.dz = read_sums(piece.dz),
                                  .w = weights_,
                                  .later = read_sums(later),
                                  .dx = written(gradients_of(x, piece, first, count))});
    }
  }
}

/// Sends the gradients of halos back, and adds those that come in the order of the sequence.
void Convolution::exchange_gradients() {
  for (const Part& part : parts()) {
    const auto& [run, place, offset] = part;
    const std::int64_t from = runs_[place].rank;
    const bool is_all = run.count == layer_.share.conv - 1;
    Slice packed;
    if (is_own(from)) {
      packed = piece_at(place).back;
      if (!is_all) {
        const Slice some = schedule_.scratch("conv_goes_back", run.count * row_);
        copy(in_order(some, 0, run.count), in_order(packed, offset, run.count));
        packed = some;
      }
      if (!is_own(run.rank)) schedule_.send(static_cast<int>(run.rank), packed);
    }
    if (!is_own(run.rank)) continue;
    Piece& piece = piece_of(run);
    const bool is_first = piece.later.empty();
    if (!is_own(from)) {
      packed = schedule_.scratch("conv_came_back", run.count * row_);
      schedule_.recv(packed, static_cast<int>(from));
    }
    if (is_first && is_all) {
      piece.later = packed;
      continue;
    }
    if (is_first) piece.later = schedule_.scratch("conv_later", piece.edge() * row_);
    add_to(piece, part, packed, is_first);
  }
  wait_if_exposed(schedule_, layer_);
}

/// Adds gradients of rows of a piece to those that other runs made of its last rows.
void Convolution::add_to(const Piece& piece, const Part& part, const Slice& packed, bool is_first) {
  if (is_first) fill(schedule_, piece.later, 0.0F);
  const std::int64_t first = part.from.first - piece.first - piece.shape.later;
  const Rows into = in_order(piece.later, first, part.from.count),
             from = in_order(packed, 0, part.from.count);
  add(schedule_, into.q, from.q);
  add(schedule_, into.k, from.k);
  add(schedule_, into.v, from.v);
}

Convolution::Build convolved(Convolution::Build build, Layout layout, Sequence sequence) {
  return
      [build = std::move(build), layout, sequence](Schedule& s, const Layer& layer, const LayerTensors& x) {
        if (layer.share.conv == 0) return build(s, layer, x);
        Layer own = layer;
        if (sequence == Sequence::whole)
          own.share.tokens = s.rank() == 0 ? s.ranks() * layer.share.tokens : 0;
        const bool is_whole = sequence != Sequence::cut || layer.mode == Mode::compute_only;
        if (is_whole && sequence != Sequence::whole)  // starts are those of all ranks
          for (std::int64_t& start : own.starts) start -= s.rank() * layer.share.tokens;
        Convolution convolution(s, own, x, layout, is_whole);
        build(s, layer, convolution.inside(x));
        if (layer.pass != Pass::forward) convolution.record_backward(x);
      };
}

std::vector<std::int64_t> convolution_bytes(const Layer& layer, int ranks, Layout layout) {
  std::vector<std::int64_t> sent(ranks, 0);
  if (layer.share.conv == 0 || layer.mode == Mode::compute_only) return sent;
  const std::vector<Run> runs = Cut{layout, ranks, layer.share.tokens}.runs();
  const std::int64_t row = row_of(layer.share);
  for (std::size_t place = 0; place < runs.size(); ++place)
    for (const Run& run : halo(runs, place, layer.share.conv - 1)) {
      if (run.rank == runs[place].rank || runs[place].count == 0) continue;
      if (layer.pass != Pass::backward) sent[run.rank] += run.count * row * bytes_of(layer.dtype);
      if (layer.pass != Pass::forward) sent[runs[place].rank] += run.count * row * bytes_of(Dtype::f32);
    }
  return sent;
}

}  // namespace baton
