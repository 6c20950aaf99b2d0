// SPDX-License-Identifier: Apache-2.0
// The passes by the chunkwise kernels (gla_chunks.hpp), which keep the states of all chunks.
#include "sp_methods/kernels/gla_chunks.hpp"
#include "sp_methods/linear_passes.hpp"

namespace baton {
namespace {

class ChunkedPass : public LinearPass {
 public:
  ChunkedPass(Schedule& schedule, const PassInputs& inputs) : LinearPass(schedule, inputs) {
    for (int g = 0; g < groups(); ++g) {
      before_.push_back(make_edges(g));
      if (is_backward()) after_.push_back(make_edges(g));
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
    for (int g = 0; g < groups(); ++g) {
      const Slice unused = schedule_.scratch("unused_map", map(g).packed().count);
      record_states(g, {unused.part(0, map(g).rows()), unused.part(map(g).rows(), map(g).state.count)});
    }
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
  /// A group's states at the edges of its chunks if nothing comes in.
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
};

}  // namespace

std::unique_ptr<LinearPass> chunked_pass(Schedule& schedule, const PassInputs& inputs) {
  return std::make_unique<ChunkedPass>(schedule, inputs);
}

}  // namespace baton
