// SPDX-License-Identifier: Apache-2.0
// What every kernel of the peer executor does to take part in a round: find out which round it is, wait until there is
// room in the others' inboxes, wait for packets, and say for what it waited in vain.
//
// An inbox has three generations, one a round in turn. A reader leaves a slot as it is and empties the same slot of the
// round before; so a generation is ready again when its owner has ended the round after it. A rank tells all others when
// it starts a round, and sends nothing in round e before the receiver has started round e-1: a scan does not synchronise
// its ranks, and the first one would otherwise run ahead of the last without end.
//
// Rounds are counted in device memory, so that a graph can be replayed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "collectives/executors/cuda/flag.cuh"
#include "collectives/executors/peer/device/packet.cuh"

namespace baton {

inline constexpr unsigned generations = 3;

/// What a thread waited for in vain. In host memory that the device writes.
struct PeerFault {
  enum class Kind : int { none, packet, flag, room, barrier };
  Kind kind = Kind::none;
  int step = -1;
  int peer = -1;
  int cta = 0;
  /// The packet of the message, or the block of the sender whose flag is missing.
  unsigned block = 0;
  /// The round that this rank is in, and the last one that the peer has started.
  unsigned round = 0;
  unsigned peer_round = 0;
};

/// Where a rank's kernels find everything; passed by value.
struct PeerRoute {
  int rank = 0;
  int ranks = 1;
  /// Of the largest kernel of a round.
  unsigned ctas = 1;
  /// The shared heaps of all ranks, by rank, and this rank's own.
  std::byte* const* heaps = nullptr;
  std::byte* heap = nullptr;
  /// From one generation of an inbox to the next.
  std::size_t generation_bytes = 0;
  /// In this GPU's memory: rounds that each block has ended, 1 when a thread gave up, arrivals at the barrier.
  unsigned* rounds = nullptr;
  unsigned* gave_up = nullptr;
  unsigned long long* arrivals = nullptr;
  PeerFault* fault = nullptr;
  /// Nanoseconds that a thread waits before it gives up.
  std::uint64_t limit = 0;
};

/// The flag in `heap` by which rank `from` tells that it has started a round. Flags are the heap's first bytes.
__device__ inline unsigned* started_flag(std::byte* heap, int from) {
  return reinterpret_cast<unsigned*>(heap) + from * flag_words;
}

/// Ends all waiting of this rank; the first one to give up says why.
__device__ __noinline__ inline void note_fault(const PeerRoute& route, PeerFault fault) {
  if (atomicExch(route.gave_up, 1u) != 0) return;
  const PeerFault::Kind kind = fault.kind;
  fault.kind = PeerFault::Kind::none;
  fault.peer_round = look_at_flag(started_flag(route.heap, fault.peer));
  *route.fault = fault;
  __threadfence_system();
  static_cast<volatile PeerFault*>(route.fault)->kind = kind;
}

/// How a block begins a round.
struct PeerEntry {
  unsigned round = 0;
  /// False where some rank made no room for what this one would send.
  bool may_send = true;
};

/// One thread in one round.
class PeerThread {
 public:
  __device__ explicit PeerThread(const PeerRoute& route) : route_(route) {}
  __device__ PeerThread(const PeerRoute& route, const PeerEntry& entry) : route_(route) { enter(entry); }

  /// Before anything else is asked of it.
  __device__ void enter(const PeerEntry& entry) {
    round_ = entry.round;
    now_ = round_ % generations * route_.generation_bytes;
    before_ = (round_ - 1) % generations * route_.generation_bytes;
    gave_up_ = !entry.may_send;
  }

  __device__ unsigned round() const { return round_; }
  /// This round's place of an address in generation 0, and the place that was used in the round before.
  __device__ std::byte* now(std::byte* slot) const { return slot + now_; }
  __device__ const std::byte* now(const std::byte* slot) const { return slot + now_; }
  __device__ std::byte* before(std::byte* slot) const { return slot + before_; }
  /// True when this thread is to wait for nothing any more.
  __device__ bool gave_up() const { return gave_up_; }

  /// The packet that comes into `slot`, of generation 0.
  __device__ uint4 await_packet(const std::byte* slot, int step, int peer, unsigned block) {
    const std::byte* const at = now(slot);
    uint4 packet = load_packet(at);
    for (Patience patience; is_nothing(packet) && !gave_up_; packet = load_packet(at))
      if (is_over(patience)) give_up(PeerFault::Kind::packet, step, peer, block);
    return packet;
  }

  /// Waits until `flag` has reached `value`.
  __device__ void await(const unsigned* flag, unsigned value, PeerFault::Kind kind, int step, int peer,
                        unsigned block) {
    Patience patience;
    while (!gave_up_ && static_cast<int>(look_at_flag(flag) - value) < 0)
      if (is_over(patience)) give_up(kind, step, peer, block);
  }

  /// All threads of the kernel meet. Every block must run. Block 0 stands for those that a smaller kernel lacks.
  __device__ void meet(int step) {
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      const unsigned stands_for = blockIdx.x == 0 ? route_.ctas - gridDim.x + 1 : 1;
      const unsigned long long ticket = atomicAdd(route_.arrivals, stands_for);
      const unsigned long long all = (ticket / route_.ctas + 1) * route_.ctas;
      Patience patience;
      while (!gave_up_ && *static_cast<volatile unsigned long long*>(route_.arrivals) < all)
        if (is_over(patience)) give_up(PeerFault::Kind::barrier, step, route_.rank, 0);
      __threadfence();
    }
    __syncthreads();
  }

 private:
  struct Patience {
    unsigned looks = 0;
    std::uint64_t start = 0;
  };

  /// True when time is up. Looks at the clock, and whether another thread gave up, once in many polls.
  __device__ bool is_over(Patience& patience) {
    constexpr unsigned seldom = 1024;
    if (++patience.looks % seldom != 0) return false;
    if (*static_cast<volatile unsigned*>(route_.gave_up) != 0) gave_up_ = true;
    const std::uint64_t now = device_nanoseconds();
    if (patience.looks == seldom) patience.start = now;
    return !gave_up_ && now - patience.start > route_.limit;
  }

  __device__ void give_up(PeerFault::Kind kind, int step, int peer, unsigned block) {
    gave_up_ = true;
    note_fault(route_, {kind, step, peer, static_cast<int>(blockIdx.x), block, round_, 0});
  }

  const PeerRoute& route_;
  unsigned round_ = 0;
  std::size_t now_ = 0;
  std::size_t before_ = 0;
  bool gave_up_ = false;
};

/// Tells all other ranks that this one has started its round: first what they wait for who send to it, one bit a rank in
/// `senders`. All of the rounds before is done, since the kernel before has ended. By one warp.
__device__ inline void announce_round(const PeerRoute& route, unsigned round, std::uint64_t senders) {
  for (int other = static_cast<int>(threadIdx.x % warpSize); other < route.ranks; other += warpSize) {
    unsigned* const flag = started_flag(route.heaps[other], route.rank);
    if (senders >> other & 1)
      raise_flag(flag, round);
    else if (other != route.rank)
      *static_cast<volatile unsigned*>(flag) = round;  // only told in reports
  }
}

/// A kernel's part in a round: with whom it exchanges packets, one bit a rank, and whether others of the round come before
/// or after it.
struct PeerPart {
  std::uint64_t receivers = 0;
  std::uint64_t senders = 0;
  bool opens = true;
  bool closes = true;
};

/// Finds out which round it is, waits for room in the inboxes of the receivers, and, where it opens the round, tells the
/// senders that there will be room here. Passes a barrier of the block, which has at least 64 threads.
__device__ inline PeerEntry enter_round(const PeerRoute& route, const PeerPart& part) {
  __shared__ unsigned shared_round;
  bool in_vain = false;
  if (threadIdx.x < 64) {
    const bool waits = part.receivers >> threadIdx.x & 1;
    const int receiver = static_cast<int>(threadIdx.x);
    const unsigned* const flag = started_flag(route.heap, receiver);
    // Both loads before the first use: this is on the way of the first packet.
    const unsigned ended = route.rounds[blockIdx.x];
    const unsigned started = waits ? look_at_flag(flag) : 0;
    if (threadIdx.x == 0) shared_round = ended + 1;
    if (waits && static_cast<int>(started - ended) < 0) {
      PeerThread thread(route, {ended + 1, true});
      thread.await(flag, ended, PeerFault::Kind::room, -1, receiver, 0);
      in_vain = thread.gave_up();
    }
  }
  const bool may_send = __syncthreads_or(in_vain) == 0;
  const unsigned round = shared_round;
  if (threadIdx.x == 0 && part.closes)
    for (unsigned cta = blockIdx.x; cta < route.ctas; cta += gridDim.x) route.rounds[cta] = round;
  if (blockIdx.x == 0 && threadIdx.x / warpSize == 1 && part.opens)
    announce_round(route, round, part.senders);
  return {round, may_send};
}

}  // namespace baton
