// SPDX-License-Identifier: Apache-2.0
// The mixer of Mamba-2 on one rank, as steps around the attention of any method:
//
//   (q, k, x) = silu(conv(q, k, v) + bias), with rows of other ranks before a rank's first ones
//   o = attention(q, k, factor delta x, g) + D x,  delta = softplus(z + bias of z)
//   backward: the convolution and the values again, then the gradients in reverse
//
// Rows and gates are whole on each rank before the method moves any: a method that cuts heads, as
// Ulysses does, gets values that are convolved and scaled.
// Cost: the halo of conv - 1 rows of q, k and v a rank and pass (passes/convolution.hpp).
// Source: "Transformers are SSMs", arXiv 2405.21060, sections 6 and 7.
#pragma once

#include "collectives/schedule/schedule.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {

/// What the mixer has beside the tensors of its attention.
struct StateSpace {
  Slice z{};        ///< [tokens, heads]
  Slice bias{};     ///< [heads], of z
  Slice skip{};     ///< D [heads]
  Slice d_delta{};  ///< [tokens, heads], set in the backward pass
  Slice d_skip{};   ///< [heads], likewise
};

/// Records the pass of `layer`, which has a convolution, around that of the method. x has the rows
/// before the convolution, and o behind D. If `is_whole`, its tokens are a sequence of their own.
void record_state_space(Schedule& schedule, const SpMethod& method, const Layer& layer, const LayerTensors& x,
                        const StateSpace& of, bool is_whole);

}  // namespace baton
