// SPDX-License-Identifier: Apache-2.0
// The pass with decays whose kernels keep the states of all chunks (gla_chunks.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "sp_methods/kernels/gla_chunks.hpp"
#include "sp_methods/passes/linear_pass.hpp"

namespace baton {

/// A pass by the chunkwise kernels.
class ChunkedPass : public LinearPass {
 public:
  ChunkedPass(Schedule& schedule, const PassInputs& inputs) : LinearPass(schedule, inputs) {
    for (int g = 0; g < groups(); ++g) {
      before_.push_back(make_edges(g));
      if (!is_backward()) continue;
      after_.push_back(make_edges(g));
      unused_.push_back(schedule_.scratch_map("unused_map", map(g)));
    }
  }

  void record_local_states(int g) override {
    if (!is_backward()) return record_states(g, map(g));
    record<ChunkStateGradients>(schedule_, {share(), work(g)},
                                {.in = tensors().inputs(),
                                 .d_o = tensors().d_o,
                                 .states = after_[g].states,
                                 .decays = after_[g].decays,
                                 .map_decay = map(g).decay,
                                 .map_state = map(g).state});
  }

  void record_overlappable() override {
    if (!is_backward()) return record<IntraOutput>(schedule_, {share()}, {tensors().inputs(), tensors().o});
    for (int g = 0; g < groups(); ++g) record_states(g, unused_[g]);
    record<IntraGradients>(schedule_, {share()},
                           {.in = tensors().inputs(), .d_o = tensors().d_o, .out = tensors().gradients()});
  }

  void record_outputs(int g) override {
    if (!is_backward())
      return record<InterOutput>(
          schedule_, {share(), work(g)},
          {.in = tensors().inputs(), .before = with_incoming(before_[g], arrived(g)), .o = tensors().o});
    record<InterGradients>(schedule_, {share(), work(g)},
                           {.in = tensors().inputs(),
                            .d_o = tensors().d_o,
                            .before = with_incoming(before_[g], prefix(g)),
                            .after = with_incoming(after_[g], arrived(g)),
                            .out = tensors().gradients()});
  }

 private:
  /// A head group's states at the edges of its chunks, if the incoming state is zero.
  struct Edges {
    Slice states, decays;
  };

  Edges make_edges(int g) {
    const std::int64_t edges = work(g).head_count * share().chunks();
    return {schedule_.scratch("states", edges * share().d_k * share().d_v),
            schedule_.scratch("decays", edges * share().d_k)};
  }

  static ChunkEdges<Recorded> with_incoming(const Edges& edges, const Slice& incoming) {
    return {.states = edges.states, .decays = edges.decays, .incoming = incoming};
  }

  void record_states(int g, const Map& map) {
    record<ChunkStates>(schedule_, {share(), work(g)},
                        {.in = tensors().inputs(),
                         .states = before_[g].states,
                         .decays = before_[g].decays,
                         .map_decay = map.decay,
                         .map_state = map.state});
  }

  std::vector<Edges> before_, after_;
  std::vector<Map> unused_;  // backward: the maps of the states that are made again
};

}  // namespace baton
