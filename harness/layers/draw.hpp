// SPDX-License-Identifier: Apache-2.0
// What the inputs of a layer are drawn by. Names of cases, the key of an oracle and the smaller
// case of a simulated row all come from here: none of them compiles with a new member until the
// member is named.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/cases/axis_values.hpp"
#include "sp_methods/layer_inputs.hpp"

namespace baton {

/// The packed documents of a layer: the mean of drawn lengths, or given lengths.
struct Packing {
  std::int64_t mean = 0;   ///< In tokens, 0 for one document.
  std::uint64_t seed = 1;  ///< Of the lengths.
  LengthDraw draw = LengthDraw::uniform;
  std::vector<std::int64_t> lengths = {};  ///< Given ones, empty for drawn ones.
  /// A document is padded to a multiple of so many tokens where shares are; 0 pads none.
  std::int64_t multiple = 0;

  bool has_documents() const { return mean > 0 || !lengths.empty(); }
  /// The starts of the documents in the `tokens` of each rank, or in a sequence that has an `end`.
  std::vector<std::int64_t> starts(std::int64_t tokens, int ranks, std::int64_t end) const;
};

/// What the inputs of a layer are drawn by, beside its shape and the seed of a verification.
struct LayerDraw {
  GateDraw gates = GateDraw::layer;
  Packing packing = {};
};

/// The axes of a layer's shape and of its inputs, in the order in which names have them.
AxisValues axes_of(const LayerShape& share, const LayerDraw& inputs);

/// The same inputs for fewer tokens: about as many documents.
LayerDraw reduced(LayerDraw inputs, std::int64_t tokens, std::int64_t fewer);

/// The same shares of fewer tokens on `ranks` ranks. The largest share has `fewer` tokens in place
/// of `tokens`; given ones stay as unequal as they can, and some rank has a token.
Shares reduced(Shares shares, int ranks, std::int64_t tokens, std::int64_t fewer);

/// The key of the expected results of `problem`, which all methods and passes share. Two problems
/// with other inputs have other keys.
std::string oracle_key(const LayerProblem& problem);

}  // namespace baton
