// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/peer/compiler/fuse.hpp"

#include <algorithm>
#include <utility>

#include "collectives/executors/peer/compiler/columns.hpp"

namespace baton {
namespace {

/// Builds one instruction. x and y stay in registers, so a micro-operation on the slices that hold
/// them can join.
class InstructionBuilder {
 public:
  explicit InstructionBuilder(const PeerMicroOp& head) {
    instruction_.steps = {head.step};
    instruction_.count = head.action == PeerAction::receive ? head.into.count : head.from.count;
    if (head.action == PeerAction::compute) {
      instruction_.computes = true;
      instruction_.reads = head.reads;
      instruction_.writes = head.writes;
    } else if (head.action == PeerAction::receive) {
      instruction_.arrival = head.message;
      instruction_.keep = {head.into};
      x_ = {head.into};
    } else {
      instruction_.from = head.from;
      x_ = {head.from};
      join(head);
    }
  }

  /// True if `op` has become part of the instruction.
  bool join(const PeerMicroOp& op) {
    if (instruction_.computes) return false;
    const InstructionBuilder before = *this;
    const bool joined = op.action == PeerAction::send   ? join_send(op)
                        : op.action == PeerAction::copy ? join_copy(op)
                        : op.action == PeerAction::fold ? join_fold(op)
                                                        : false;
    if (joined && is_sound()) {
      if (instruction_.steps.back() != op.step) instruction_.steps.push_back(op.step);
      return true;
    }
    *this = before;
    return false;
  }

  PeerInstruction take() { return std::move(instruction_); }

 private:
  static bool holds(const std::vector<Slice>& value, const Slice& slice) {
    return std::find(value.begin(), value.end(), slice) != value.end();
  }

  /// True if the instruction stores to a part of `slice`.
  bool stores(const Slice& slice) const {
    return std::any_of(instruction_.keep.begin(), instruction_.keep.end(),
                       [&](const Slice& kept) { return kept.overlaps(slice); });
  }

  bool join_send(const PeerMicroOp& op) {
    const bool of_x = holds(x_, op.from);
    if (!of_x && !holds(y_, op.from)) return false;
    instruction_.sends.push_back({op.message, !of_x});
    return instruction_.sends.size() <= PeerLimits::sends;
  }

  bool join_copy(const PeerMicroOp& op) {
    const bool of_x = holds(x_, op.from);
    if (!of_x && !holds(y_, op.from)) return false;
    (of_x ? x_ : y_).push_back(op.into);
    auto& stores = of_x ? instruction_.keep : instruction_.results;
    stores.push_back(op.into);
    return stores.size() <= PeerLimits::stores;
  }

  bool join_fold(const PeerMicroOp& op) {
    if (instruction_.fold) return false;
    PeerFold fold = op.fold;
    if (holds(x_, op.from)) {
      fold.x_is_later = false;
    } else if (holds(x_, fold.other)) {
      fold.x_is_later = true;
      fold.other = op.from;
    } else {
      return false;
    }
    if (stores(fold.other) || (!fold.arrived && stores(fold.decay))) return false;
    // In place: the slice of x is to hold y.
    std::erase(x_, op.into);
    std::erase(instruction_.keep, op.into);
    y_ = {op.into};
    instruction_.fold = fold;
    instruction_.results = {op.into};
    return true;
  }

  /// True if no element is written twice, and none is written by one thread and read by another.
  bool is_sound() const {
    const auto accesses = peer_accesses(instruction_);
    for (std::size_t i = 0; i < accesses.size(); ++i)
      for (std::size_t j = 0; j < accesses.size(); ++j) {
        const PeerAccess &a = accesses[i], &b = accesses[j];
        if (i == j || !a.writes || !a.slice.overlaps(b.slice)) continue;
        if (b.writes || b.shared || a.slice.offset != b.slice.offset) return false;
      }
    return true;
  }

  PeerInstruction instruction_;
  std::vector<Slice> x_, y_;
};

std::vector<PeerInstruction> fuse(const PeerMicroOps& ops) {
  constexpr int reach = 256;  // micro-operations that are tried for one instruction
  std::vector<int> instruction_of(ops.size(), -1);
  std::vector<PeerInstruction> instructions;
  for (int head = 0; head < ops.size(); ++head) {
    if (instruction_of[head] >= 0) continue;
    const int number = static_cast<int>(instructions.size());
    instruction_of[head] = number;
    InstructionBuilder builder(ops[head]);
    for (int next = head + 1; next < std::min(ops.size(), head + reach); ++next) {
      bool ready = instruction_of[next] < 0;
      ops.each_before(next, [&](int before) { ready = ready && instruction_of[before] >= 0; });
      if (ready && builder.join(ops[next])) instruction_of[next] = number;
    }
    instructions.push_back(builder.take());
  }
  return instructions;
}

/// True if no instruction reads any of `slice` from memory.
bool is_unread(const Slice& slice, const std::vector<PeerInstruction>& instructions) {
  for (const PeerInstruction& instruction : instructions)
    for (const PeerAccess& access : peer_accesses(instruction))
      if (!access.writes && access.slice.overlaps(slice)) return false;
  return true;
}

void drop_unread_stores(const Schedule& schedule, std::vector<PeerInstruction>& instructions) {
  const auto is_useless = [&](const Slice& slice) {
    return schedule.buffers()[slice.buffer].role == Role::scratch && is_unread(slice, instructions);
  };
  for (PeerInstruction& instruction : instructions) {
    std::erase_if(instruction.keep, is_useless);
    std::erase_if(instruction.results, is_useless);
  }
}

/// Drops receives of decays alone, since the folds that read such decays wait for them.
void drop_idle_receives(std::vector<PeerInstruction>& instructions) {
  std::vector<PeerMessage> left_out;
  std::erase_if(instructions, [&](const PeerInstruction& instruction) {
    const bool idle = instruction.arrival && instruction.keep.empty() && instruction.sends.empty() &&
                      instruction.results.empty();
    const bool is_read = std::any_of(instructions.begin(), instructions.end(), [&](const auto& other) {
      return instruction.arrival && other.fold && other.fold->arrived &&
             other.fold->arrived->from == *instruction.arrival;
    });
    if (idle && is_read) left_out.push_back(*instruction.arrival);
    return idle && is_read;
  });
  for (PeerInstruction& instruction : instructions)
    if (instruction.fold && instruction.fold->arrived)
      instruction.fold->arrived->clears =
          std::find(left_out.begin(), left_out.end(), instruction.fold->arrived->from) != left_out.end();
}

}  // namespace

std::vector<PeerInstruction> fuse_peer_steps(const Schedule& schedule, const PeerMicroOps& ops) {
  auto instructions = fuse(ops);
  drop_unread_stores(schedule, instructions);
  drop_idle_receives(instructions);
  return instructions;
}

}  // namespace baton
