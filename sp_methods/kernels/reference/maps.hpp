// SPDX-License-Identifier: Apache-2.0
// A run of one head's tokens maps the state that comes in, and the gradient of a state that comes
// back. Both maps are computed here in double precision, by products of matrices.
//
//   forward:    S -> decay (.) S + state
//               state = sum over t of (e^{g behind t} (.) k_t)^T v_t
//   backward:   D -> decay (.) D + gradient
//               gradient = sum over t of (e^{g up to t} (.) s q_t)^T do_t
//
// Tokens are taken in runs, the last one first (backward: the first one first), until no channel's
// decay from there on is worth adding.
//
// Cost: 2 tokens d_k d_v flop, of the tokens that are taken. The recurrences of attention.hpp leave
// the same states, and gradients of states, by five and twenty times as many.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (chunkwise form).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sp_methods/kernels/shape.hpp"

namespace baton {

/// The map of one head, made run by run.
class ReferenceMap {
 public:
  /// Makes an empty map of states, or of their gradients if not `is_forward`. Only the widths and
  /// the kind of gate of `shape` are read.
  ReferenceMap(const LayerShape& shape, bool is_forward);

  /// Adds the run of tokens next to those that were added: forward the run before them with k and
  /// v, backward the run behind them with q and d_o. `left` is [tokens, d_k], `right` [tokens,
  /// d_v], g [tokens, d_k], [tokens] or empty.
  void add(std::span<const float> left, std::span<const float> right, std::span<const float> g);

  /// True if tokens farther away change nothing.
  bool is_complete() const;

  /// The decay [d_k] over all tokens that were added; zero if the map is complete.
  std::vector<double> decay() const;
  /// The state, or the gradient of a state, that the tokens make [d_k, d_v].
  const std::vector<double>& state() const { return state_; }

 private:
  LayerShape shape_;
  bool is_forward_;
  std::vector<double> decay_, state_;
};

}  // namespace baton
