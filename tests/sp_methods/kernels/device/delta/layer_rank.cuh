// SPDX-License-Identifier: Apache-2.0
// A layer with a delta rule in device memory, one rank's share of it, and the calls of its two
// passes: for the test of the device bodies. A layer with a low-rank rule has the same passes
// (low_rank/layer_rank.cuh).
#pragma once

#include <memory>

#include "sp_methods/kernels/delta.hpp"
#include "sp_methods/kernels/device/delta/groups/passes.cuh"
#include "tests/sp_methods/kernels/device/gla/layer_rank.cuh"

namespace baton {

/// The inputs and results of a whole layer.
struct DeltaLayerMemory {
  using Map = DeltaMap;
  using Output = DeltaOutput;
  using Correction = DeltaCorrection;
  using StateGradients = DeltaStateGradients;
  using Gradients = DeltaGradients;
  static Refusal lacks_room(const Chunks& p) { return lacks_delta_room_of_gradients(p); }

  LayerMemory of;
  DeviceArray<Bf16> beta, dbeta, correction;

  explicit DeltaLayerMemory(const LayerShape& s)
      : of(s), beta(of.rows(s)), dbeta(of.rows(s)), correction(of.rows(s) * s.d_k) {}
  DeltaInputs<OnDevice> inputs(const LayerShape& s, std::int64_t token) const {
    return {of.inputs(s, token), beta.at(token * s.heads)};
  }
  DeltaGradientsOut<OnDevice> gradients(const LayerShape& s, std::int64_t token) const {
    return {of.gradients(s, token), dbeta.at(token * s.heads)};
  }
};

/// One rank's share of a head group: its tokens, its map, and the states that come to it. `Memory`
/// is that of a layer, and names the contracts of its rule.
template <class Memory>
struct MatrixRank {
  Chunks share;
  const Memory& layer;
  std::int64_t token;
  DeviceArray<float> map_matrix, map_state, map_gradient, before, after, kept_maps, kept_gradients;

  MatrixRank(const Memory& memory, const LayerShape& shape, const Work& work, std::int64_t first)
      : share{shape, work, Dtype::bf16},
        layer(memory),
        token(first),
        map_matrix(work.heads(shape) * shape.d_k * shape.d_k),
        map_state(states()),
        map_gradient(states()),
        before(states()),
        after(states()),
        kept_maps(Memory::Map::kept(share).end),
        kept_gradients(baton::kept_gradients(share)) {
    if (const Refusal lack = Memory::lacks_room(share)) throw UsageError(lack.reason());
  }
  std::int64_t states() const { return share.work.heads(share.shape) * share.shape.d_v * share.shape.d_k; }

  auto in() const { return layer.inputs(share.shape, token); }
  Bf16* values(const DeviceArray<Bf16>& x) const { return x.at(token * share.shape.heads * share.shape.d_v); }
  Bf16* correction() const { return layer.correction.at(token * share.shape.heads * share.shape.d_k); }

  /// Where the map keeps what devices make of it: ranks of whole layers keep it, those of head
  /// groups do not.
  bool keeps() const { return share.work.heads(share.shape) == share.shape.heads; }
  float* kept() const { return keeps() ? kept_maps.at() : nullptr; }
  float* kept_back() const { return keeps() ? kept_gradients.at() : nullptr; }
  /// A map that is not written is made for what is kept.
  void map(bool writes = true) const {
    cuda(on_device<typename Memory::Map>({},
                                         {.in = in(),
                                          .map_matrix = writes ? map_matrix.at() : nullptr,
                                          .map_state = writes ? map_state.at() : nullptr,
                                          .kept = kept()},
                                         share));
  }
  void output(bool from_zero = false) const {
    cuda(on_device<typename Memory::Output>({},
                                            {.in = in(),
                                             .incoming = from_zero ? nullptr : before.at(),
                                             .kept = from_zero ? nullptr : kept(),
                                             .o = values(layer.of.o)},
                                            share));
  }
  /// After output(true).
  void corrected() const {
    cuda(on_device<typename Memory::Correction>({}, {.in = in(), .correction = correction()}, share));
    cuda(on_device<DeltaCorrect>(
        {}, {.correction = correction(), .incoming = before.at(), .o = values(layer.of.o)}, share));
  }
  void state_gradients(bool writes = true) const {
    cuda(on_device<typename Memory::StateGradients>({},
                                                    {.in = in(),
                                                     .d_o = values(layer.of.d_o),
                                                     .kept = kept(),
                                                     .map_state = writes ? map_gradient.at() : nullptr,
                                                     .keeps = kept_back()},
                                                    share));
  }
  /// Makes what is kept anew, as a rank does whose map nobody reads.
  void keep_again() const {
    if (!keeps()) return;
    for (const DeviceArray<float>* kept : {&kept_maps, &kept_gradients})
      cuda(cudaMemset(kept->at(), 0xff, static_cast<std::size_t>(kept->count()) * sizeof(float)));
    map(false);
    state_gradients(false);
  }
  void gradients() const {
    cuda(on_device<typename Memory::Gradients>({},
                                               {.in = in(),
                                                .d_o = values(layer.of.d_o),
                                                .before = before.at(),
                                                .after = after.at(),
                                                .kept = kept(),
                                                .kept_gradients = kept_back(),
                                                .out = layer.gradients(share.shape, token)},
                                               share));
  }
};

using DeltaRank = MatrixRank<DeltaLayerMemory>;

}  // namespace baton
