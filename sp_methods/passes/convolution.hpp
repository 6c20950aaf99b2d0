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

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "sp_methods/kernels/conv.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {

/// The convolution before q, k or v of the tokens that one rank works on.
class TensorConvolution {
 public:
  /// Prepares that of the tensor x of a rank, with its weights w. The tokens are those of `cut`.
  TensorConvolution(Schedule& schedule, const Layer& layer, const TensorKind& kind, const Slice& x,
                    const Slice& w, const Cut& cut, std::int64_t rank);

  /// Records the exchange of the rows that runs behind need.
  void exchange_rows();
  /// Records y of the rows that need the halo, or of all others.
  void record_rows(bool at_edge);
  const Slice& y() const { return y_; }

  /// Records what the gradients dy of the first rows add to those of the halo.
  void record_edge_gradients(const Slice& dy);
  /// Sends the gradients of halos back, and adds those that come in the order of the sequence.
  void exchange_gradients();
  /// Records dx, and adds to dw.
  void record_gradients(const Slice& dx, const Slice& dy, const Slice& dw);

 private:
  /// A run of this rank.
  struct Piece {
    ConvShape shape;
    std::int64_t first = 0;  ///< Its first token among those of the rank.
    std::int64_t place = 0;  ///< Its place among the runs of all ranks.
    Slice halo = {};         ///< The rows before it; empty if there are none.
    Slice back = {};         ///< Their gradients.
    Slice later = {};        ///< Gradients of its last rows, from other ranks.
    Slice dz = {};

    /// Number of its rows that need the halo, or that are in those of others.
    std::int64_t edge() const { return std::min(shape.before(), shape.tokens); }
    /// Number of its first rows whose y needs a halo.
    std::int64_t behind() const { return halo.empty() ? 0 : edge(); }
  };
  /// A part of a halo on its way.
  struct Part {
    Run from;
    std::int64_t place = 0;   ///< The run whose halo it is in.
    std::int64_t offset = 0;  ///< Its first row in that halo.
  };

  Slice rows(const Slice& all, std::int64_t first, std::int64_t count) const;
  std::vector<Part> parts() const;
  bool is_own(std::int64_t rank) const { return rank == schedule_.rank(); }
  Piece& piece_at(std::int64_t place);
  Piece& piece_of(const Run& own);
  void move(const Slice& into, std::int64_t to, const Slice& leaves, std::int64_t from);
  ConvInputs<Recorded> inputs(const Piece& piece, bool with_halo) const;
  void record_activation_gradients(Piece& piece, const Slice& dy, std::int64_t first, std::int64_t count);

  Schedule& schedule_;
  const Layer& layer_;
  Slice x_, y_, w_;
  std::int64_t row_;  // elements of a token
  std::vector<Run> runs_;
  std::vector<Piece> pieces_;
};

/// The convolutions of q, k and v, whose messages are under way together.
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
  Schedule& schedule_;
  const Layer& layer_;
  std::vector<TensorConvolution> tensors_;
  std::vector<Slice> dw_;
  std::array<Slice, 3> dy_;
};

/// Records the steps of `build` with the layer's convolution around them, if it has one, and all
/// heads of q and k behind it, if they are fewer than those of v (grouped_heads.hpp). The tokens
/// of a rank are those of `sequence`, cut as `layout` says.
Convolution::Build convolved(Convolution::Build build, Layout layout, Sequence sequence = Sequence::cut);

/// Bytes that each rank sends in the exchanges of a layer's convolution.
std::vector<std::int64_t> convolution_bytes(const Layer& layer, int ranks, Layout layout);

/// True if a layer has a convolution and some rank's piece no token, and so no halo. Its rank waits
/// for nothing, and the longest chain of messages may be any other one.
bool lacks_halos(const Layer& layer, int ranks, Layout layout);

}  // namespace baton
