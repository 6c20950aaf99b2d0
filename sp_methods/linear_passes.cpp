// SPDX-License-Identifier: Apache-2.0
// Head groups, and the choice of form.
#include "sp_methods/linear_passes.hpp"

#include "sp_methods/linear_pass_forms.hpp"

namespace baton {

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

Slice LinearPass::group_of(const Slice& all, int group) const {
  return all.block(group, static_cast<std::int64_t>(heads_.size()), share_.d_k * share_.d_v);
}

std::unique_ptr<LinearPass> forward_pass(Schedule& schedule, const Layer& layer, const LayerTensors& tensors,
                                         const Slice& prefix, bool is_first) {
  const auto form = layer.segmented ? segmented_forward : chunked_forward;
  return form(schedule, layer, tensors, prefix, is_first);
}

std::unique_ptr<LinearPass> backward_pass(Schedule& schedule, const Layer& layer, const LayerTensors& tensors,
                                          const Slice& prefix, bool is_first, bool is_last) {
  const auto form = layer.segmented ? segmented_backward : chunked_backward;
  return form(schedule, layer, tensors, prefix, is_first, is_last);
}

}  // namespace baton
