// SPDX-License-Identifier: Apache-2.0
// How ranks lie on nodes: filled one after the other in the order of home ranks, told in scan order.
#pragma once

#include <algorithm>

namespace baton {

/// Nodes and ranks are counted in scan order. The last home node may be partly filled; where ranks count from the other
/// end it is the first one, and node boundaries lie between the same home ranks as before.
class Nodes {
 public:
  /// `ranks` of them, `ranks_a_node` on each full node; 0, or more than there are ranks, for all on one.
  Nodes(int ranks, int ranks_a_node, bool reversed)
      : ranks_(ranks),
        full_(ranks_a_node == 0 ? ranks : std::min(ranks, ranks_a_node)),
        reversed_(reversed) {}

  int count() const { return (ranks_ + full_ - 1) / full_; }
  /// The node that `rank` lies on.
  int of(int rank) const { return reversed_ ? count() - 1 - (ranks_ - 1 - rank) / full_ : rank / full_; }
  /// The first rank of `node`; of node `count()` the number of ranks.
  int begin(int node) const {
    return reversed_ ? std::max(0, ranks_ - (count() - node) * full_) : std::min(ranks_, node * full_);
  }
  int end(int node) const { return begin(node + 1); }
  /// Ranks on `node`.
  int size(int node) const { return end(node) - begin(node); }
  /// Ranks on a full node.
  int full_size() const { return full_; }

 private:
  int ranks_;
  int full_;
  bool reversed_;
};

}  // namespace baton
