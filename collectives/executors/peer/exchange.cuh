// SPDX-License-Identifier: Apache-2.0
// What the rounds of one prepared case share: inboxes and flags in the heap, counters in this GPU's memory, the record of
// what a thread waited for in vain.
#pragma once

#include <cstdint>
#include <string>

#include "collectives/executors/peer/device/kernel.cuh"
#include "collectives/executors/peer/heap.cuh"
#include "collectives/schedule/schedule.hpp"

namespace baton {

class PeerExchange {
 public:
  /// `ranks` must outlive it. A thread gives up after `limit_seconds` of waiting. Collective.
  explicit PeerExchange(const CudaRanks& ranks, double limit_seconds = 5);
  ~PeerExchange();
  PeerExchange(const PeerExchange&) = delete;
  PeerExchange& operator=(const PeerExchange&) = delete;

  /// Empties all inboxes, of `packets` packets and `messages` messages for `ctas` blocks, and starts counting rounds anew.
  /// The same on all ranks, none of which has a round under way. Collective. Throws SystemError.
  void reset(std::int64_t packets, int messages, unsigned ctas);

  const PeerRoute& route() const { return route_; }
  const PeerLayout& layout() const { return layout_; }
  const PeerHeap& heap() const { return heap_; }

  /// What was waited for in vain, told in terms of the rank's schedule; an empty string if nothing was. When no round is
  /// under way.
  std::string fault(const Schedule& schedule) const;

 private:
  const CudaRanks& ranks_;
  PeerHeap heap_;
  PeerRoute route_;
  PeerLayout layout_;
};

}  // namespace baton
