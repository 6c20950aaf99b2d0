// SPDX-License-Identifier: Apache-2.0
// The gradient of a chunk's gates from pairs of its tokens and from the state before it, by the
// states of single tokens in f64.
//
//   t = 0, 1, ..:   S <- e^{g_t} S     x_t = sum of y_t (.) (u_t S) over readers     S += w_t^T k_t
//   t = .., 1, 0:   x_t -= k_t (.) (w_t D)     D += sum of u_t^T y_t     D <- e^{g_t} D
//   sum over t >= i of x_t
//
// A reader has rows y that meet the state and gradients u of what they read; a writer has rows k
// along which it adds w to the state. S begins with the state before the chunk, D with zero.
// A sum over pairs of tokens has as many terms as the chunk has pairs. Where keys repeat, as in a
// chunk of many more tokens than channels, later writes take back what earlier ones wrote: terms
// cancel down to the product of one state with its gradient, and what is left of their rounding
// grows with the tokens. Here the same rounded u and w meet in every sum, so that it does not.
// Cost: 2 (readers + writers) d_k d_v multiply-adds a token, one by one. Worth it for few channels.
// Source: the recurrence of the state, differentiated.
#pragma once

#include <initializer_list>

#include "sp_methods/kernels/host/tiles.hpp"

namespace baton {

using ExactTile = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Rows [n, d_k] of a chunk's tokens and their partners [n, d_v], whose products have a factor.
/// There may be fewer rows than tokens; they are of the first tokens.
struct StateRows {
  ConstTileRef rows;
  ConstTileRef partners;
  double factor = 1;
};

/// True if a chunk of so many tokens repeats its keys of `d_k` channels so often that the states of
/// single tokens are needed, and cheap.
inline bool repeats_keys(Index tokens, Index d_k) { return 8 * d_k <= tokens; }

/// Sets x [n, d_k] to the sums for log gates g [n, width], the state [d_v, d_k] before the chunk,
/// and its readers and writers.
void set_gate_sums(ExactTile& x, const ConstTileRef& g, const Tile& state,
                   std::initializer_list<StateRows> readers, std::initializer_list<StateRows> writers);

}  // namespace baton
