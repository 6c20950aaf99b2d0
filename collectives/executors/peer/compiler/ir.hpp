// SPDX-License-Identifier: Apache-2.0
// The peer executor's intermediate representation: instructions that each move every element of a
// slice through a thread.
//
//   x = what arrives from a peer, or what is in memory
//   keep x in memory
//   y = decay (.) earlier + later, x being one of the two; keep y in memory
//   (or A earlier + later, row by row, where the map is affine)
//   send x or y to peers
//
// The elements of a slice travel in packets. Packet j of an instruction belongs to the thread that
// owns column (column + j) modulo the number of threads. Columns are chosen so that the thread that
// reads an element is the one that wrote it: then nothing inside a rank waits for anything, and a
// round is a pipeline of packets whatever the number of blocks. Where no choice of columns does
// that, all threads meet at a barrier before the instruction.
//
// Products with matrices need whole rows, so their elements go through blocks of threads: tile j of
// the rows of an instruction belongs to the same block in all instructions of the same shape.
//
// Compute steps are kernels of their own. Between them the instructions are cut into operations,
// one launch each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/executors/cuda/launch_plan.hpp"
#include "collectives/schedule/kernel.hpp"
#include "collectives/schedule/slice.hpp"

namespace baton {

/// The place of a message in the inbox of its receiver.
struct PeerMessage {
  /// Peer rank: the receiver of a message that is sent, the sender of one that arrives.
  int peer = -1;
  /// The first packet of the message in the receiver's inbox.
  std::int64_t packet = 0;

  bool operator==(const PeerMessage&) const = default;
};

/// A message that an instruction sends.
struct PeerSend {
  PeerMessage to;
  /// True if the message carries the result y, false if it carries x.
  bool folded = false;
};

/// Decays that are read from the inbox. Every thread reads the decays of its rows.
struct PeerDecays {
  PeerMessage from;
  /// The place of the first decay in the message, in elements.
  std::int64_t first = 0;
  /// True if no instruction receives the message, so that its readers must empty its slots.
  bool clears = false;
};

/// y = decay (.) earlier + later, or with the matrices of heads in the place of decays.
struct PeerFold {
  /// The decays or matrices in memory; unused if `arrived` is set.
  Slice decay;
  std::optional<PeerDecays> arrived;
  /// The operand of the fold that is not x; empty for zeros.
  Slice other;
  bool x_is_later = false;
  /// Which rows share a decay or a matrix.
  Combine by = {};

  bool multiplies() const { return by.form.kind == MapKind::affine; }
  /// Number of elements that share a decay.
  std::int64_t row() const { return by.form.share * by.row; }
  /// Number of elements before the first that share its decay.
  std::int64_t before() const { return by.form.first * by.row; }
};

/// A fused run of steps, or one compute step while a program is being compiled.
struct PeerInstruction {
  /// The steps of the instruction; reports name the first one.
  std::vector<int> steps;
  /// True for a compute step, which only has `reads` and `writes`.
  bool computes = false;
  std::vector<Slice> reads;
  std::vector<Slice> writes;
  /// Number of elements of x, of y and of every message.
  std::int64_t count = 0;
  /// The message that brings x; empty if x comes from the slice `from`.
  std::optional<PeerMessage> arrival;
  Slice from;
  std::vector<Slice> keep;
  std::optional<PeerFold> fold;
  std::vector<Slice> results;
  std::vector<PeerSend> sends;
  std::int64_t column = 0;
  /// True if all threads of the rank must have finished the instructions before this one.
  bool barrier = false;

  bool multiplies() const { return fold && fold->multiplies(); }
  std::int64_t packets(int packet_elements) const { return (count + packet_elements - 1) / packet_elements; }
};

/// The most operands of each kind in one instruction.
struct PeerLimits {
  static constexpr std::size_t sends = 4;
  static constexpr std::size_t stores = 2;
  static constexpr std::int64_t elements = (std::int64_t{1} << 31) - 1;
};

struct PeerProgramOptions {
  /// Elements in one packet.
  int packet_elements = 4;
  /// Merges instructions over neighbouring slices, such as the blocks of a state, into one.
  bool merges = true;
};

/// One rank's program.
struct PeerProgram {
  /// All instructions but the compute steps.
  std::vector<PeerInstruction> instructions;
  /// The operations, in an order in which all ranks can run them.
  std::vector<LaunchOperation> operations;
  int packet_elements = 4;

  // The rest is the same for all ranks.

  /// Largest number of packets in the inbox of any rank.
  std::int64_t inbox_packets = 0;
  /// Number of columns in use on any rank. More threads would have nothing to do.
  std::int64_t width = 0;
  /// True if some rank's exchange overlaps compute steps.
  bool overlaps_compute = false;
};

}  // namespace baton
