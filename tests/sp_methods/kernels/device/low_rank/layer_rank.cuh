// SPDX-License-Identifier: Apache-2.0
// A layer with a low-rank rule in device memory, and one rank's share of it: for the test of the
// device bodies.
#pragma once

#include "sp_methods/kernels/device/low_rank/layer.cuh"
#include "tests/sp_methods/kernels/device/delta/layer_rank.cuh"

namespace baton {

/// The inputs and results of a whole layer.
struct LowRankLayerMemory {
  using Map = LowRankMap;
  using Output = LowRankOutput;
  using Correction = LowRankCorrection;
  using StateGradients = LowRankStateGradients;
  using Gradients = LowRankGradients;
  static Refusal lacks_room(const Chunks& p) { return lacks_low_rank_room_of_gradients(p); }

  LayerMemory of;
  DeviceArray<Bf16> a, b, da, db, correction;

  explicit LowRankLayerMemory(const LayerShape& s)
      : of(s), a(keys(s)), b(keys(s)), da(keys(s)), db(keys(s)), correction(keys(s)) {}
  static std::int64_t keys(const LayerShape& s) { return LayerMemory::rows(s) * s.d_k; }
  LowRankInputs<OnDevice> inputs(const LayerShape& s, std::int64_t token) const {
    const std::int64_t row = token * s.heads * s.d_k;
    return {of.inputs(s, token), a.at(row), b.at(row)};
  }
  LowRankGradientsOut<OnDevice> gradients(const LayerShape& s, std::int64_t token) const {
    const std::int64_t row = token * s.heads * s.d_k;
    return {of.gradients(s, token), da.at(row), db.at(row)};
  }
};

using LowRankRank = MatrixRank<LowRankLayerMemory>;

}  // namespace baton
