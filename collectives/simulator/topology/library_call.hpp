// SPDX-License-Identifier: Apache-2.0
// The time of a collective call of a library, such as NCCL, between the ranks of one node.
//
// A library has several protocols, and chooses one by an estimate of its own. In P ranks a ring
// takes P - 1 steps, so at a given size of a rank's share the time is linear in P. Each protocol
// has two curves, for few and for more ranks; every other rank count lies on the line through both.
// Beyond them a rank adds no more than a step took so far: what grows faster between both curves is
// a path that few ranks have for themselves.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "collectives/simulator/topology/curve.hpp"

namespace baton {

/// A protocol of a library: how it is chosen, and the time that it takes.
struct LibraryProtocol {
  std::string name;
  /// The library's estimate for P ranks: base + (P - 1) * (step + share / bytes_per_second). The
  /// protocol with the least estimate runs.
  double base_seconds = 0;
  double step_seconds = 0;
  double bytes_per_second = 1;
  /// Seconds of a call by the bytes of a rank's share, for `few_ranks` and for `more_ranks`.
  Curve few, more;

  double estimate(int ranks, double share) const {
    return base_seconds + (ranks - 1) * (step_seconds + share / bytes_per_second);
  }
};

/// A collective call of a library.
struct LibraryCall {
  int few_ranks = 2;
  int more_ranks = 4;
  /// Seconds for each rank that a call takes at least, since one thread starts it on all ranks.
  double start_seconds = 0;
  /// At least one.
  std::vector<LibraryProtocol> protocols;
  /// The source of the numbers.
  std::string source;

  /// The protocol that the library takes between `ranks` ranks.
  const LibraryProtocol& protocol(int ranks, double share) const;
  /// Seconds of a call. The `share` has the bytes of all operands' largest over `ranks`.
  double seconds(int ranks, double share) const;
};

inline const LibraryProtocol& LibraryCall::protocol(int ranks, double share) const {
  return *std::min_element(protocols.begin(), protocols.end(),
                           [&](const LibraryProtocol& one, const LibraryProtocol& other) {
                             return one.estimate(ranks, share) < other.estimate(ranks, share);
                           });
}

inline double LibraryCall::seconds(int ranks, double share) const {
  const LibraryProtocol& chosen = protocol(ranks, share);
  const double few = chosen.few.seconds(share), more = chosen.more.seconds(share);
  double each = (more - few) / (more_ranks - few_ranks);
  if (ranks > more_ranks) each = std::min(each, more / (more_ranks - 1));
  return std::max(more + (ranks - more_ranks) * each, ranks * start_seconds);
}

}  // namespace baton
