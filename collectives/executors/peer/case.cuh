// SPDX-License-Identifier: Apache-2.0
// One prepared case of the peer executor: a rank's buffers, and the kernel that runs its schedule or native.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/executors/cuda/memory.cuh"
#include "collectives/executors/peer/device/kernel.cuh"
#include "collectives/executors/peer/exchange.cuh"
#include "collectives/executors/peer/native.cuh"
#include "collectives/executors/peer/streams.cuh"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// As many blocks as there are multiprocessors.
inline constexpr unsigned all_ctas = std::numeric_limits<unsigned>::max();

class PeerCase {
 public:
  /// Why it cannot be made, or an empty string.
  static Refusal unsupported(std::span<const Schedule> schedules, PeerWire wire, PeerTransport transport);

  /// From the checked schedules of all ranks; no native among them asks for other schedules instead. Takes over
  /// `exchange`, which must outlive it. Exchange kernels have `beside_work_ctas` blocks while local kernels may run, and
  /// otherwise all. Collective. Throws SystemError.
  PeerCase(const CudaRanks& ranks, PeerExchange& exchange, std::span<const Schedule> schedules, PeerWire wire,
           PeerTransport transport, unsigned beside_work_ctas = all_ctas);

  /// Whether some rank's exchange runs while its local kernels may.
  bool exchanges_beside_work() const { return exchanges_beside_work_; }

  /// Enqueues one round; may be captured into a graph. With `marks` for `step_times`.
  void enqueue(cudaStream_t stream, Stopwatch* marks = nullptr) const;
  /// When the steps of a marked round ran, once it has ended; nothing where a native stands for them.
  std::vector<StepTime> step_times(const Stopwatch& marks) const;

  DeviceMemory& memory() { return memory_; }
  const DeviceMemory& memory() const { return memory_; }

  /// What a round waited for in vain, or an empty string. When none is under way.
  std::string fault() const { return exchange_.fault(schedule_); }

 private:
  void make_streams(const CudaRanks& ranks, std::span<const Schedule> schedules, PeerTransport transport,
                    unsigned beside_work_ctas);
  void make_native(std::span<const Schedule> schedules);

  PeerExchange& exchange_;
  Schedule schedule_;
  DeviceMemory memory_;
  PeerWire wire_;
  bool exchanges_beside_work_ = false;
  std::unique_ptr<PeerStreams> streams_;  // where the schedule is run step by step
  const PeerNative* native_ = nullptr;    // where one native stands for it
  DeviceOperands operands_;               // the native's
  std::vector<std::byte*> inboxes_;       // of all ranks
};

/// The native that stands for all of a rank's schedule, or a null pointer.
const PeerNative* only_peer_native(const Schedule& schedule);

}  // namespace baton
