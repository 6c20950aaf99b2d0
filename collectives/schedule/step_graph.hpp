// SPDX-License-Identifier: Apache-2.0
// The dependencies between steps, analysed once for every executor and the simulator.
//
//   waiters       the steps that wait for a step directly, the inverse of Step::waits_for
//   blockers      how many steps a step waits for: it is ready when so many have finished
//   feeding       whether a message waits for a step through any chain: such a step is urgent
//   latest group  the last group of messages that a step needs, where messages run group by group
//   Graph         an order in which all can happen, and the cycle that forbids one
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "collectives/schedule/schedule.hpp"

namespace baton {

/// The steps of one rank, or other numbered nodes, that wait for one another. Built in O(nodes +
/// edges).
class StepGraph {
 public:
  /// An edge {before, after}: `after` waits for `before`.
  using Edge = std::pair<int, int>;

  StepGraph() = default;
  /// Makes the graph of one rank's steps, which wait for one another by `Step::waits_for`.
  explicit StepGraph(const std::vector<Step>& steps);
  /// Makes the graph of nodes 0 to `nodes` - 1.
  StepGraph(int nodes, const std::vector<Edge>& edges);

  int size() const { return static_cast<int>(blockers_.size()); }
  /// The steps that wait for `step`, in the order of recording.
  std::span<const int> waiters(int step) const {
    return {waiters_.data() + first_waiter_[step], waiters_.data() + first_waiter_[step + 1]};
  }
  /// For each step the number of steps that it waits for.
  const std::vector<int>& blockers() const { return blockers_; }

  bool operator==(const StepGraph&) const = default;

 private:
  template <class ForEachEdge>
  void build(int nodes, const ForEachEdge& for_each_edge);

  std::vector<int> blockers_;
  std::vector<std::size_t> first_waiter_{0};
  std::vector<int> waiters_;
};

/// For each of the `steps` of `graph`, true if a message waits for it through any chain of steps.
std::vector<bool> feeding_messages(const std::vector<Step>& steps, const StepGraph& graph);

/// The last group among those of the steps that `step` waits for, -1 for none. `latest` holds, for
/// each earlier step, the last group that it or a step before it is in.
int latest_awaited_group(const Step& step, const std::vector<int>& latest);

/// For each step the last group that it, or a step that it waits for through any chain, is in; -1
/// for none. `groups` holds the group of each message and -1 for every other step.
std::vector<int> latest_groups(const std::vector<Step>& steps, const std::vector<int>& groups);

/// A graph of nodes 0 to nodes-1, whose edges say "after waits for before".
class Graph {
 public:
  explicit Graph(int nodes) : nodes_(nodes) {}

  void add_edge(int before, int after) { edges_.emplace_back(before, after); }

  /// The result of sorting.
  struct Sorted {
    /// Nodes in an order that respects every edge. Nodes on a cycle, or reachable from one, are
    /// missing.
    std::vector<int> order;
    /// For each node in `order`, the largest weight of a chain that ends with it, its own included.
    std::vector<int> depth;
    /// The nodes of one cycle, each waiting for the next, the last for the first; empty where there
    /// is none.
    std::vector<int> cycle;
  };

  /// Sorts in O(nodes + edges). `weights` has one entry a node.
  Sorted sort(const std::vector<int>& weights) const;

 private:
  std::vector<int> find_cycle(const std::vector<int>& blockers) const;

  int nodes_;
  std::vector<std::pair<int, int>> edges_;
};

}  // namespace baton
