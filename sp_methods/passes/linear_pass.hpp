// SPDX-License-Identifier: Apache-2.0
// A pass of linear attention on one rank, as compute steps around an exchange.
//
//   record_map            reduces a head group's tokens to a map, which may then be exchanged
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

/// The parts of a rank's own map that an exchange reads.
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
  /// Memory for the gradient of the state behind this rank, shaped like `prefix`; memory of the
  /// pass's own if empty.
  Slice suffix = {};
  /// Memory for the map of all heads, decay before state, of a pass with one group; memory of the
  /// pass's own if empty.
  Slice map = {};
  /// The matrices of the tokens' map, which a pass of the gradient alone reads; an input of the
  /// schedule if empty.
  Slice matrices = {};
  /// On the first rank the state before the sequence, and on the last rank the gradient of the one
  /// behind it, shaped like `prefix`; empty for zeros, and on other ranks.
  Slice initial_state = {}, d_final_state = {};
  bool is_backward = false;
  bool is_first = false;  ///< True if no rank is earlier, so that the prefix is zero.
  bool is_last = false;   ///< True if no rank is later, so that no state gradient comes in.
  /// Forward pass of the same schedule, whose states a backward pass may use; null for none.
  const LinearPass* forward = nullptr;
  /// The parts of the map that this pass makes, if maps have matrices. A matrix that only a later
  /// pass reads is one of them.
  MapUse makes = {};
  /// True if a forward pass with matrices makes outputs from zero and an operator that corrects
  /// them, while the states travel. Otherwise it makes outputs from the state that came.
  bool corrects = false;
  /// False if no work may be done before the state of another rank is there.
  bool works_ahead = true;
};

/// A map of the shape of `like` in the memory `packed`, decay before state.
inline Map map_in(const Slice& packed, const Map& like) {
  const std::int64_t decays = like.decay_count();
  return {packed.part(0, decays), packed.part(decays, like.state.count), like.row, like.form};
}

/// One pass of one rank.
class LinearPass {
 public:
  virtual ~LinearPass() = default;

  /// Records the steps that reduce a head group's tokens to a map, which may then be exchanged. A
  /// state before the whole sequence becomes part of the first rank's map.
  void record_map(int group) {
    record_local_states(group);
    const bool is_read = !has_matrices(inputs_.layer.rule) || (inputs_.makes.matrix && inputs_.makes.state);
    if (entering(group).empty() || !is_read) return;
    const Map& own = map(group);
    schedule_.combine(own.only_state(), {{}, entering(group), own.row, own.form}, own);
  }
  /// Records the group's state behind these tokens, in a backward pass the gradient of the one
  /// before them, once the state that comes in is there.
  void record_behind(int group, const Slice& into) const {
    const Map& own = map(group);
    if (state_comes_in())
      schedule_.combine({{}, into, own.row, own.form}, incoming(group), own);
    else
      schedule_.copy(into, own.state);
  }
  /// Records the states of all groups behind the whole sequence into `end`, which is shaped like
  /// the prefix; nothing if it is empty.
  void record_end(const Slice& end) const {
    for (int g = 0; g < groups() && !end.empty(); ++g) record_behind(g, of_group(end, g));
  }
  /// Records all work that needs nothing from other ranks.
  virtual void record_overlappable() = 0;
  /// Records the results that need the group's incoming state.
  virtual void record_outputs(int group) = 0;

  /// Makes steps recorded later work on other tokens, as many as before, in the same memory. The
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
  /// The group's map, decay before state.
  const Map& map(int group) const { return groups_[group].map; }
  /// The place where the group's state from other ranks must arrive.
  const Map& incoming(int group) const { return groups_[group].incoming; }
  /// True if a state comes from another rank, or in a backward pass the gradient of one.
  bool state_comes_in() const { return !(is_backward() ? inputs_.is_last : inputs_.is_first); }

 protected:
  /// The heads of one group, and the states that it exchanges.
  struct Group {
    Work work;
    Map map;
    Map incoming;
  };

  /// Makes the groups of a pass. Their maps lie where those of `maps` lie, or in memory of their
  /// own if it is null.
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
      Map map = maps != nullptr      ? maps->map(g)
                : inputs.map.empty() ? schedule.scratch_map("map", incoming)
                                     : map_in(inputs.map, incoming);
      map.form = form;
      groups_.push_back({work, map, incoming});
    }
  }

  const LayerShape& share() const { return inputs_.layer.share; }
  const LayerTensors& tensors() const { return inputs_.tensors; }
  bool is_backward() const { return inputs_.is_backward; }
  const Work& work(int group) const { return groups_[group].work; }
  virtual void record_local_states(int group) = 0;

  /// The group's state from before this rank; empty if it is zero.
  Slice prefix(int group) const {
    return of_group(inputs_.is_first ? inputs_.initial_state : inputs_.prefix, group);
  }
  /// The group's state before the tokens, in a backward pass the gradient of the one behind them,
  /// once the exchange is over; empty if it is zero.
  Slice arrived(int group) const { return state_comes_in() ? incoming(group).state : entering(group); }

  Schedule& schedule_;

 private:
  /// The group's part of states of all heads.
  Slice of_group(const Slice& states, int group) const {
    return states.empty() ? Slice{} : states.block(group, groups(), share().d_k * share().d_v);
  }
  /// The group's state, or the gradient of one, that enters the sequence at this rank.
  Slice entering(int group) const {
    if (state_comes_in()) return {};
    return of_group(is_backward() ? inputs_.d_final_state : inputs_.initial_state, group);
  }

  PassInputs inputs_;
  std::vector<Group> groups_;
};

}  // namespace baton
