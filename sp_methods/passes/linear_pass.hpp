// SPDX-License-Identifier: Apache-2.0
// A pass of linear attention on one rank, as compute steps around an exchange.
//
//   record_local_states   reduces a head group's tokens to a map, which may then be exchanged
//   record_overlappable   all work that needs nothing from other ranks
//   record_outputs        results that need the group's incoming state
//
// The backward pass recomputes the states from the saved prefix, so that it exchanges once and not
// twice. In segments it takes the states at their edges from a forward pass of the same schedule.
// Under a delta rule or a low-rank rule a map has a matrix a head (matrix_pass.hpp).
// Source: "ZeCO", arXiv 2507.01004, algorithms 1 and 3.
#pragma once

#include <cstdint>
#include <vector>

#include "sp_methods/sp_method.hpp"

namespace baton {

class LinearPass;

/// What an exchange reads of a rank's own map.
struct MapUse {
  bool matrix = false;
  bool state = false;
};

/// The arguments of a pass.
struct PassInputs {
  const Layer& layer;
  LayerTensors tensors;
  /// The state before this rank: [heads, d_k, d_v], or [heads, d_v, d_k] where maps have matrices.
  Slice prefix;
  /// Shaped alike, for the gradient of the state behind it; memory of the pass's own if empty.
  Slice suffix = {};
  bool is_backward = false;
  bool is_first = false;  ///< No earlier rank: the prefix is zero.
  bool is_last = false;   ///< No later rank: no state gradient comes in.
  /// In a backward pass: the same schedule's forward pass, whose states it may use; null for none.
  const LinearPass* forward = nullptr;
  /// Maps with matrices: the parts of the map that this pass makes, the matrix for a later pass
  /// too.
  MapUse makes = {};
  /// Maps with matrices, forward: outputs from zero and an operator that corrects them, made while
  /// the states travel, in place of outputs made from the state that came.
  bool corrects = false;
};

/// One pass of one rank.
class LinearPass {
 public:
  virtual ~LinearPass() = default;

  /// Record the steps named above.
  virtual void record_local_states(int group) = 0;
  virtual void record_overlappable() = 0;
  virtual void record_outputs(int group) = 0;

  /// Steps recorded later are those of other tokens, as many as before, in the same memory. The
  /// layer stays.
  void move_to(const PassInputs& inputs) {
    inputs_.tensors = inputs.tensors;
    inputs_.prefix = inputs.prefix;
    inputs_.is_first = inputs.is_first;
    inputs_.is_last = inputs.is_last;
    if (is_backward()) return;
    for (Group& group : groups_)
      group.incoming.state =
          inputs.prefix.part(group.work.first_head * share().d_k * share().d_v, group.incoming.state.count);
  }

  int groups() const { return static_cast<int>(groups_.size()); }
  /// The group's map, decay before state, and where the state from other ranks must arrive.
  const Map& map(int group) const { return groups_[group].map; }
  const Map& incoming(int group) const { return groups_[group].incoming; }

 protected:
  /// The heads of one group, and the states that it exchanges.
  struct Group {
    Work work;
    Map map;
    Map incoming;
  };

  /// The maps lie where those of `maps` lie, or in memory of their own if that is null.
  LinearPass(Schedule& schedule, const PassInputs& inputs, const LinearPass* maps = nullptr)
      : schedule_(schedule), inputs_(inputs) {
    const Shape shape = shape_of_maps(inputs.layer, share().heads);
    MapForm form = shape.form();
    form.transposed = shape.map == MapKind::affine && inputs.is_backward;
    const Slice all = !inputs.is_backward     ? inputs.prefix
                      : inputs.suffix.empty() ? schedule.scratch("suffix", inputs.prefix.count)
                                              : inputs.suffix;
    const std::int64_t state = share().d_k * share().d_v;
    for (int g = 0; g < inputs.layer.groups; ++g) {
      const Map incoming{{}, all.block(g, inputs.layer.groups, state), shape.row(), form};
      const Work work{(incoming.state.offset - all.offset) / state, incoming.state.count / state, 1};
      Map map = maps == nullptr ? schedule.scratch_map("map", incoming) : maps->map(g);
      map.form = form;
      groups_.push_back({work, map, incoming});
    }
  }

  const LayerShape& share() const { return inputs_.layer.share; }
  const LayerTensors& tensors() const { return inputs_.tensors; }
  bool is_backward() const { return inputs_.is_backward; }
  const Work& work(int group) const { return groups_[group].work; }

  /// The group's state from before this rank, and what the exchange brought; empty where there is
  /// none.
  Slice prefix(int group) const {
    return inputs_.is_first ? Slice{} : inputs_.prefix.block(group, groups(), share().d_k * share().d_v);
  }
  Slice arrived(int group) const {
    const bool is_outermost = is_backward() ? inputs_.is_last : inputs_.is_first;
    return is_outermost ? Slice{} : incoming(group).state;
  }

  Schedule& schedule_;

 private:
  PassInputs inputs_;
  std::vector<Group> groups_;
};

}  // namespace baton
