// SPDX-License-Identifier: Apache-2.0
// The kernel that runs a rank's program, one launch a round.
//
//   for each instruction, each thread, each of the thread's packets:
//     load what is in memory; take the first look at the inbox slot
//     wait for the packet, empty the slot of the round before; fold; store; send
//
// Two transports. Packets that carry their own flag (peer_packet.cuh) need no fence: a value is under way to the next
// rank as soon as it has come. The other one is the reference that rests on nothing but release and acquire: all packets
// of an instruction, a fence, a flag for each sending block and message.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/executors/cuda/memory.cuh"
#include "collectives/executors/peer/compiler/program.hpp"
#include "collectives/executors/peer/device/round.cuh"

namespace baton {

/// What an instruction is, for the device to have a loop of its own for the frequent ones. Tidy: whole packets on 16
/// bytes, x kept once or not at all, y not kept; one receiver, or where x comes from memory any number; one decay a
/// packet and that in memory, x the earlier operand.
enum class PeerForm : unsigned char { any, tidy_load, tidy_load_fold, tidy_arrival, tidy_arrival_fold };

/// An instruction with addresses instead of slices and messages. Slots are those of generation 0.
struct alignas(16) PeerDeviceInstruction {
  const float* from;
  std::byte* arrival;  // null where x is in memory
  float* keep[PeerLimits::stores];
  const float* decay;
  std::byte* decay_arrival;  // null where the decays are in memory
  const float* other;        // null for zeros
  float* results[PeerLimits::stores];
  std::byte* sends[PeerLimits::sends];
  const unsigned* arrival_flags;
  const unsigned* decay_flags;
  unsigned* send_flags[PeerLimits::sends];
  unsigned count;
  unsigned packets;
  unsigned column;  // below the number of threads
  unsigned row;
  unsigned first_decay;
  int step;
  int arrival_peer;
  int decay_peer;
  PeerForm form;
  unsigned char kept;
  unsigned char resulting;
  unsigned char sent;
  unsigned char sends_y;  // one bit a send
  bool folds;
  bool x_is_later;
  bool clears_decays;
  bool whole;  // all slices lie on 16 bytes
  bool barrier;
};

enum class PeerWire { f32, bf16 };
enum class PeerTransport { packets, fenced };

/// How an operation is run. Fences and flags ask for the route's number of blocks in every kernel.
struct PeerLaunch {
  PeerWire wire = PeerWire::f32;
  PeerTransport transport = PeerTransport::packets;
  unsigned ctas = 1;
  unsigned threads = 512;
};

/// Where the parts of a rank's heap begin: flags of started rounds, flags of messages, the inbox.
struct PeerLayout {
  std::size_t message_flags = 0;
  std::size_t inbox = 0;
  std::size_t bytes = 0;
};

/// Elements in a packet.
int packet_elements(PeerWire wire);

/// Threads a block, at most `most`, for `packets` packets on `ctas` blocks: few packets run on all blocks too, in smaller
/// ones.
unsigned peer_threads(std::int64_t packets, unsigned ctas, unsigned most = 512);

/// What the addresses of a case's instructions are made of.
struct PeerPlace {
  const DeviceMemory& memory;
  const PeerRoute& route;
  /// Of all ranks, by rank.
  const std::vector<std::byte*>& heaps;
  const PeerLayout& layout;
};

/// The bit of a rank in a mask.
constexpr std::uint64_t bit_of(int rank) { return std::uint64_t{1} << rank; }

/// One operation's instructions in device memory, ready to run.
class PeerKernel {
 public:
  /// `part` says who sends to this rank and which part of a round this is; the receivers are found here. What `place`
  /// refers to must outlive it.
  PeerKernel(const PeerProgram& program, const PeerOperation& operation, const PeerPart& part,
             const PeerPlace& place, const PeerLaunch& launch);
  ~PeerKernel();
  PeerKernel(const PeerKernel&) = delete;
  PeerKernel& operator=(const PeerKernel&) = delete;

  void enqueue(cudaStream_t stream) const;

 private:
  PeerRoute route_;
  PeerPart part_;
  PeerLaunch launch_;
  unsigned count_ = 0;
  PeerDeviceInstruction first_{};
  PeerDeviceInstruction* program_ = nullptr;
};

}  // namespace baton
