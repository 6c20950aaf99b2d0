// SPDX-License-Identifier: Apache-2.0
// The passes as the chunkwise kernels do them: what needs nothing of other ranks beside the exchange, the rest after it.
#include "sp_methods/kernels/host/gla/inter_gradients.hpp"
#include "sp_methods/kernels/host/gla/inter_output.hpp"
#include "sp_methods/kernels/host/gla/intra_gradients.hpp"
#include "sp_methods/kernels/host/gla/intra_output.hpp"
#include "sp_methods/layer_steps.hpp"
#include "sp_methods/linear_pass_forms.hpp"

namespace baton {
namespace {

/// Edge states from operands: states, decays and what came in, from place `at` on.
EdgeStates edges_at(const HostOperands& x, std::size_t at) {
  return {x.reads[at].data(), x.reads[at + 1].data(), pointer(x.reads[at + 2])};
}

ChunkStates chunk_states_of(const HostOperands& x) {
  return {x.writes[0].data(), x.writes[1].data(), x.writes[2].data(), x.writes[3].data()};
}

/// Keeps the states of all chunks.
class ChunkedPass : public LinearPass {
 protected:
  using LinearPass::LinearPass;

  /// A group's states at the edges of its chunks.
  struct Edges {
    Slice states;
    Slice decays;
  };

  Edges make_edges(int group) {
    const std::int64_t edges = heads_[group].shape.heads * share_.chunks();
    return {schedule_.scratch("states", edges * share_.d_k * share_.d_v),
            schedule_.scratch("decays", edges * share_.d_k)};
  }
};

class ChunkedForward : public ChunkedPass {
 public:
  ChunkedForward(Schedule& s, const Layer& layer, const LayerTensors& x, const Slice& prefix, bool is_first)
      : ChunkedPass(s, layer, x, prefix, is_first) {
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

class ChunkedBackward : public ChunkedPass {
 public:
  ChunkedBackward(Schedule& s, const Layer& layer, const LayerTensors& x, const Slice& prefix, bool is_first,
                  bool is_last)
      : ChunkedPass(s, layer, x, s.scratch("suffix", prefix.count), is_last),
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

std::unique_ptr<LinearPass> chunked_forward(Schedule& schedule, const Layer& layer,
                                            const LayerTensors& tensors, const Slice& prefix, bool is_first) {
  return std::make_unique<ChunkedForward>(schedule, layer, tensors, prefix, is_first);
}

std::unique_ptr<LinearPass> chunked_backward(Schedule& schedule, const Layer& layer,
                                             const LayerTensors& tensors, const Slice& prefix, bool is_first,
                                             bool is_last) {
  return std::make_unique<ChunkedBackward>(schedule, layer, tensors, prefix, is_first, is_last);
}

}  // namespace baton
