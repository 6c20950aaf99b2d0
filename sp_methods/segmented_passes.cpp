// SPDX-License-Identifier: Apache-2.0
// The passes as a device does them: one block a head and segment, few states kept, inside and across of chunks at once.
#include "sp_methods/kernels/host/gla/segment_costs.hpp"
#include "sp_methods/kernels/host/gla/segments.hpp"
#include "sp_methods/layer_steps.hpp"
#include "sp_methods/linear_pass_forms.hpp"

namespace baton {
namespace {

SegmentEdges<OnHost> edges_at(const HostOperands& x, std::size_t at) {
  return {x.reads[at].data(), x.reads[at + 1].data(), pointer(x.reads[at + 2])};
}

/// What both passes do with the states of their segments.
class SegmentedPass : public LinearPass {
 protected:
  /// A group's states at the edges of its segments.
  struct Edges {
    Slice states, gates, totals;
  };

  SegmentedPass(Schedule& s, const Layer& layer, const LayerTensors& x, const Slice& incoming, bool is_first)
      : LinearPass(s, layer, x, incoming, is_first), dtype_(layer.dtype), blocks_(layer.kernels.blocks) {}

  Segments cut(int g) const {
    const std::int64_t heads = heads_[g].shape.heads;
    return {share_, heads_[g].work, segment_count(share_, heads, blocks_), dtype_};
  }
  SegmentCosts costs(int g) const { return {heads_[g].shape, cut(g).count, bytes_of(dtype_)}; }

  Edges make_edges(int g) {
    const std::int64_t heads = heads_[g].shape.heads, segments = cut(g).count, d_k = share_.d_k;
    return {schedule_.scratch("segment_states", heads * (segments + 1) * d_k * share_.d_v),
            schedule_.scratch("segment_gates", heads * (segments + 1) * d_k),
            schedule_.scratch("segment_totals", heads * segments * d_k)};
  }

  void record_states(int g, const Edges& edges) {
    schedule_.compute({"segment_states",
                       [c = cut(g)](const HostOperands& x) {
                         segment_states({x.writes[0].data(), nullptr, x.writes[1].data()}, inputs_of(x), c);
                       },
                       costs(g).states_flops(), costs(g).states_bytes(), cut(g)},
                      {edges.states, edges.totals}, input_slices(tensors_));
  }

  void record_scan(int g, const Edges& edges, const Map& map) {
    schedule_.compute({"scan_segments",
                       [c = cut(g)](const HostOperands& x) {
                         std::vector<float> totals(x.reads[1].begin(), x.reads[1].end());
                         scan_segments({x.writes[0].data(), x.writes[1].data(), totals.data()},
                                       x.writes[2].data(), x.writes[3].data(), c);
                       },
                       costs(g).scan_flops(), costs(g).scan_bytes(), cut(g)},
                      {edges.states, edges.gates, map.decay, map.state}, {edges.states, edges.totals});
  }

  Dtype dtype_;
  std::int64_t blocks_;
};

class SegmentedForward : public SegmentedPass {
 public:
  SegmentedForward(Schedule& s, const Layer& layer, const LayerTensors& x, const Slice& prefix, bool is_first)
      : SegmentedPass(s, layer, x, prefix, is_first) {
    for (std::size_t g = 0; g < heads_.size(); ++g) edges_.push_back(make_edges(static_cast<int>(g)));
  }

  void summarise(int g) override {
    record_states(g, edges_[g]);
    record_scan(g, edges_[g], maps_[g]);
  }

  /// Nothing: the output of a chunk is made in one piece. Other groups' work lies beside a group's exchange.
  void beside() override {}

  void finish(int g) override {
    record<SegmentOutput>(
        schedule_, cut(g),
        {.in = inputs(tensors_),
         .before = {.states = edges_[g].states, .gates = edges_[g].gates, .incoming = arrived(g)},
         .o = tensors_.o});
  }

 private:
  std::vector<Edges> edges_;
};

class SegmentedBackward : public SegmentedPass {
 public:
  SegmentedBackward(Schedule& s, const Layer& layer, const LayerTensors& x, const Slice& prefix,
                    bool is_first, bool is_last)
      : SegmentedPass(s, layer, x, s.scratch("suffix", prefix.count), is_last),
        prefix_(prefix),
        has_prefix_(!is_first) {
    for (std::size_t g = 0; g < heads_.size(); ++g) {
      after_.push_back(make_edges(static_cast<int>(g)));
      const std::int64_t chunks = heads_[g].shape.heads * share_.chunks();
      starts_.push_back(s.scratch("chunk_starts", chunks * share_.d_k * share_.d_v, dtype_));
    }
  }

  void summarise(int g) override {
    schedule_.compute({"segment_state_gradients",
                       [c = cut(g)](const HostOperands& x) {
                         segment_state_gradients({x.writes[0].data(), nullptr, x.writes[1].data()},
                                                 inputs_of(x), x.reads[4].data(), c);
                       },
                       costs(g).states_flops(), costs(g).state_gradients_bytes(), cut(g)},
                      {after_[g].states, after_[g].totals}, with(input_slices(tensors_), {tensors_.d_o}));
    record_scan(g, after_[g], maps_[g]);
  }

  void beside() override {
    for (int g = 0; g < static_cast<int>(heads_.size()); ++g) record_starts(g);
  }

  void finish(int g) override {
    auto reads = with(input_slices(tensors_),
                      {tensors_.d_o, starts_[g], after_[g].states, after_[g].gates, arrived(g)});
    schedule_.compute({"segment_gradients",
                       [c = cut(g)](const HostOperands& x) {
                         segment_gradients(gradients_of(x), inputs_of(x), x.reads[4].data(),
                                           x.reads[5].data(), edges_at(x, 6), c);
                       },
                       costs(g).gradients_flops(), costs(g).gradients_bytes(), cut(g)},
                      gradient_slices(tensors_), std::move(reads));
  }

 private:
  /// The state before every chunk, from the prefix that the forward pass was given.
  void record_starts(int g) {
    const Edges before = make_edges(g);
    const Map map = schedule_.scratch_map("unused_map", maps_[g]);
    record_states(g, before);
    record_scan(g, before, map);
    const Slice prefix = has_prefix_ ? group_of(prefix_, g) : Slice{};
    schedule_.compute({"chunk_starts",
                       [c = cut(g)](const HostOperands& x) {
                         chunk_starts(x.writes[0].data(), inputs_of(x), edges_at(x, 4), c);
                       },
                       costs(g).chunk_starts_flops(), costs(g).chunk_starts_bytes(), cut(g)},
                      {starts_[g]}, with(input_slices(tensors_), {before.states, before.gates, prefix}));
  }

  Slice prefix_;
  bool has_prefix_;
  std::vector<Edges> after_;
  std::vector<Slice> starts_;
};

}  // namespace

std::unique_ptr<LinearPass> segmented_forward(Schedule& schedule, const Layer& layer,
                                              const LayerTensors& tensors, const Slice& prefix,
                                              bool is_first) {
  return std::make_unique<SegmentedForward>(schedule, layer, tensors, prefix, is_first);
}

std::unique_ptr<LinearPass> segmented_backward(Schedule& schedule, const Layer& layer,
                                               const LayerTensors& tensors, const Slice& prefix,
                                               bool is_first, bool is_last) {
  return std::make_unique<SegmentedBackward>(schedule, layer, tensors, prefix, is_first, is_last);
}

}  // namespace baton
