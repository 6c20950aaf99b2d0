// SPDX-License-Identifier: Apache-2.0
// The two passes of gated linear attention on one rank, as compute steps around an exchange.
//
//   summarise   boils a head group's tokens down to a map; the exchange of the group may start
//   beside      everything that needs nothing from other ranks
//   finish      what a group's incoming state adds
//
//   forward:    chunk states                 | intra-chunk output                        | inter-chunk output
//   backward:   chunk state gradients        | chunk states again, intra-chunk gradients | inter-chunk gradients
//
//   in segments:
//   forward:    segment states, their scan   |                                           | output
//   backward:   their gradients, their scan  | segment states again, states of chunks    | gradients
//
// The backward pass recomputes the chunk states from the kept prefix, so that it exchanges once and not twice.
// Source: "ZeCO", arXiv 2507.01004, algorithms 1 and 3.
#pragma once

#include <memory>
#include <vector>

#include "sp_methods/sp_method.hpp"

namespace baton {

/// One pass of one rank.
class LinearPass {
 public:
  virtual ~LinearPass() = default;

  /// Records the steps named above.
  virtual void summarise(int group) = 0;
  virtual void beside() = 0;
  virtual void finish(int group) = 0;

  /// The group's map, decay before state, and where the state from other ranks must arrive.
  const Map& map(int group) const { return maps_[group]; }
  const Map& incoming(int group) const { return incoming_[group]; }

 protected:
  /// The heads of one group.
  struct Heads {
    Work work;
    GlaShape shape;  // with the group's heads alone, for cost formulas
  };

  /// `all_incoming` [heads, d_k, d_v]; `is_first` where nothing comes in.
  LinearPass(Schedule& schedule, const Layer& layer, const LayerTensors& tensors, const Slice& all_incoming,
             bool is_first);

  /// A group's part of a slice [heads, d_k, d_v] of all heads.
  Slice group_of(const Slice& all, int group) const;
  Slice arrived(int group) const { return is_first_ ? Slice{} : incoming_[group].state; }

  Schedule& schedule_;
  GlaShape share_;
  LayerTensors tensors_;
  std::vector<Heads> heads_;
  std::vector<Map> maps_;
  std::vector<Map> incoming_;
  bool is_first_;
};

/// The forward pass. `prefix` [heads, d_k, d_v]; `is_first` where there is none.
std::unique_ptr<LinearPass> forward_pass(Schedule& schedule, const Layer& layer, const LayerTensors& tensors,
                                         const Slice& prefix, bool is_first);

/// The backward pass. `is_first` where the forward prefix is none, `is_last` where no later rank is.
std::unique_ptr<LinearPass> backward_pass(Schedule& schedule, const Layer& layer, const LayerTensors& tensors,
                                          const Slice& prefix, bool is_first, bool is_last);

}  // namespace baton
