// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/peer/compiler/compile.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "collectives/executors/peer/compiler/columns.hpp"
#include "collectives/executors/peer/compiler/fuse.hpp"
#include "collectives/executors/peer/compiler/order.hpp"
#include "collectives/schedule/check.hpp"

namespace baton {
namespace {

Refusal unsupported(const Schedule& schedule, const Step& step, bool rounds) {
  const std::string which = "step " + where(step) + " of rank " + std::to_string(schedule.home_rank());
  if (step.verb == Verb::compute) return {};
  if (step.verb == Verb::native) return schedule.natives()[step.body].name + " is no native of peer";
  for (const auto* side : {&step.writes, &step.reads})
    for (const Slice& slice : *side) {
      const bool is_bf16 = slice.dtype == Dtype::bf16;
      if (slice.count > PeerLimits::elements) return which + " has more than 2^31-1 elements";
      if (is_bf16 && rounds) return which + " is of bf16 already";
      if (is_bf16 && (slice.offset % 2 != 0 || slice.count % 2 != 0)) return which + " cuts a word in two";
    }
  return {};
}

/// Cuts instructions into operations, as `plan_peer_operations` says.
class PeerPlanner {
 public:
  explicit PeerPlanner(const Schedule& schedule) : launches_(schedule) {}

  void add(PeerInstruction instruction) {
    if (instruction.computes)
      add_compute(instruction.steps);
    else
      add_exchange(std::move(instruction));
  }

  std::vector<LaunchOperation>& operations() { return launches_.operations(); }

  std::vector<PeerInstruction> instructions;

 private:
  void add_compute(const std::vector<int>& steps) {
    const int exchange = launches_.awaited(steps, true);
    if (exchange == open_ && !launches_.has_awaited(true, exchange)) open_ = -1;
    launches_.add(steps, true, exchange);
  }

  void add_exchange(PeerInstruction instruction) {
    int compute = launches_.awaited(instruction.steps, false);
    // A receive waits for nothing here. Launched at once it would hold multiprocessors while it
    // waits for messages that the other ranks cannot send before they have run the steps recorded
    // before it.
    if (open_ < 0) compute = std::max(compute, launches_.compute_before(instruction.steps[0]));
    const int place = static_cast<int>(instructions.size());
    if (open_ < 0 || !launches_.has_awaited(false, compute)) {
      open_ = launches_.add({}, false, compute);
      operations()[open_].first = place;
    }
    launches_.extend(open_, instruction.steps);
    operations()[open_].last = place + 1;
    instructions.push_back(std::move(instruction));
  }

  LaunchPlanner launches_;
  int open_ = -1;  // the exchange operation that may grow
};

/// True if some compute operation may run during exchange operation `exchange`; `ended` is the last
/// compute operation that ends before it starts.
bool overlaps_compute(const std::vector<LaunchOperation>& operations, int exchange, int ended) {
  for (int i = ended + 1; i < static_cast<int>(operations.size()); ++i) {
    if (!operations[i].computes) continue;
    return operations[i].waits_for < exchange;  // later ones of its stream start later still
  }
  return false;
}

void mark_overlap(std::vector<LaunchOperation>& operations) {
  int ended = -1;
  for (int i = 0; i < static_cast<int>(operations.size()); ++i) {
    if (operations[i].computes) continue;
    ended = std::max(ended, operations[i].waits_for);
    operations[i].overlaps_compute = overlaps_compute(operations, i, ended);
  }
}

std::vector<int> exchanges_of(const PeerProgram& program) {
  std::vector<int> exchanges;
  for (int i = 0; i < static_cast<int>(program.operations.size()); ++i)
    if (!program.operations[i].computes) exchanges.push_back(i);
  return exchanges;
}

PeerProgram compile(const Schedule& schedule, const std::vector<int>& order, const PeerInboxes& inboxes,
                    const PeerProgramOptions& options) {
  PeerProgram program{.packet_elements = options.packet_elements, .inbox_packets = inboxes.packets()};
  auto& instructions = program.instructions;
  instructions = fuse_peer_steps(schedule, PeerMicroOps(schedule, order, inboxes));
  if (options.merges)
    instructions = merge_peer_instructions(std::move(instructions), options.packet_elements);
  program.operations = plan_peer_operations(schedule, instructions);
  assign_columns(instructions, program.operations, options.packet_elements);
  for (const PeerInstruction& instruction : instructions)
    program.width =
        std::max(program.width, instruction.column + instruction.packets(options.packet_elements));
  return program;
}

}  // namespace

Refusal unsupported_by_peer(std::span<const Schedule> schedules, bool rounds) {
  for (const Schedule& schedule : schedules)
    for (const Step& step : schedule.steps())
      if (Refusal refusal = unsupported(schedule, step, rounds)) return refusal;
  return {};
}

std::vector<LaunchOperation> plan_peer_operations(const Schedule& schedule,
                                                  std::vector<PeerInstruction>& instructions) {
  PeerPlanner planner(schedule);
  for (PeerInstruction& instruction : instructions) planner.add(std::move(instruction));
  instructions = std::move(planner.instructions);
  mark_overlap(planner.operations());
  return std::move(planner.operations());
}

void serialize_compute_after(PeerProgram& program, int exchange) {
  auto& operations = program.operations;
  int last = -1;
  for (int step : operations[exchange].steps) last = std::max(last, step);
  for (int i = exchange + 1; i < static_cast<int>(operations.size()); ++i) {
    // A later message of the exchange may wait for a compute step that was recorded before it.
    if (!operations[i].computes || operations[i].steps[0] <= last) continue;
    operations[i].waits_for = std::max(operations[i].waits_for, exchange);
    break;
  }
  operations[exchange].overlaps_compute = false;
}

void agree_on_overlap(std::vector<PeerProgram>& programs) {
  std::vector<std::vector<int>> exchanges;
  for (const PeerProgram& program : programs) exchanges.push_back(exchanges_of(program));
  const auto alike = [&](const auto& other) { return other.size() == exchanges[0].size(); };
  if (std::all_of(exchanges.begin(), exchanges.end(), alike))
    for (std::size_t i = 0; i < exchanges[0].size(); ++i) {
      bool all = true;
      for (std::size_t rank = 0; rank < programs.size(); ++rank)
        all = all && programs[rank].operations[exchanges[rank][i]].overlaps_compute;
      for (std::size_t rank = 0; rank < programs.size() && !all; ++rank)
        if (programs[rank].operations[exchanges[rank][i]].overlaps_compute)
          serialize_compute_after(programs[rank], exchanges[rank][i]);
    }
  bool any = false;
  for (const PeerProgram& program : programs)
    for (const LaunchOperation& operation : program.operations) any = any || operation.overlaps_compute;
  for (PeerProgram& program : programs) program.overlaps_compute = any;
}

std::vector<PeerProgram> compile_peer_programs(std::span<const Schedule> schedules,
                                               const PeerProgramOptions& options) {
  const PeerInboxes inboxes(schedules, options.packet_elements);
  const auto orders = order_peer_steps(schedules);
  std::vector<PeerProgram> programs;
  for (std::size_t rank = 0; rank < schedules.size(); ++rank)
    programs.push_back(compile(schedules[rank], orders[rank], inboxes, options));
  agree_on_overlap(programs);
  std::int64_t width = 0;
  for (const PeerProgram& program : programs) width = std::max(width, program.width);
  for (PeerProgram& program : programs) program.width = width;
  return programs;
}

}  // namespace baton
