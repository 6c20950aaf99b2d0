// SPDX-License-Identifier: Apache-2.0
// The host hands three things to the kernels of a rank: the context of its case, the role of a
// kernel, and instructions with addresses instead of slices and messages.
//
// A rank's heap, which the other ranks write to:
//   flags of started rounds, one a rank
//   three generations of the inbox
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "collectives/executors/peer/compiler/ir.hpp"
#include "collectives/schedule/slice.hpp"

namespace baton {

/// The element type of messages.
enum class ElementFormat { f32, bf16 };

inline constexpr int packet_bytes = 16;

/// Number of elements in a packet.
constexpr int packet_elements(ElementFormat format) { return format == ElementFormat::bf16 ? 8 : 4; }

/// Words from one flag of a started round to the next, so that no two share a line.
inline constexpr std::size_t heap_flag_words = 32;

/// Generations of an inbox, one a round in turn.
inline constexpr unsigned generations = 3;

/// The bit of a rank in a mask.
constexpr std::uint64_t bit_of(int rank) { return std::uint64_t{1} << rank; }

/// The wait that a thread gave up, in host memory that the device writes.
struct PeerFault {
  enum class Kind : int { none, packet, room, barrier };
  Kind kind = Kind::none;
  int step = -1;
  int peer = -1;
  int cta = 0;
  /// The missing packet of the message.
  unsigned block = 0;
  /// The round that this rank is in.
  unsigned round = 0;
  /// The last round that the peer has started.
  unsigned peer_round = 0;
};

/// The arguments of every kernel of a rank in one case; passed by value.
struct PeerContext {
  int rank = 0;
  int ranks = 1;
  /// Number of thread blocks of the largest kernel of a round.
  unsigned ctas = 1;
  /// The shared heaps of all ranks, by rank.
  std::byte* const* heaps = nullptr;
  /// The shared heap of this rank.
  std::byte* heap = nullptr;
  /// Bytes from one generation of an inbox to the next.
  std::size_t generation_bytes = 0;
  /// Number of rounds that each thread block has ended, in this GPU's memory.
  unsigned* rounds = nullptr;
  /// 1 once a thread gave up, in this GPU's memory.
  unsigned* gave_up = nullptr;
  /// Number of arrivals at the barrier of all blocks, in this GPU's memory.
  unsigned long long* arrivals = nullptr;
  PeerFault* fault = nullptr;
  /// Nanoseconds that a thread waits before it gives up.
  std::uint64_t limit = 0;
};

/// The role of a kernel in a round: the ranks that it exchanges packets with, one bit a rank, and
/// whether other kernels of the round come before or after it.
struct KernelRole {
  std::uint64_t receivers = 0;
  std::uint64_t senders = 0;
  bool opens = true;
  bool closes = true;
};

/// The kind of an instruction: the frequent ones have a loop of their own. An aligned one has whole
/// packets on 16 bytes, keeps x at most once and y not at all, and has one receiver, or any number
/// where x comes from memory. If it folds, it has one decay a packet, in memory, and x is the
/// earlier operand.
enum class PeerForm : unsigned char {
  /// A product with matrices, which goes by tiles of rows.
  product,
  any,
  aligned_load,
  aligned_load_fold,
  aligned_arrival,
  aligned_arrival_fold
};

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
  unsigned count;
  unsigned packets;
  unsigned column;  // below the number of threads
  unsigned row;     // elements that share a decay; of a product, elements of a row
  unsigned before;  // elements before the first that share its decay; of a product, rows
  unsigned share;   // rows that share a matrix
  unsigned width;   // of a product (`tensor_width`)
  unsigned tile;    // elements of its tiles
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
  bool transposed;
  bool x_is_later;
  bool clears_decays;
  bool whole;  // all slices lie on 16 bytes
  bool barrier;
};

/// Offset in bytes of the inbox in a rank's heap, the same on all ranks.
std::size_t inbox_offset(const PeerContext& context);
/// Size in bytes of a rank's heap, the same on all ranks.
std::size_t heap_bytes(const PeerContext& context);
/// Bytes that are allocated for a heap of `bytes` bytes: a power of two from 64 MiB on, so that a
/// heap that grows case by case is seldom allocated.
std::size_t allocated_heap(std::size_t bytes);
/// Bytes that are allocated for the heap of rounds with so many packets in an inbox.
std::size_t allocated_heap(int ranks, std::int64_t packets);

/// Size in bytes of one generation of an inbox with `packets` packets.
std::size_t generation_bytes(std::int64_t packets);

/// The instructions of one operation of a program, for a kernel of `threads` threads. `heaps` has
/// the heap of every rank, by rank; `address` gives the memory of a slice, null for an empty one.
std::vector<PeerDeviceInstruction> resolve(const PeerProgram& program, const LaunchOperation& operation,
                                           const PeerContext& context, std::span<std::byte* const> heaps,
                                           std::int64_t threads,
                                           const std::function<float*(const Slice&)>& address);

/// The role of the kernel of exchange operation number `operation`.
KernelRole role_of(const PeerProgram& program, std::size_t operation);

/// Number of thread blocks of an exchange operation: alone on the device, and beside compute steps.
struct PeerBlocks {
  unsigned alone = 1;
  unsigned overlapping = 1;

  unsigned of(const LaunchOperation& operation) const {
    return operation.overlaps_compute ? overlapping : alone;
  }
};

/// True if the kernel of `operation` multiplies matrices. It then needs `product_threads` threads a
/// block.
bool multiplies(const PeerProgram& program, const LaunchOperation& operation);

/// Number of threads of a block, at most `most`, for `packets` packets on `ctas` blocks. Few
/// packets also run on all blocks, which are then smaller.
unsigned peer_threads(std::int64_t packets, unsigned ctas, unsigned most = 512);

}  // namespace baton
