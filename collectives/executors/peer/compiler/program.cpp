// SPDX-License-Identifier: Apache-2.0
// From schedules to programs: order the steps, fuse them, merge blocks, share the elements out among threads.
#include "collectives/executors/peer/compiler/program.hpp"

#include <algorithm>

#include "collectives/executors/peer/compiler/columns.hpp"
#include "collectives/executors/peer/compiler/fuse.hpp"
#include "collectives/executors/peer/compiler/order.hpp"
#include "collectives/executors/peer/compiler/plan.hpp"
#include "collectives/schedule/check.hpp"

namespace baton {
namespace {

/// True where one thread would read what another one writes, within the step.
bool overlaps_itself(const Step& step) {
  for (const Slice& written : step.writes)
    for (const Slice& read : step.reads) {
      const bool overlap =
          written.buffer == read.buffer && written.offset < read.end() && read.offset < written.end();
      if (overlap && written != read) return true;
    }
  return false;
}

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
  if (!step.is_message() && overlaps_itself(step)) return which + " shifts a slice within itself";
  return {};
}

}  // namespace

bool PeerProgram::has_barriers() const {
  return std::any_of(instructions.begin(), instructions.end(), [](const auto& i) { return i.barrier; });
}

std::int64_t PeerProgram::width() const {
  std::int64_t width = 0;
  for (const PeerInstruction& instruction : instructions)
    width = std::max(width, instruction.column + instruction.packets(packet_elements));
  return width;
}

Refusal unsupported_by_peer(std::span<const Schedule> schedules, bool rounds) {
  for (const Schedule& schedule : schedules)
    for (const Step& step : schedule.steps())
      if (Refusal refusal = unsupported(schedule, step, rounds)) return refusal;
  return {};
}

PeerProgram compile_peer_program(std::span<const Schedule> schedules, int rank,
                                 const PeerProgramOptions& options) {
  const PeerInboxes inboxes(schedules, options.packet_elements);
  const auto orders = peer_order(schedules);
  auto instructions = fuse_peer_steps(schedules[rank], orders[rank], inboxes);
  if (options.merges)
    instructions = merge_peer_instructions(std::move(instructions), options.packet_elements);
  auto operations = plan_peer_operations(schedules[rank], instructions);
  assign_columns(instructions, operations, options.packet_elements);
  return {std::move(instructions), std::move(operations), inboxes.packets(), inboxes.messages(),
          options.packet_elements};
}

}  // namespace baton
