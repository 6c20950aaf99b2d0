// SPDX-License-Identifier: Apache-2.0
// Recording of the passes of gated linear attention.
#include "sp_methods/linear_passes.hpp"

#include "sp_methods/kernels/inter_gradients.hpp"
#include "sp_methods/kernels/inter_output.hpp"
#include "sp_methods/kernels/intra_gradients.hpp"
#include "sp_methods/kernels/intra_output.hpp"
#include "sp_methods/layer_steps.hpp"

namespace baton {
namespace {

/// Edge states from operands: states, decays and what came in, from place `at` on.
EdgeStates edges_at(const HostOperands& x, std::size_t at) {
  return {x.reads[at].data(), x.reads[at + 1].data(), pointer(x.reads[at + 2])};
}

ChunkStates chunk_states_of(const HostOperands& x) {
  return {x.writes[0].data(), x.writes[1].data(), x.writes[2].data(), x.writes[3].data()};
}

class ForwardPass : public LinearPass {
 public:
  ForwardPass(Schedule& s, const Layer& layer, const LayerTensors& x, const Slice& prefix, bool is_first)
      : LinearPass(s, layer, x, prefix, is_first) {
    for (std::size_t g = 0; g < heads_.size(); ++g) edges_.push_back(make_edges(static_cast<int>(g)));
  }

  void summarise(int g) override {
    const auto [work, shape] = heads_[g];
    schedule_.compute({"chunk_states",
                       [share = share_, work = work](const HostOperands& x) {
                         chunk_states(chunk_states_of(x), inputs_of(x), share, work);
                       },
                       chunk_states_flops(shape), chunk_states_bytes(shape)},
                      {edges_[g].states, edges_[g].decays, maps_[g].decay, maps_[g].state},
                      input_slices(tensors_));
  }

  void beside() override {
    schedule_.compute(
        {"intra_output",
         [share = share_](const HostOperands& x) { intra_output(x.writes[0].data(), inputs_of(x), share); },
         intra_output_flops(share_), intra_output_bytes(share_)},
        {tensors_.o}, input_slices(tensors_));
  }

  void finish(int g) override {
    const auto [work, shape] = heads_[g];
    schedule_.compute(
        {"inter_output",
         [share = share_, work = work](const HostOperands& x) {
           inter_output(x.writes[0].data(), inputs_of(x), edges_at(x, 4), share, work);
         },
         inter_output_flops(shape), inter_output_bytes(shape)},
        {tensors_.o},
        with(input_slices(tensors_), {edges_[g].states, edges_[g].decays, arrived(g), tensors_.o}));
  }

 private:
  std::vector<Edges> edges_;
};

class BackwardPass : public LinearPass {
 public:
  BackwardPass(Schedule& s, const Layer& layer, const LayerTensors& x, const Slice& prefix, bool is_first,
               bool is_last)
      : LinearPass(s, layer, x, s.scratch("suffix", prefix.count), is_last),
        prefix_(prefix),
        has_prefix_(!is_first) {
    for (std::size_t g = 0; g < heads_.size(); ++g) {
      before_.push_back(make_edges(static_cast<int>(g)));
      after_.push_back(make_edges(static_cast<int>(g)));
    }
  }

  void summarise(int g) override {
    const auto [work, shape] = heads_[g];
    schedule_.compute({"chunk_state_gradients",
                       [share = share_, work = work](const HostOperands& x) {
                         chunk_state_gradients(chunk_states_of(x), inputs_of(x), x.reads[4].data(), share,
                                               work);
                       },
                       chunk_state_gradients_flops(shape), chunk_state_gradients_bytes(shape)},
                      {after_[g].states, after_[g].decays, maps_[g].decay, maps_[g].state},
                      with(input_slices(tensors_), {tensors_.d_o}));
  }

  void beside() override {
    for (std::size_t g = 0; g < heads_.size(); ++g) recompute_states(g);
    schedule_.compute({"intra_gradients",
                       [share = share_](const HostOperands& x) {
                         intra_gradients(gradients_of(x), inputs_of(x), x.reads[4].data(), share);
                       },
                       intra_gradients_flops(share_), intra_gradients_bytes(share_)},
                      gradient_slices(tensors_), with(input_slices(tensors_), {tensors_.d_o}));
  }

  void finish(int g) override {
    const auto [work, shape] = heads_[g];
    const Slice prefix = has_prefix_ ? group_of(prefix_, g) : Slice{};
    auto reads = with(input_slices(tensors_), {tensors_.d_o, before_[g].states, before_[g].decays, prefix,
                                               after_[g].states, after_[g].decays, arrived(g)});
    schedule_.compute({"inter_gradients",
                       [share = share_, work = work](const HostOperands& x) {
                         inter_gradients(gradients_of(x), inputs_of(x), x.reads[4].data(), edges_at(x, 5),
                                         edges_at(x, 8), share, work);
                       },
                       inter_gradients_flops(shape), inter_gradients_bytes(shape)},
                      gradient_slices(tensors_), with(std::move(reads), gradient_slices(tensors_)));
  }

 private:
  Slice group_of(const Slice& all, int g) const {
    return all.block(g, static_cast<std::int64_t>(heads_.size()), share_.d_k * share_.d_v);
  }

  void recompute_states(std::size_t g) {
    const auto [work, shape] = heads_[g];
    const Slice map = schedule_.scratch("unused_map", maps_[g].packed().count);
    schedule_.compute({"chunk_states",
                       [share = share_, work = work](const HostOperands& x) {
                         chunk_states(chunk_states_of(x), inputs_of(x), share, work);
                       },
                       chunk_states_flops(shape), chunk_states_bytes(shape)},
                      {before_[g].states, before_[g].decays, map.part(0, maps_[g].rows()),
                       map.part(maps_[g].rows(), maps_[g].state.count)},
                      input_slices(tensors_));
  }

  Slice prefix_;
  bool has_prefix_;
  std::vector<Edges> before_;
  std::vector<Edges> after_;
};

}  // namespace

LinearPass::LinearPass(Schedule& schedule, const Layer& layer, const LayerTensors& tensors,
                       const Slice& all_incoming, bool is_first)
    : schedule_(schedule), share_(layer.share), tensors_(tensors), is_first_(is_first) {
  const std::int64_t state = share_.d_k * share_.d_v;
  for (int g = 0; g < layer.groups; ++g) {
    const Slice incoming = all_incoming.block(g, layer.groups, state);
    const std::int64_t count = incoming.count / state;
    Heads heads{{(incoming.offset - all_incoming.offset) / state, count, 1}, share_};
    heads.shape.heads = count;
    heads_.push_back(heads);
    incoming_.push_back({{}, incoming, share_.d_v});
    maps_.push_back(schedule.scratch_map("map", incoming_.back()));
  }
}

LinearPass::Edges LinearPass::make_edges(int group) {
  const std::int64_t edges = heads_[group].shape.heads * share_.chunks();
  return {schedule_.scratch("states", edges * share_.d_k * share_.d_v),
          schedule_.scratch("decays", edges * share_.d_k)};
}

std::unique_ptr<LinearPass> forward_pass(Schedule& schedule, const Layer& layer, const LayerTensors& tensors,
                                         const Slice& prefix, bool is_first) {
  return std::make_unique<ForwardPass>(schedule, layer, tensors, prefix, is_first);
}

std::unique_ptr<LinearPass> backward_pass(Schedule& schedule, const Layer& layer, const LayerTensors& tensors,
                                          const Slice& prefix, bool is_first, bool is_last) {
  return std::make_unique<BackwardPass>(schedule, layer, tensors, prefix, is_first, is_last);
}

}  // namespace baton
