// SPDX-License-Identifier: Apache-2.0
// A graph of things that wait for one another, and the order in which they can happen.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace baton {

/// Nodes 0..nodes-1 and edges "after waits for before".
class Graph {
 public:
  explicit Graph(int nodes) : nodes_(nodes) {}

  void add_edge(int before, int after) { edges_.emplace_back(before, after); }

  /// What sorting found.
  struct Sorted {
    /// Nodes in an order that respects every edge; those on or behind a cycle are missing.
    std::vector<int> order;
    /// For each node in `order`, the largest weight of a chain that ends with it, its own included.
    std::vector<int> depth;
    /// The nodes of one cycle, each waiting for the next, the last for the first; empty where there is none.
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
