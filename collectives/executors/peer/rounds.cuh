// SPDX-License-Identifier: Apache-2.0
// The two kinds of rounds that the peer executor prepares: one runs a rank's program by the
// interpreter, the other a native, a hand-tuned kernel that stands in for a schedule.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectives/executors/cuda/kernel.cuh"
#include "collectives/executors/cuda/memory.cuh"
#include "collectives/executors/cuda/steps.cuh"
#include "collectives/executors/peer/device/instruction.hpp"
#include "collectives/executors/peer/exchange.cuh"
#include "collectives/schedule/registry.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// The arguments of a native's body. It enqueues one kernel that enters the round (round.cuh) and
/// returns; it may be captured into a graph.
struct PeerCall {
  cudaStream_t stream;
  const PeerContext& context;
  /// The inboxes of all ranks, generation 0, by home rank.
  const std::vector<std::byte*>& inboxes;
  ElementFormat format = ElementFormat::f32;
  /// This rank's place in scan order.
  int place = 0;
  bool reversed = false;
  int blocks = 1;
  const DeviceOperands& operands;

  /// The home rank of a place in scan order.
  int home(int at) const { return reversed ? context.ranks - 1 - at : at; }
};

/// True where the operands of a scan, reads decay and state and writes `into`, have rows of whole
/// packets of `elements` elements and lie on 16 bytes.
bool is_whole_scan(const PeerCall& call, int elements);

struct PeerNative {
  std::function<void(const PeerCall&)> body = nullptr;
  /// Number of packets in an inbox, from the step's slices and the elements of a packet. It is the
  /// same on all ranks.
  std::function<std::int64_t(const Step&, int ranks, int packet_elements)> packets = nullptr;
  /// Number of thread blocks on a GPU with `multiprocessors` multiprocessors.
  std::function<unsigned(unsigned multiprocessors)> ctas = nullptr;
  /// If set, the other members are ignored. Returns alternative schedules of all ranks, which have
  /// the same buffers first; the executor times them and keeps the fastest.
  std::function<std::vector<std::vector<Schedule>>(std::span<const Schedule>)> candidates = nullptr;
};

/// All natives of the peer executor, by name.
Registry<PeerNative>& peer_natives();

/// Adds a native to the registry, before `main`. If its name is taken, the program ends with exit
/// code 2 and a text that says so.
struct RegisteredPeerNative {
  RegisteredPeerNative(const std::string& name, PeerNative native) {
    add_or_exit([&] { peer_natives().add(name, std::move(native)); });
  }
};

/// The native that stands for all of a rank's schedule, or a null pointer.
const PeerNative* only_peer_native(const Schedule& schedule);

/// A round of a schedule: exchange kernels in the caller's stream, compute steps in the other.
class ScheduleRound : public Round {
 public:
  /// Takes over `exchange`, as every rank does, with the program of this rank and its buffers in
  /// `memory`; both must outlive it. Exchanges that overlap compute steps run on `overlap_ctas`
  /// blocks, the others on all multiprocessors. Collective. Throws SystemError.
  ScheduleRound(const Schedule& schedule, const PeerProgram& program, const DeviceMemory& memory,
                PeerExchange& exchange, ElementFormat format, unsigned overlap_ctas);
  ~ScheduleRound() override;

  std::string fault() const override { return exchange_.fault(schedule()); }
  int faulty_step() const override { return exchange_.faulty_step(schedule()); }

 private:
  /// The kernel of an exchange operation.
  struct Kernel {
    KernelRole role;
    bool multiplies = false;
    unsigned ctas = 0;
    unsigned threads = 0;  // of a block
    PeerDeviceInstruction first{};
    PeerDeviceInstruction* program = nullptr;  // in device memory
    unsigned count = 0;
  };

  void enqueue_operation(std::size_t operation, cudaStream_t stream) const override;

  PeerExchange& exchange_;
  ElementFormat format_;
  PeerContext context_;
  std::vector<DeviceOperands> operands_;  // of each step
  std::vector<Kernel> kernels_;           // of each operation; unused for a compute step
};

/// A round of one native, which is one kernel.
class NativeRound : public Round {
 public:
  /// Takes over `exchange`, which must outlive it, as every rank does with `schedules`. Collective.
  /// Throws SystemError.
  NativeRound(std::span<const Schedule> schedules, int rank, const DeviceMemory& memory,
              PeerExchange& exchange, ElementFormat format);

  std::string fault() const override { return exchange_.fault(schedule()); }
  int faulty_step() const override { return exchange_.faulty_step(schedule()); }

 private:
  void enqueue_operation(std::size_t operation, cudaStream_t stream) const override;

  PeerExchange& exchange_;
  ElementFormat format_;
  const PeerNative& native_;
  DeviceOperands operands_;
  std::vector<std::byte*> inboxes_;  // of all ranks
};

}  // namespace baton
