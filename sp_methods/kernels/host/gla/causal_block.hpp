// SPDX-License-Identifier: Apache-2.0
// Causal attention within one run of tokens of one head, without a state, for gates of any
// strength.
//
//   add(run):  if the run fits a leaf and |b - r| < guard over it, r being b at its middle:
//                  O += s tril((q e^{b-r}) (k e^{r-b})^T) V     masked by selection: may be inf
//              else cut it into halves L, H with r = b at the end of L:
//                  O_H += s (q_H e^{b-r}) (k_L e^{r-b})^T V_L     both factors <= 1
//                  add(L), add(H)
//
// A single token always fits, so no gate is too strong: the fallback is the same form on smaller
// blocks. Backward keeps the diagonal apart: a token's own product passes no gate and would only
// cancel in dg.
// Cost: 2 n^2 (d_k + d_v) flop forward, n^2 (6 d_k + 4 d_v) backward for a leaf of n tokens; long
// runs half.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (secondary-level chunking),
// made recursive.
#pragma once

#include "sp_methods/kernels/host/gla/gates.hpp"
#include "sp_methods/kernels/host/tiles.hpp"

namespace baton {

/// Halves runs of tokens of one head until they can be computed as leaves.
class CausalBlock {
 public:
  virtual ~CausalBlock() = default;

  /// Adds the contributions of pairs of tokens in `t`.
  void add(Tokens t);

 protected:
  /// Runs longer than `leaf` tokens are halved.
  CausalBlock(const GlaHead& in, Index leaf) : in_(in), leaf_(leaf) {}

  /// Adds all pairs of a short run; q_decay_ and k_decay_ are set.
  virtual void add_leaf(Tokens t) = 0;
  /// Adds the pairs of later queries `high` with earlier keys `low`; q_decay_ and k_decay_ are set.
  virtual void add_rectangle(Tokens high, Tokens low) = 0;

  GlaHead in_;
  Tile q_decay_, k_decay_, q_, k_, a_;

 private:
  bool set_leaf_decays(Tokens t);
  void set_rectangle_decays(Tokens high, Tokens low);

  Index leaf_;
  Tile x_;
};

/// Adds the output of causal pairs to o [tokens, heads, d_v].
class CausalOutput : public CausalBlock {
 public:
  CausalOutput(float* o, const GlaHead& in, Index leaf) : CausalBlock(in, leaf), o_(o) {}

 private:
  void add_leaf(Tokens t) override;
  void add_rectangle(Tokens high, Tokens low) override;
  TileView o(Tokens t) const { return head_rows(o_, t, in_.head, in_.shape.heads, in_.shape.d_v); }

  float* o_;
};

/// Writes the gradients of causal pairs.
class CausalGradients : private CausalBlock {
 public:
  /// Gradients `out` are for the gradient d_o [tokens, heads, d_v] of the output.
  CausalGradients(const GlaGradients& out, const GlaHead& in, const float* d_o, Index leaf)
      : CausalBlock(in, leaf), out_(out), d_o_(d_o) {}

  /// Sets the gradients of the tokens in `t` to the contributions of pairs within `t`.
  void set(Tokens t);

 private:
  void add_leaf(Tokens t) override;
  void add_rectangle(Tokens high, Tokens low) override;
  void set_gate_gradient(Tokens t);
  void set_with_diagonal(Tokens t);
  TileView dv(Tokens t) const { return head_rows(out_.dv, t, in_.head, in_.shape.heads, in_.shape.d_v); }
  ConstTileView d_o(Tokens t) const { return head_rows(d_o_, t, in_.head, in_.shape.heads, in_.shape.d_v); }

  GlaGradients out_;
  const float* d_o_;
  Index origin_ = 0;  // first token of dq_ and dk_
  Tile dq_, dk_;      // of the run, without the diagonal
  Tile y_, z_;
};

}  // namespace baton
