// SPDX-License-Identifier: Apache-2.0
// Causal attention within one run of tokens of one head, without a state, for gates of any strength.
//
//   add(run):  if the run fits a leaf and |b - r| < guard over it, r being b at its middle:
//                  O += s tril((q e^{b-r}) (k e^{r-b})^T) V       masked by selection: inf may be there
//              else cut it into halves L, H with r = b at the end of L:
//                  O_H += s (q_H e^{b-r}) (k_L e^{r-b})^T V_L     both factors <= 1
//                  add(L), add(H)
//
// A single token always fits, so no gate is too strong: the fallback is the same form on smaller blocks.
// Backward keeps the diagonal apart: a token's own product passes no gate and would only cancel in dg.
// Cost: 2 n^2 (d_k + d_v) flop forward, n^2 (6 d_k + 4 d_v) backward for a leaf of n tokens; long runs half.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (secondary-level chunking),
// made recursive.
#pragma once

#include "sp_methods/kernels/host/gla/gates.hpp"

namespace baton {

/// Adds the output of causal attention within token runs of one head.
class CausalOutput {
 public:
  /// Runs longer than `leaf` tokens are cut; adds to o [tokens, heads, d_v].
  CausalOutput(float* o, const GlaHead& in, Index leaf) : o_(o), in_(in), leaf_(leaf) {}

  /// Adds the output of the tokens in `t` that comes from keys in `t`.
  void add(Tokens t);

 private:
  void add_leaf(Tokens t);
  void add_rectangle(Tokens high, Tokens low);
  TileView o(Tokens t) const { return head_rows(o_, t, in_.head, in_.shape.heads, in_.shape.d_v); }

  float* o_;
  GlaHead in_;
  Index leaf_;
  Tile x_, q_decay_, k_decay_, q_, k_, a_;
};

/// Writes the gradients of causal attention within token runs of one head.
class CausalGradients {
 public:
  /// Runs longer than `leaf` tokens are cut; d_o [tokens, heads, d_v] is the output's gradient.
  CausalGradients(const GlaGradients& out, const GlaHead& in, const float* d_o, Index leaf)
      : out_(out), in_(in), d_o_(d_o), leaf_(leaf) {}

  /// Sets the gradients of the tokens in `t` to what comes from pairs within `t`.
  void set(Tokens t);

 private:
  void add(Tokens t);
  void add_leaf(Tokens t);
  void add_rectangle(Tokens high, Tokens low);
  void set_gate_gradient(Tokens t);
  void set_with_diagonal(Tokens t);
  TileView dv(Tokens t) const { return head_rows(out_.dv, t, in_.head, in_.shape.heads, in_.shape.d_v); }
  ConstTileView d_o(Tokens t) const { return head_rows(d_o_, t, in_.head, in_.shape.heads, in_.shape.d_v); }

  GlaGradients out_;
  GlaHead in_;
  const float* d_o_;
  Index leaf_;
  Index origin_ = 0;  // first token of dq_ and dk_
  Tile dq_, dk_;      // of the run, without the diagonal
  Tile x_, q_decay_, k_decay_, q_, k_, a_, y_, z_;
};

}  // namespace baton
