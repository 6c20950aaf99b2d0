// SPDX-License-Identifier: Apache-2.0
// The two passes of gated linear attention on one rank, as compute steps around an exchange.
//
//   record_local_states   reduces a head group's tokens to a map, which may then be exchanged
//   record_overlappable   all work that needs nothing from other ranks
//   record_outputs        results that need the group's incoming state
//
// The backward pass recomputes the states from the saved prefix, so that it exchanges once and not
// twice.
// Source: "ZeCO", arXiv 2507.01004, algorithms 1 and 3.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/collective.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {

/// The arguments of a pass.
struct PassInputs {
  const Layer& layer;
  LayerTensors tensors;
  Slice prefix;  ///< [heads, d_k, d_v], the state before this rank.
  bool is_backward = false;
  bool is_first = false;  ///< No earlier rank: the prefix is zero.
  bool is_last = false;   ///< No later rank: no state gradient comes in.
};

/// One pass of one rank.
class LinearPass {
 public:
  virtual ~LinearPass() = default;

  /// Record the steps named above.
  virtual void record_local_states(int group) = 0;
  virtual void record_overlappable() = 0;
  virtual void record_outputs(int group) = 0;

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

  LinearPass(Schedule& schedule, const PassInputs& inputs) : schedule_(schedule), inputs_(inputs) {
    const Slice all = inputs.is_backward ? schedule.scratch("suffix", inputs.prefix.count) : inputs.prefix;
    const std::int64_t state = share().d_k * share().d_v;
    for (int g = 0; g < inputs.layer.groups; ++g) {
      const Map incoming{{}, all.block(g, inputs.layer.groups, state), share().d_v};
      const Work work{(incoming.state.offset - all.offset) / state, incoming.state.count / state, 1};
      groups_.push_back({work, schedule.scratch_map("map", incoming), incoming});
    }
  }

  const GlaShape& share() const { return inputs_.layer.share; }
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

/// What a rank's scans of states claim.
struct ClaimedScans {
  std::int64_t bytes = 0;  ///< All of them, by the home rank that sends most.
  std::vector<int> hops;   ///< Of each.
};

/// Scans of one group's maps in these directions, once each; empty if the scan claims nothing.
std::optional<ClaimedScans> claimed_scans(const std::string& scan, const Shape& shape, Split split,
                                          const std::vector<Direction>& directions);

/// A pass whose kernels keep the state of every chunk, and one whose kernels work in segments.
std::unique_ptr<LinearPass> chunked_pass(Schedule& schedule, const PassInputs& inputs);
std::unique_ptr<LinearPass> segmented_pass(Schedule& schedule, const PassInputs& inputs);

}  // namespace baton
