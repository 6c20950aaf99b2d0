// SPDX-License-Identifier: Apache-2.0
// The weights of one layer, or their gradients, side by side in one run of memory.
#pragma once

#include <map>
#include <string>

#include "collectives/schedule/slice.hpp"
#include "models/shape.hpp"

namespace baton {

/// A weight with its place.
struct PlacedWeight {
  Weight weight;
  Slice slice;
};

/// The weights of a layer in a slice.
class LayerWeights {
 public:
  /// `all` has at least as many elements as the layer has weights.
  LayerWeights(const ModelShape& shape, Attention kind, const Slice& all) {
    std::int64_t at = 0;
    for (const Weight& weight : shape.weights(kind)) {
      places_[weight.name] = {weight, all.part(at, weight.count())};
      at += weight.count();
    }
  }

  /// Throws std::out_of_range if the layer has no such weight.
  const PlacedWeight& operator[](const std::string& name) const { return places_.at(name); }

 private:
  std::map<std::string, PlacedWeight> places_;
};

}  // namespace baton
