// SPDX-License-Identifier: Apache-2.0
// From schedules to programs, and those to the event loop.
#include "collectives/simulator/simulate.hpp"

#include <memory>

#include "collectives/schedule/errors.hpp"
#include "collectives/simulator/events.hpp"
#include "collectives/simulator/program.hpp"

namespace baton {
namespace {

using Programs = std::vector<std::shared_ptr<const Program>>;

Programs compile(const ScheduleSource& source, const DeviceRates& device) {
  ProgramPool pool;
  Programs programs;
  for (int rank = 0; rank < source.ranks; ++rank)
    programs.push_back(pool.keep(Program(source.name, source.build(rank), device)));
  return programs;
}

[[noreturn]] void fail(const ScheduleSource& source, int rank, int step, const std::string& what) {
  throw ScheduleError(name_of(source.name, source.build(rank), step) + ": " + what);
}

/// Throws unless every send of `rank` has a receive of its size, and every receive a send.
void check_messages(const ScheduleSource& source, const Programs& programs, int rank) {
  const auto& tasks = programs[rank]->tasks();
  for (int i = 0; i < static_cast<int>(tasks.size()); ++i) {
    const Task& task = tasks[i];
    if (!task.is_message()) continue;
    const int peer = rank + task.peer_offset;
    const Program& other = *programs[peer];
    const int partner = other.find_message(task.verb == Verb::send ? Verb::recv : Verb::send,
                                           -task.peer_offset, task.sequence);
    if (partner < 0)
      fail(source, rank, i, "a message that rank " + std::to_string(peer) + " knows nothing of");
    if (other.tasks()[partner].bytes != task.bytes)
      fail(source, rank, i, "rank " + std::to_string(peer) + " has another size for this message");
  }
}

}  // namespace

Refusal unsupported_by_simulator(const ScheduleSource& source, const Topology& topology) {
  if (source.ranks > topology.ranks())
    return std::to_string(source.ranks) + " ranks do not fit on " + topology.name + ", which has " +
           std::to_string(topology.ranks());
  const Schedule middle = source.build(source.ranks / 2);
  if (!middle.natives().empty()) return middle.natives()[0].name + " is a native: no steps to simulate";
  const double steps = static_cast<double>(middle.steps().size()) * source.ranks;
  if (steps <= most_simulated_steps) return {};
  return "about " + std::to_string(static_cast<std::int64_t>(steps / 1e6)) + " million steps to simulate";
}

Simulation simulate(const ScheduleSource& source, const Topology& topology, bool with_timeline) {
  Programs programs = compile(source, topology.device);
  for (int rank = 0; rank < source.ranks; ++rank) check_messages(source, programs, rank);
  return EventLoop(source, std::move(programs), topology, with_timeline).run();
}

}  // namespace baton
