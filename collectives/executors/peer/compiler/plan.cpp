// SPDX-License-Identifier: Apache-2.0
// Operations in two streams.
#include "collectives/executors/peer/compiler/plan.hpp"

#include <algorithm>
#include <utility>

namespace baton {
namespace {

class Planner {
 public:
  explicit Planner(const Schedule& schedule)
      : schedule_(schedule), operation_of_(schedule.steps().size(), -1) {}

  void add(PeerInstruction instruction) {
    const auto [exchange, compute] = waits(instruction);
    if (instruction.computes)
      add_compute(instruction.steps[0], exchange);
    else
      add_exchange(std::move(instruction), compute);
  }

  std::vector<PeerInstruction> instructions;
  std::vector<PeerOperation> operations;

 private:
  /// The last exchange and the last compute operation that an instruction waits for.
  std::pair<int, int> waits(const PeerInstruction& instruction) const {
    int exchange = -1, compute = -1;
    for (int step : instruction.steps)
      for (int before : schedule_.steps()[step].waits_for) {
        const int operation = operation_of_[before];
        if (operation < 0) continue;  // within the instruction, or nothing that is run
        int& last = operations[operation].compute >= 0 ? compute : exchange;
        last = std::max(last, operation);
      }
    return {exchange, compute};
  }

  void add_compute(int step, int exchange) {
    const bool is_covered = exchange <= compute_waited_for_;
    operation_of_[step] = static_cast<int>(operations.size());
    operations.push_back({.compute = step, .waits_for = is_covered ? -1 : exchange});
    if (is_covered) return;
    compute_waited_for_ = exchange;
    if (exchange == open_) open_ = -1;
  }

  /// The last compute operation so far whose step was recorded before `step`.
  int compute_before(int step) const {
    int last = -1;
    for (int i = 0; i < static_cast<int>(operations.size()); ++i)
      if (operations[i].compute >= 0 && operations[i].compute < step) last = i;
    return last;
  }

  void add_exchange(PeerInstruction instruction, int compute) {
    // A receive waits for nothing here. Launched at once it would hold multiprocessors while it looks for what the other
    // ranks cannot send before they have done what stands before it in the text too.
    if (open_ < 0) compute = std::max(compute, compute_before(instruction.steps[0]));
    const bool is_covered = compute <= exchange_waited_for_;
    const int place = static_cast<int>(instructions.size());
    if (open_ < 0 || !is_covered) {
      open_ = static_cast<int>(operations.size());
      operations.push_back({.first = place, .last = place, .waits_for = is_covered ? -1 : compute});
      exchange_waited_for_ = std::max(exchange_waited_for_, compute);
    }
    operations[open_].last = place + 1;
    for (int step : instruction.steps) operation_of_[step] = open_;
    instructions.push_back(std::move(instruction));
  }

  const Schedule& schedule_;
  std::vector<int> operation_of_;  // of each step
  int open_ = -1;                  // the exchange operation that may grow
  int exchange_waited_for_ = -1;   // the last compute operation that exchange operations have waited for
  int compute_waited_for_ = -1;    // and the other way
};

/// Whether some compute operation neither ends before exchange operation `exchange` starts, `ended` being the last one that
/// does, nor starts after its end.
bool has_work_beside(const std::vector<PeerOperation>& operations, int exchange, int ended) {
  for (int i = ended + 1; i < static_cast<int>(operations.size()); ++i) {
    if (operations[i].compute < 0) continue;
    return operations[i].waits_for < exchange;  // those behind it in their stream start later still
  }
  return false;
}

void mark_those_beside_work(std::vector<PeerOperation>& operations) {
  int ended = -1;
  for (int i = 0; i < static_cast<int>(operations.size()); ++i) {
    if (operations[i].compute >= 0) continue;
    ended = std::max(ended, operations[i].waits_for);
    operations[i].is_beside_work = has_work_beside(operations, i, ended);
  }
}

}  // namespace

std::vector<PeerOperation> plan_peer_operations(const Schedule& schedule,
                                                std::vector<PeerInstruction>& instructions) {
  Planner planner(schedule);
  for (PeerInstruction& instruction : instructions) planner.add(std::move(instruction));
  instructions = std::move(planner.instructions);
  mark_those_beside_work(planner.operations);
  return std::move(planner.operations);
}

void hold_back_work(PeerProgram& program, int exchange) {
  auto& operations = program.operations;
  int last = -1;
  for (int i = operations[exchange].first; i < operations[exchange].last; ++i)
    for (int step : program.instructions[i].steps) last = std::max(last, step);
  for (int i = exchange + 1; i < static_cast<int>(operations.size()); ++i) {
    if (operations[i].compute <= last) continue;  // it may be what a later message of the exchange waits for
    operations[i].waits_for = std::max(operations[i].waits_for, exchange);
    break;
  }
  operations[exchange].is_beside_work = false;
}

}  // namespace baton
