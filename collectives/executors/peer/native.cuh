// SPDX-License-Identifier: Apache-2.0
// Natives of the `peer` executor: hand-tuned kernels that stand in for a schedule, and choices between schedules.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collectives/executors/cuda/kernel.cuh"
#include "collectives/executors/peer/device/kernel.cuh"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// What a native's body gets. It enqueues one kernel that enters the round (peer_round.cuh) and returns; it may be
/// captured into a graph.
struct PeerCall {
  cudaStream_t stream;
  const PeerRoute& route;
  /// The inboxes of all ranks, generation 0, by home rank.
  const std::vector<std::byte*>& inboxes;
  PeerWire wire = PeerWire::f32;
  /// This rank's place in scan order.
  int place = 0;
  bool reversed = false;
  int blocks = 1;
  const DeviceOperands& operands;

  /// The home rank of a place in scan order.
  int home(int at) const { return reversed ? route.ranks - 1 - at : at; }
};

struct PeerNative {
  std::function<void(const PeerCall&)> body = nullptr;
  /// Packets in an inbox, from the step's slices and the number of elements in a packet; the same on all ranks.
  std::function<std::int64_t(const Step&, int ranks, int packet_elements)> packets = nullptr;
  /// How many blocks of a GPU with so many multiprocessors do the work.
  std::function<unsigned(unsigned multiprocessors)> ctas = nullptr;
  /// Where it is there, nothing of the above is used: schedules of all ranks with the same buffers first, each of which
  /// may run instead. The executor times them and keeps the fastest.
  std::function<std::vector<std::vector<Schedule>>(std::span<const Schedule>)> candidates = nullptr;
};

/// Adds a native to the registry, before `main`.
struct RegisteredPeerNative {
  RegisteredPeerNative(std::string name, PeerNative native);
};

/// The native called `name`, or a null pointer.
const PeerNative* find_peer_native(const std::string& name);

}  // namespace baton
