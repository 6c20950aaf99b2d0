// SPDX-License-Identifier: Apache-2.0
// What the device runs for one rank's schedule: instructions that each move every element of a slice through one thread.
//
//   x = what arrives from a peer, or what is in memory
//   keep x in memory;  y = decay (.) earlier + later, x being one of the two;  keep y;  send x or y to peers
//
// The elements of a slice travel in packets, and packet j of an instruction belongs to the thread that owns column
// (column + j) modulo the number of threads. Columns are chosen so that whoever reads an element is the thread that
// wrote it: then nothing inside a rank waits for anything, and a round is a pipeline of packets whatever the number of
// blocks. Where no choice of columns does that, all threads meet at a barrier before the instruction.
//
// Compute steps are kernels of their own. Between them the instructions are cut into operations, each one launch, which
// wait for one another like kernels in two streams.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// Where a message lies in the inbox of its receiver.
struct PeerMessage {
  /// The other rank: the receiver of what is sent, the sender of what arrives.
  int peer = -1;
  /// The first packet in the receiver's inbox.
  std::int64_t packet = 0;
  /// The number of the message among those that its receiver gets.
  int number = 0;

  bool operator==(const PeerMessage&) const = default;
};

/// A message that an instruction sends.
struct PeerSend {
  PeerMessage to;
  /// True for y, false for x.
  bool folded = false;
};

/// Decays that are read where they arrived: every thread needs those of its rows.
struct PeerDecays {
  PeerMessage from;
  /// The first decay's place in the message, in elements.
  std::int64_t first = 0;
  /// True where no instruction receives the message, so that its readers must empty the inbox for it.
  bool clears = false;
};

/// y = decay (.) earlier + later, row by row.
struct PeerFold {
  /// [rows] in memory; not read where `arrived` says where else.
  Slice decay;
  std::optional<PeerDecays> arrived;
  /// The operand that is not x; empty for zeros.
  Slice other;
  bool x_is_later = false;
  /// Elements that share a decay.
  std::int64_t row = 1;
};

/// One fused run of steps, or one compute step while a program is being made.
struct PeerInstruction {
  /// The steps that it does; the first one is named in reports.
  std::vector<int> steps;
  /// True for a compute step, which has nothing below but what it reads and writes.
  bool computes = false;
  std::vector<Slice> reads;
  std::vector<Slice> writes;
  /// Elements of x, of y and of every message.
  std::int64_t count = 0;
  /// x: the message that brings it, or else the slice it is read from.
  std::optional<PeerMessage> arrival;
  Slice from;
  std::vector<Slice> keep;
  std::optional<PeerFold> fold;
  std::vector<Slice> results;
  std::vector<PeerSend> sends;
  std::int64_t column = 0;
  /// All threads of the rank must have finished what comes before.
  bool barrier = false;

  std::int64_t packets(int packet_elements) const { return (count + packet_elements - 1) / packet_elements; }
};

/// How many operands of a kind the device has room for in one instruction.
struct PeerLimits {
  static constexpr std::size_t sends = 4;
  static constexpr std::size_t stores = 2;
  static constexpr std::int64_t elements = (std::int64_t{1} << 31) - 1;
};

struct PeerProgramOptions {
  /// Elements in one packet.
  int packet_elements = 4;
  /// Makes one instruction of those over neighbouring slices, such as the blocks of a state.
  bool merges = true;
};

/// What is launched at once: a compute step, or a run of instructions.
struct PeerOperation {
  /// The compute step, -1 for instructions.
  int compute = -1;
  /// The instructions from `first` up to `last`.
  int first = 0;
  int last = 0;
  /// The operation of the other kind that it waits for, -1 where an earlier wait covers all.
  int waits_for = -1;
  /// Instructions during which a compute step may run.
  bool is_beside_work = false;
};

/// One rank's program.
struct PeerProgram {
  /// All but the compute steps.
  std::vector<PeerInstruction> instructions;
  /// In an order in which all ranks can run them.
  std::vector<PeerOperation> operations;
  /// Packets and messages of the fullest inbox of any rank.
  std::int64_t inbox_packets = 0;
  int messages = 0;
  int packet_elements = 4;

  /// True where some instruction is behind a barrier.
  bool has_barriers() const;
  /// Columns in use: with more threads than that, some would have nothing to do.
  std::int64_t width() const;
};

/// Why no program can be made of `schedules`, or an empty string. A wire that rounds f32 takes no bf16 tensors.
Refusal unsupported_by_peer(std::span<const Schedule> schedules, bool rounds = false);

/// The program of `rank`, from the checked schedules of all ranks. All ranks' programs belong together: they agree
/// where messages lie, and run in one order without deadlock although every thread waits for what it receives.
PeerProgram compile_peer_program(std::span<const Schedule> schedules, int rank,
                                 const PeerProgramOptions& options = {});

}  // namespace baton
