// SPDX-License-Identifier: Apache-2.0
// Packets: 16 bytes that are stored into another GPU's memory in one piece and carry their own
// flag.
//
// A slot of an inbox ends with the empty word until a packet has arrived. No packet ends with it:
// it is a NaN that arithmetic does not make, and a producer whose data holds it sends another NaN
// instead. One 128-bit access is one access to the memory model too, so a thread that sees the last
// word sees the others.
//
// A kernel takes part in a round as follows: it finds out the number of the
// round, waits until there is room in the inboxes of others, waits for packets, and reports the
// first wait that it gives up.
//
// An inbox has three generations, one a round in turn. A reader leaves a slot as it is and empties
// the same slot of the round before; so a generation is ready again when its owner has ended the
// round after it. A rank announces every round that it starts, and sends nothing in round e before
// the receiver has started round e-1: a scan does not synchronise its ranks, and the first one
// would otherwise run ahead of the last without end.
//
// Rounds are counted in device memory, so that a graph can be replayed.
//
// Like interpreter.cuh this compiles for the host too, where a test runs it: what a machine does
// with memory, flags, barriers and threads is a template parameter (gpu.cuh for GPUs), and
// __device__ is defined as nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/executors/peer/device/instruction.hpp"

namespace baton {

struct alignas(16) Packet {
  unsigned x, y, z, w;
};
static_assert(sizeof(Packet) == packet_bytes);

/// The last word of a slot while it is empty; as two bf16 it is two NaNs.
inline constexpr unsigned empty_word = 0xFFFAFFFA;

__device__ inline bool is_empty(const Packet& packet) { return packet.w == empty_word; }

template <class Machine>
__device__ inline void empty_slot(std::byte* slot) {
  Machine::store_packet(slot, {empty_word, empty_word, empty_word, empty_word});
}

/// The elements of one packet, in registers.
template <int count>
struct Elements {
  float v[count];
};

/// Packets of four f32, bit for bit except for the empty word.
template <class Machine>
struct F32Format {
  static constexpr int elements = packet_elements(ElementFormat::f32);

  __device__ static Packet pack(const Elements<4>& x) {
    const unsigned last = Machine::bits(x.v[3]);
    return {Machine::bits(x.v[0]), Machine::bits(x.v[1]), Machine::bits(x.v[2]),
            last == empty_word ? 0x7FFFFFFFu : last};
  }
  __device__ static Elements<4> unpack(const Packet& packet) {
    return {Machine::value(packet.x), Machine::value(packet.y), Machine::value(packet.z),
            Machine::value(packet.w)};
  }
};

/// Packets of eight bf16, rounded to nearest even. Rounding makes a single NaN, which is not in the
/// empty word.
template <class Machine>
struct Bf16Format {
  static constexpr int elements = packet_elements(ElementFormat::bf16);

  __device__ static Packet pack(const Elements<8>& x) {
    return {Machine::bf16_pair(x.v[0], x.v[1]), Machine::bf16_pair(x.v[2], x.v[3]),
            Machine::bf16_pair(x.v[4], x.v[5]), Machine::bf16_pair(x.v[6], x.v[7])};
  }
  __device__ static Elements<8> unpack(const Packet& packet) {
    return {low(packet.x), high(packet.x), low(packet.y), high(packet.y),
            low(packet.z), high(packet.z), low(packet.w), high(packet.w)};
  }

 private:
  __device__ static float low(unsigned pair) { return Machine::value(pair << 16); }
  __device__ static float high(unsigned pair) { return Machine::value(pair & 0xFFFF0000u); }
};

/// The flag in `heap` by which rank `from` announces that it has started a round. Flags are the
/// heap's first bytes.
__device__ inline unsigned* started_flag(std::byte* heap, int from) {
  return reinterpret_cast<unsigned*>(heap) + from * heap_flag_words;
}

/// Ends all waiting of this rank. The first thread to give up records its `fault` for the host.
template <class Machine>
__device__ __noinline__ inline void note_fault(const PeerContext& context, PeerFault fault) {
  if (Machine::exchange(context.gave_up, 1u) != 0) return;
  const PeerFault::Kind kind = fault.kind;
  fault.kind = PeerFault::Kind::none;
  fault.peer_round = Machine::load_flag(started_flag(context.heap, fault.peer));
  *context.fault = fault;
  Machine::fence_system();
  static_cast<volatile PeerFault*>(context.fault)->kind = kind;
}

/// The start of a round in one thread block.
struct RoundStart {
  unsigned round = 0;
  /// False if some rank made no room in time for the packets of this round.
  bool may_send = true;
};

/// The state of one thread in one round.
template <class Machine>
class PeerThread {
 public:
  __device__ explicit PeerThread(const PeerContext& context) : context_(context) {}
  __device__ PeerThread(const PeerContext& context, const RoundStart& entry) : context_(context) {
    enter(entry);
  }

  /// Enters the round. Must be called before any other function.
  __device__ void enter(const RoundStart& entry) {
    round_ = entry.round;
    now_ = round_ % generations * context_.generation_bytes;
    before_ = (round_ - 1) % generations * context_.generation_bytes;
    gave_up_ = !entry.may_send;
  }

  __device__ unsigned round() const { return round_; }
  /// The address in this round of a slot of generation 0.
  __device__ std::byte* now(std::byte* slot) const { return slot + now_; }
  __device__ const std::byte* now(const std::byte* slot) const { return slot + now_; }
  /// The address in the round before of a slot of generation 0.
  __device__ std::byte* before(std::byte* slot) const { return slot + before_; }
  /// True if this thread must not wait any more.
  __device__ bool gave_up() const { return gave_up_; }

  /// Waits for a packet and returns it. `slot` is an address of generation 0.
  __device__ Packet await_packet(const std::byte* slot, int step, int peer, unsigned block) {
    Packet packets[1];
    await_packets(
        packets, [](int) { return true; }, [=](int) { return slot; }, [=](int) { return peer; }, step, block);
    return packets[0];
  }

  /// Waits for `count` packets from the ranks peer(i), in the slots slot(i) of generation 0, which
  /// are all polled together. Packets without comes(i) are zeros.
  template <int count, class Comes, class Slot, class Peer>
  __device__ void await_packets(Packet (&packets)[count], Comes comes, Slot slot, Peer peer, int step,
                                unsigned block) {
#pragma unroll
    for (int i = 0; i < count; ++i)
      packets[i] = comes(i) ? Machine::load_packet(now(slot(i))) : Packet{0, 0, 0, 0};
    for (Poll poll; !gave_up_;) {
      int missing = -1;
#pragma unroll
      for (int i = count - 1; i >= 0; --i)
        if (is_empty(packets[i])) missing = i;
      if (missing < 0) return;
      if (is_over(poll)) return give_up(PeerFault::Kind::packet, step, peer(missing), block);
#pragma unroll
      for (int i = 0; i < count; ++i)
        if (is_empty(packets[i])) packets[i] = Machine::load_packet(now(slot(i)));
    }
  }

  /// Waits until `flag` has reached `value`.
  __device__ void await(const unsigned* flag, unsigned value, PeerFault::Kind kind, int step, int peer,
                        unsigned block) {
    Poll poll;
    while (!gave_up_ && static_cast<int>(Machine::load_flag(flag) - value) < 0)
      if (is_over(poll)) give_up(kind, step, peer, block);
  }

  /// A barrier of all threads of the kernel, all blocks of which must run. Block 0 stands for those
  /// that a smaller kernel lacks.
  __device__ void meet(int step) {
    Machine::sync();
    if (Machine::thread() == 0) {
      Machine::fence();
      const unsigned stands_for = Machine::block() == 0 ? context_.ctas - Machine::blocks() + 1 : 1;
      const unsigned long long ticket = Machine::add(context_.arrivals, stands_for);
      const unsigned long long all = (ticket / context_.ctas + 1) * context_.ctas;
      Poll poll;
      while (!gave_up_ && Machine::peek(context_.arrivals) < all)
        if (is_over(poll)) give_up(PeerFault::Kind::barrier, step, context_.rank, 0);
      Machine::fence();
    }
    Machine::sync();
  }

 private:
  struct Poll {
    unsigned looks = 0;
    std::uint64_t start = 0;
  };

  /// True if this thread has waited for too long. It looks at the clock, and whether another thread
  /// gave up, once in 1024 calls.
  __device__ bool is_over(Poll& poll) {
    constexpr unsigned seldom = 1024;
    if (++poll.looks % seldom != 0) return false;
    if (Machine::peek(context_.gave_up) != 0) gave_up_ = true;
    const std::uint64_t now = Machine::nanoseconds();
    if (poll.looks == seldom) poll.start = now;
    return !gave_up_ && now - poll.start > context_.limit;
  }

  __device__ void give_up(PeerFault::Kind kind, int step, int peer, unsigned block) {
    gave_up_ = true;
    note_fault<Machine>(context_, {kind, step, peer, static_cast<int>(Machine::block()), block, round_, 0});
  }

  const PeerContext& context_;
  unsigned round_ = 0;
  std::size_t now_ = 0;
  std::size_t before_ = 0;
  bool gave_up_ = false;
};

/// Announces this round to all ranks, by one warp. Senders (one bit a rank) get a release store,
/// since they wait for it; the others only need it for error reports. The kernel before has ended,
/// so all earlier rounds are done here.
template <class Machine>
__device__ inline void announce_round(const PeerContext& context, unsigned round, std::uint64_t senders) {
  for (int other = static_cast<int>(Machine::thread() % Machine::threads_of_warp()); other < context.ranks;
       other += Machine::threads_of_warp()) {
    unsigned* const flag = started_flag(context.heaps[other], context.rank);
    if (senders >> other & 1)
      Machine::raise_flag(flag, round);
    else if (other != context.rank)
      Machine::poke(flag, round);  // for error reports
  }
}

/// Finds out the number of the round, waits for room in the inboxes of the receivers, and announces
/// the round if the kernel opens it. Contains a barrier of the block, which must have at least 64
/// threads.
template <class Machine>
__device__ inline RoundStart enter_round(const PeerContext& context, const KernelRole& role) {
  unsigned& shared_round = Machine::shared_word();
  bool timed_out = false;
  if (Machine::thread() < 64) {
    const bool waits = role.receivers >> Machine::thread() & 1;
    const int receiver = static_cast<int>(Machine::thread());
    const unsigned* const flag = started_flag(context.heap, receiver);
    // Both loads before the first use: this is on the way of the first packet.
    const unsigned ended = context.rounds[Machine::block()];
    const unsigned started = waits ? Machine::load_flag(flag) : 0;
    if (Machine::thread() == 0) shared_round = ended + 1;
    if (waits && static_cast<int>(started - ended) < 0) {
      PeerThread<Machine> thread(context, {ended + 1, true});
      thread.await(flag, ended, PeerFault::Kind::room, -1, receiver, 0);
      timed_out = thread.gave_up();
    }
  }
  const bool may_send = !Machine::sync_or(timed_out);
  const unsigned round = shared_round;
  if (Machine::thread() == 0 && role.closes)
    for (unsigned cta = Machine::block(); cta < context.ctas; cta += Machine::blocks())
      context.rounds[cta] = round;
  if (Machine::block() == 0 && Machine::thread() / Machine::threads_of_warp() == 1 && role.opens)
    announce_round<Machine>(context, round, role.senders);
  return {round, may_send};
}

}  // namespace baton
