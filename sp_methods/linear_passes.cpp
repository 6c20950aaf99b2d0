// SPDX-License-Identifier: Apache-2.0
// The two ways of a pass with decays: by the chunkwise kernels (gla_chunks.hpp), which keep the
// states of all chunks, and by the kernels in segments (gla_segments.hpp), which keep few.
#include "sp_methods/linear_passes.hpp"

#include <algorithm>

#include "sp_methods/kernels/gla_chunks.hpp"
#include "sp_methods/kernels/gla_segments.hpp"

namespace baton {
namespace {

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
  std::vector<Map> unused_;  // backward: the maps of the states that are made again
};

/// One kernel makes all of a chunk's output or gradients, so a group's exchange overlaps the work
/// of other groups alone.
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
  /// A group's states at the edges of its segments if nothing comes in.
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

  /// The states before all chunks, with the prefix that the forward pass was given.
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

}  // namespace

std::optional<ClaimedScans> claimed_scans(const std::string& scan, const Shape& shape, Split split,
                                          const std::vector<Direction>& directions) {
  ClaimedScans all;
  std::vector<std::int64_t> sent(split.ranks, 0);
  for (const Direction direction : directions) {
    split.direction = direction;
    const auto claim = find_collective(scan).claim(shape, split);
    if (!claim) return std::nullopt;
    all.hops.push_back(claim->hops);
    for (int rank = 0; rank < split.ranks; ++rank) {
      const int home = direction == Direction::forward ? rank : split.ranks - 1 - rank;
      sent[home] += claimed_bytes(find_collective(scan), shape, split, rank).value();
    }
  }
  all.bytes = *std::max_element(sent.begin(), sent.end());
  return all;
}

std::unique_ptr<LinearPass> linear_pass(Schedule& schedule, const PassInputs& inputs) {
  if (has_matrices(inputs.layer.rule)) return matrix_pass(schedule, inputs);
  if (inputs.layer.segmented) return std::make_unique<SegmentedPass>(schedule, inputs);
  return std::make_unique<ChunkedPass>(schedule, inputs);
}

}  // namespace baton
