// SPDX-License-Identifier: Apache-2.0
// Packets: 16 bytes that are stored into another GPU's memory in one piece and carry their own
// flag.
//
// A slot of an inbox ends with the empty word until a packet has arrived. No packet ends with it:
// it is a NaN that arithmetic does not make, and a producer whose data holds it sends another NaN
// instead. One 128-bit access is one access to the memory model too, so a thread that sees the last
// word sees the others.
//
// Like round.cuh and interpreter.cuh this compiles for the host too, where a test runs it: what a
// machine does with memory, flags, barriers and threads is a template parameter (gpu.cuh for GPUs),
// and __device__ is defined as nothing.
#pragma once

#include <cstddef>

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

/// Four f32, bit for bit except for the empty word.
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

/// Eight bf16, rounded to nearest even. Rounding makes a single NaN, which is not in the empty
/// word.
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

}  // namespace baton
