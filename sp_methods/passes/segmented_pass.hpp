// SPDX-License-Identifier: Apache-2.0
// The pass with decays whose kernels work in segments and keep few states (gla_segments.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "sp_methods/kernels/gla_segments.hpp"
#include "sp_methods/passes/linear_pass.hpp"

namespace baton {

/// A pass by the kernels in segments. One kernel makes all of a chunk's output or gradients, so a
/// group's exchange overlaps only the work of other groups.
class SegmentedPass : public LinearPass {
 public:
  SegmentedPass(Schedule& schedule, const PassInputs& inputs)
      : LinearPass(schedule, inputs), dtype_(inputs.layer.dtype), blocks_(inputs.layer.kernels.blocks) {
    if (is_backward() && inputs.forward != nullptr)
      kept_ = dynamic_cast<const SegmentedPass&>(*inputs.forward).edges_;
    for (int g = 0; g < groups(); ++g) {
      edges_.push_back(make_edges(g));
      if (!is_backward()) continue;
      starts_.push_back(make_starts(g));
      if (kept_.empty()) from_zero_.push_back(make_edges(g));
    }
  }

  void record_local_states(int g) override {
    const Edges& edges = edges_[g];
    if (is_backward())
      record<SegmentStateGradients>(
          schedule_, cut(g),
          {.in = tensors().inputs(), .d_o = tensors().d_o, .states = edges.states, .totals = edges.totals});
    else
      record_states(g, edges);
    record_scan(g, edges, map(g));
  }

  void record_overlappable() override {
    for (int g = 0; is_backward() && g < groups(); ++g) record_starts(g);
  }

  void record_outputs(int g) override {
    const SegmentEdges<Recorded> edges = with_incoming(edges_[g], arrived(g));
    if (!is_backward())
      return record<SegmentOutput>(schedule_, cut(g),
                                   {.in = tensors().inputs(), .before = edges, .o = tensors().o});
    record<SegmentGradients>(schedule_, cut(g),
                             {.in = tensors().inputs(),
                              .d_o = tensors().d_o,
                              .before = starts_[g],
                              .after = edges,
                              .out = tensors().gradients()});
  }

 private:
  /// A head group's states at the edges of its segments, if the incoming state is zero.
  struct Edges {
    Slice states, gates, totals;
  };

  Segments cut(int g) const {
    return {share(), work(g), segment_count(share(), work(g).head_count, blocks_), dtype_};
  }

  Edges make_edges(int g) {
    const std::int64_t heads = work(g).head_count, segments = cut(g).count, d_k = share().d_k;
    return {schedule_.scratch("segment_states", heads * (segments + 1) * d_k * share().d_v),
            schedule_.scratch("segment_gates", heads * (segments + 1) * d_k),
            schedule_.scratch("segment_totals", heads * segments * d_k)};
  }

  static SegmentEdges<Recorded> with_incoming(const Edges& edges, const Slice& incoming) {
    return {.states = edges.states, .gates = edges.gates, .incoming = incoming};
  }

  void record_states(int g, const Edges& edges) {
    record<SegmentStates>(schedule_, cut(g),
                          {.in = tensors().inputs(), .states = edges.states, .totals = edges.totals});
  }

  void record_scan(int g, const Edges& edges, const Map& map) {
    record<ScanSegments>(schedule_, cut(g),
                         {.totals = edges.totals,
                          .states = edges.states,
                          .gates = edges.gates,
                          .map_decay = map.decay,
                          .map_state = map.state});
  }

  ChunkStartsInSegments<Recorded> make_starts(int g) {
    const std::int64_t heads = work(g).head_count, chunks = heads * share().chunks(), d_k = share().d_k;
    ChunkStartsInSegments<Recorded> starts{
        .chunks = schedule_.scratch("chunk_starts", chunks * d_k * share().d_v, dtype_)};
    if (!kept_.empty()) return starts;
    starts.decays = schedule_.scratch("chunk_decays", chunks * d_k);
    starts.segments = schedule_.scratch("segment_starts", heads * cut(g).count * d_k * share().d_v, dtype_);
    return starts;
  }

  /// Records the states before all chunks, from the prefix that the forward pass was given.
  void record_starts(int g) {
    if (!kept_.empty())
      return record<ChunkStarts>(schedule_, cut(g),
                                 {.in = tensors().inputs(),
                                  .before = with_incoming(kept_[g], prefix(g)),
                                  .starts = starts_[g].chunks});
    const Edges& from_zero = from_zero_[g];
    record<ChunkStarts>(schedule_, cut(g),
                        {.in = tensors().inputs(),
                         .starts = starts_[g].chunks,
                         .decays = starts_[g].decays,
                         .states = from_zero.states,
                         .totals = from_zero.totals});
    record<SegmentStarts>(schedule_, cut(g),
                          {.totals = from_zero.totals,
                           .states = from_zero.states,
                           .incoming = prefix(g),
                           .starts = starts_[g].segments});
  }

  Dtype dtype_;
  std::int64_t blocks_;
  std::vector<Edges> edges_;                             // of the state forward, of its gradient backward
  std::vector<Edges> kept_;                              // backward: of the state, from the forward pass
  std::vector<ChunkStartsInSegments<Recorded>> starts_;  // backward
  std::vector<Edges> from_zero_;                         // backward: of what segments add, if none are kept
};

}  // namespace baton
