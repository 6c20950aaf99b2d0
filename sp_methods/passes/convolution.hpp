// SPDX-License-Identifier: Apache-2.0
// The short causal convolution before q, k and v, around the steps of a method of linear attention.
// The tensors q, k and v of the layer are then the rows x that it is made from.
//
//   send the last W-1 rows of each run to those behind it; receive a halo of as many
//   y of the rows that need no halo, while it travels; then y of the first W-1
//   .. the method, with y in place of q, k and v ..
//   dz of the first W-1 tokens and their part of dx of the halo; send it back in f32
//   dz of all others; dx of all; the parts that came are added to the last rows
//
// A forward pass leaves its halos to the backward pass. Zigzag ranks have two runs and two halos.
// Short runs get rows of several ranks; what comes back from them is added in their order.
// A rank's weight gradients are the sums over its own tokens, and are not exchanged.
// Cost: (W-1) rows of q, k and v a run in the tensors' type forward, in f32 backward; 1 hop each.
// Source: MaxText, src/maxtext/models/gdn_cp.py, exchanges the last rows in this way.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sp_methods/kernels/conv.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {

/// The convolution of the tokens that one rank works on.
class Convolution {
 public:
  using Build = std::function<void(Schedule&, const Layer&, const LayerTensors&)>;

  /// Records y of a rank's share of a sequence that lies as `layout` says, with halos from other
  /// ranks. If `is_whole`, the tokens of x are a sequence of their own.
  Convolution(Schedule& schedule, const Layer& layer, const LayerTensors& x, Layout layout, bool is_whole);

  /// The tensors x with y in place of q, k and v, and gradients of y in place of theirs.
  LayerTensors inside(const LayerTensors& x);
  /// Records dx and dw, once the gradients of y are there.
  void record_backward(const LayerTensors& x);

 private:
  struct Rows {
    Slice q, k, v;
  };
  /// A run of this rank.
  struct Piece {
    ConvShape shape;
    std::int64_t first = 0;  ///< Its first token among those of the rank.
    std::int64_t place = 0;  ///< Its place among the runs of all ranks.
    Slice halo = {};         ///< The rows before it; empty if there are none.
    Slice back = {};         ///< Their gradients.
    Slice later = {};        ///< Gradients of its last rows, from other ranks.
    Rows dz = {};

    std::int64_t tokens() const { return shape.share.tokens; }
    /// Number of its rows that need the halo, or that are in those of others.
    std::int64_t edge() const { return std::min(shape.before(), tokens()); }
  };
  /// A part of a halo on its way.
  struct Part {
    Run from;
    std::int64_t place = 0;   ///< The run whose halo it is in.
    std::int64_t offset = 0;  ///< Its first row in that halo.
  };

  Rows rows_of(const LayerTensors& x, const Piece& piece, std::int64_t first, std::int64_t count) const;
  Rows gradients_of(const LayerTensors& x, const Piece& piece, std::int64_t first, std::int64_t count) const;
  Rows in_order(const Slice& packed, std::int64_t first, std::int64_t count) const;
  Rows part_of(const Rows& all, std::int64_t rows, std::int64_t first, std::int64_t count) const;
  void copy(const Rows& into, const Rows& from);
  void add_to(const Piece& piece, const Part& part, const Slice& packed, bool is_first);

  void make_pieces(Layout layout, bool is_whole);
  std::vector<Part> parts() const;
  bool is_own(std::int64_t rank) const { return rank == schedule_.rank(); }
  Piece& piece_at(std::int64_t place);
  Piece& piece_of(const Run& own);
  ConvInputs<Recorded> inputs(const LayerTensors& x, const Piece& piece, bool with_halo) const;
  Slice own_weights(const Slice& weights) const;

  void exchange_rows(const LayerTensors& x);
  void exchange_gradients();
  void record_rows(const LayerTensors& x);
  void record_activation_gradients(const LayerTensors& x, Piece& piece, std::int64_t first,
                                   std::int64_t count);

  Schedule& schedule_;
  const Layer& layer_;
  std::int64_t row_;  // elements of a token in q, k and v
  std::vector<Run> runs_;
  std::vector<Piece> pieces_;
  Slice weights_, dw_;
  LayerTensors y_;
};

/// Records the steps of `build` with the layer's convolution around them, if it has one. The tokens
/// of a rank are those of `sequence`, cut as `layout` says.
Convolution::Build convolved(Convolution::Build build, Layout layout, Sequence sequence = Sequence::cut);

/// Bytes that each rank sends in the exchanges of a layer's convolution.
std::vector<std::int64_t> convolution_bytes(const Layer& layer, int ranks, Layout layout);

}  // namespace baton
