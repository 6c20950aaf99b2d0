// SPDX-License-Identifier: Apache-2.0
// From schedules to peer programs: order the steps, lower them to micro-operations, fuse these into
// instructions, merge blocks, plan launches, assign columns. Host code; every rank computes the
// programs of all ranks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "collectives/executors/peer/compiler/ir.hpp"
#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// Refuses schedules that no program can be made of. A format that rounds f32 takes no bf16
/// tensors.
Refusal unsupported_by_peer(std::span<const Schedule> schedules, bool rounds = false);

/// The programs of all ranks, by rank, from their checked schedules. They agree where messages lie,
/// which exchanges overlap compute steps, and run without deadlock although every thread waits for
/// what it receives.
std::vector<PeerProgram> compile_peer_programs(std::span<const Schedule> schedules,
                                               const PeerProgramOptions& options = {});

// The passes, in the order in which they run.

/// For each rank its steps in an order that it can run one after the other. A send never waits; a
/// receive does, and comes after all that some rank must do before the message is sent. Throws
/// ScheduleError if there is no such order.
std::vector<std::vector<int>> order_peer_steps(std::span<const Schedule> schedules);

/// The inboxes of all ranks: one message after the other, by sender and sequence, each from a
/// packet of its own.
class PeerInboxes {
 public:
  PeerInboxes(std::span<const Schedule> schedules, int packet_elements);

  /// The message number `sequence` from `sender` to `receiver`; its `peer` is the sender.
  PeerMessage message(int receiver, int sender, int sequence) const;

  /// Of the fullest inbox.
  std::int64_t packets() const { return packets_; }
  int messages() const { return messages_; }

 private:
  std::vector<std::map<std::pair<int, int>, PeerMessage>> inboxes_;
  std::int64_t packets_ = 0;
  int messages_ = 0;
};

enum class PeerAction { receive, send, copy, fold, compute };

/// A step, or one half of a combine that composes: its state, then its decay.
struct PeerMicroOp {
  PeerAction action = PeerAction::copy;
  int step = 0;
  Slice from;  // of a send or a copy; the earlier operand of a fold
  Slice into;
  PeerMessage message;
  PeerFold fold;
  std::vector<Slice> reads;  // of a compute step
  std::vector<Slice> writes;
};

/// The steps of one rank as micro-operations, in order.
class PeerMicroOps {
 public:
  PeerMicroOps(const Schedule& schedule, const std::vector<int>& order, const PeerInboxes& inboxes);

  int size() const { return static_cast<int>(all_.size()); }
  const PeerMicroOp& operator[](int index) const { return all_[index]; }

  /// Calls `visit` with the number of every micro-operation that number `index` waits for.
  template <typename Visit>
  void each_before(int index, Visit visit) const {
    for (int before : schedule_.steps()[all_[index].step].waits_for)
      for (int op = first_[before]; op < last_[before]; ++op) visit(op);
    for (int op = first_[all_[index].step]; op < index; ++op) visit(op);
  }

 private:
  void add(int index);
  void add_combine(int index, const Step& step);
  std::optional<PeerDecays> arrived_in(const Slice& decay, const Step& reader) const;

  const Schedule& schedule_;
  const PeerInboxes& inboxes_;
  std::vector<PeerMicroOp> all_;
  std::vector<int> first_, last_;  // by step: its micro-operations
};

/// Fuses each micro-operation with later ones that use the value it brings into a register. Drops
/// stores to scratch that is never read, and receives of messages that are only read in the inbox.
std::vector<PeerInstruction> fuse_peer_steps(const Schedule& schedule, const PeerMicroOps& ops);

/// Makes one instruction of neighbours that do the same over adjoining slices.
std::vector<PeerInstruction> merge_peer_instructions(std::vector<PeerInstruction> instructions,
                                                     int packet_elements);

/// Takes the compute steps out of `instructions`. Returns the operations in the order of launches:
/// each compute step, and the longest runs of instructions that can be launched as one. A run waits
/// for the compute steps recorded before it. It ends where the next instruction waits for a compute
/// step that the run does not wait for, and where a compute step waits for the run, since later
/// instructions may need that step's result on another rank.
std::vector<LaunchOperation> plan_peer_operations(const Schedule& schedule,
                                                  std::vector<PeerInstruction>& instructions);

/// Chooses the column of every instruction and sets barriers where that does not suffice. The start
/// of an operation is a barrier already.
void assign_columns(std::vector<PeerInstruction>& instructions,
                    const std::vector<LaunchOperation>& operations, int packet_elements);

/// Lets an exchange overlap compute steps only if it does so on all ranks: an exchange is as slow
/// as its smallest kernel, so with one rank that has nothing to overlap, the others get all
/// multiprocessors too, and their later work waits. Where ranks have unlike numbers of exchange
/// operations, each keeps its own choice.
void agree_on_overlap(std::vector<PeerProgram>& programs);

/// Makes the compute steps recorded behind exchange operation `exchange` wait for its end.
void serialize_compute_after(PeerProgram& program, int exchange);

// The memory accesses of instructions.

/// A slice that an instruction accesses in memory.
struct PeerAccess {
  Slice slice;
  bool writes = false;
  /// True where any thread may access any element, as with decays; otherwise element i belongs to
  /// packet i / E.
  bool shared = false;
};

std::vector<PeerAccess> peer_accesses(const PeerInstruction& instruction);

/// How the columns of two instructions must lie where one writes what the other accesses.
struct PeerRelation {
  /// False where no choice of columns gives every such element to the same thread in both.
  bool aligns = true;
  /// The column of the second less that of the first; empty where they do not conflict.
  std::optional<std::int64_t> distance;
};

PeerRelation relate(const PeerInstruction& first, const PeerInstruction& second, int packet_elements);

}  // namespace baton
