// SPDX-License-Identifier: Apache-2.0
#include "collectives/simulator/program.hpp"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "collectives/schedule/check.hpp"
#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/kernel.hpp"
#include "collectives/simulator/joins.hpp"
#include "collectives/simulator/natives.hpp"
#include "collectives/simulator/working_set.hpp"

namespace baton {
namespace {

double touched_bytes(const Step& step) {
  std::int64_t bytes = 0;
  for (const Slice& slice : step.writes) bytes += slice.bytes();
  for (const Slice& slice : step.reads) bytes += slice.bytes();
  return static_cast<double>(bytes);
}

bool is_affine(const Step& step) {
  return step.verb == Verb::combine && step.combine.form.kind == MapKind::affine;
}

/// Sets the seconds of a local step's task. Kernels were measured in the layers that they are in,
/// and products do not wait for memory.
void cost(Task& task, const Schedule& schedule, const Step& step, const DeviceRates& device,
          const WorkingSet& works_in) {
  const Kernel* kernel = step.verb == Verb::compute ? &schedule.kernels()[step.body] : nullptr;
  const Rate& rate = kernel                       ? device.rate_of(kernel->name)
                     : is_affine(step)            ? device.affine_combine()
                     : step.verb == Verb::combine ? device.combine
                                                  : device.copy;
  const double flops = kernel ? kernel->flops : step.verb == Verb::combine ? step.combine_flops() : 0;
  const double bytes = kernel ? kernel->bytes : touched_bytes(step);
  task.seconds = rate.seconds(flops, bytes);
  if (!kernel && !is_affine(step))
    task.seconds = works_in.seconds(
        bytes, [&](double b) { return rate.seconds(bytes > 0 ? flops * b / bytes : flops, b); });
  task.node_seconds = rate.node_seconds(bytes);
}

/// Seconds by which a message of `bytes` takes longer than one whose bytes lie in a cache.
double longer_seconds(double bytes, const LinkModel& link, const WorkingSet& works_in) {
  if (link.moved_by == Transport::wire) return 0;
  return works_in.seconds(bytes, [&link](double b) { return link.busy_seconds(b); }) -
         link.busy_seconds(bytes);
}

auto facts_of(const Task& task) {
  return std::tuple(task.verb, task.peer_offset, task.sequence, task.feeds_message, task.dtype, task.bytes,
                    task.seconds, task.node_seconds);
}

constexpr const char* no_native_time = " is a native: no steps to simulate";

}  // namespace

std::string name_of(const std::string& collective, const Schedule& schedule, int step) {
  return collective + ": rank " + std::to_string(schedule.home_rank()) + ", " +
         step_name(schedule.steps()[step], step);
}

Program::Program(const std::string& collective, const Schedule& schedule, const Topology& topology)
    : steps_(static_cast<int>(schedule.steps().size())),
      footprint_(baton::footprint(schedule)),
      flops_(traffic_of(schedule).flops) {
  tasks_.reserve(schedule.steps().size());
  const WorkingSet works_in(footprint_, schedule.ranks(), topology);
  for (const Step& step : schedule.steps())
    if (step.verb == Verb::native)
      add_native(collective, schedule, step, topology);
    else
      add_task(schedule, step, topology, works_in);
  const bool groups = topology.groups && !schedule.steps().empty();
  JoinedSteps joined = groups ? join_groups(schedule, topology) : join(schedule.steps());
  graph_ = std::move(joined.graph);
  for (std::size_t i = 0; i < joined.kernels_wait.size(); ++i)
    tasks_.push_back({.verb = joined.kernels_wait[i] ? Verb::compute : Verb::copy,
                      .seconds = joined.seconds.empty() ? 0 : joined.seconds[i]});
  mark_feeding();
  index_messages();
}

void Program::add_native(const std::string& collective, const Schedule& schedule, const Step& step,
                         const Topology& topology) {
  const std::string& name = schedule.natives()[step.body].name;
  const std::optional<double> seconds = native_seconds(topology, name, schedule.ranks(), step);
  if (!seconds)
    throw ScheduleError(name_of(collective, schedule, static_cast<int>(tasks_.size())) + ": " + name +
                        no_native_time);
  tasks_.push_back({.verb = Verb::native, .sequence = natives_++, .seconds = *seconds});
}

void Program::add_task(const Schedule& schedule, const Step& step, const Topology& topology,
                       const WorkingSet& works_in) {
  Task task;
  task.verb = step.verb;
  if (step.is_message()) {
    task.peer_offset = step.peer - schedule.home_rank();
    task.sequence = step.sequence;
    const Slice& slice = step.verb == Verb::send ? step.reads[0] : step.writes[0];
    task.dtype = slice.dtype;
    task.bytes = slice.bytes();
    task.seconds = longer_seconds(static_cast<double>(task.bytes),
                                  topology.link(schedule.home_rank(), step.peer), works_in);
    if (step.verb == Verb::send) count(task.bytes);
  } else {
    cost(task, schedule, step, topology.device, works_in);
    if (is_affine(step)) matrix_seconds_ += task.seconds;
  }
  tasks_.push_back(task);
}

void Program::count(std::int64_t bytes) {
  sent_bytes_ += bytes;
  least_message_bytes_ = std::min(least_message_bytes_, bytes);
  most_message_bytes_ = std::max(most_message_bytes_, bytes);
}

/// Marks the tasks that a message waits for. A join is marked before the steps that it waits for,
/// which are earlier than those that wait for it.
void Program::mark_feeding() {
  const auto feeds = [this](int i) {
    const auto waiters = graph_.waiters(i);
    return std::any_of(waiters.begin(), waiters.end(), [this](int after) {
      return tasks_[after].is_message() || tasks_[after].feeds_message;
    });
  };
  std::vector<bool> is_marked(tasks_.size() - steps_, false);
  for (int i = steps_ - 1; i >= 0; --i) {
    for (int after : graph_.waiters(i))
      if (is_join(after) && !is_marked[after - steps_]) {
        tasks_[after].feeds_message = feeds(after);
        is_marked[after - steps_] = true;
      }
    tasks_[i].feeds_message = feeds(i);
  }
}

/// A schedule numbers the messages of a channel from 0 on in the order of its steps, so sorting
/// them by channel and step leaves each at its number.
void Program::index_messages() {
  std::vector<std::tuple<Verb, std::int32_t, std::int32_t>> messages;
  for (std::size_t i = 0; i < tasks_.size(); ++i)
    if (const Task& task = tasks_[i]; task.is_message())
      messages.emplace_back(task.verb, task.peer_offset, static_cast<std::int32_t>(i));
  std::sort(messages.begin(), messages.end());
  messages_.reserve(messages.size());
  for (const auto& [verb, peer_offset, step] : messages) {
    const auto number = static_cast<std::int32_t>(messages_.size());
    if (channels_.empty() || key_of(channels_.back()) != std::pair(verb, peer_offset))
      channels_.push_back({verb, peer_offset, number});
    ++channels_.back().count;
    messages_.push_back(step);
  }
}

int Program::find_message(Verb verb, int peer_offset, int sequence) const {
  const std::pair wanted(verb, peer_offset);
  const auto found = std::lower_bound(channels_.begin(), channels_.end(), wanted,
                                      [](const Channel& a, const auto& key) { return key_of(a) < key; });
  if (found == channels_.end() || key_of(*found) != wanted || sequence >= found->count) return -1;
  return messages_[found->first + sequence];
}

std::size_t Program::hash() const {
  std::size_t hash = tasks_.size();
  const auto add = [&hash](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29;
  };
  for (const Task& task : tasks_) {
    add(static_cast<std::uint64_t>(task.verb) << 32 ^ static_cast<std::uint32_t>(task.peer_offset));
    add(static_cast<std::uint64_t>(task.bytes) ^ std::bit_cast<std::uint64_t>(task.seconds));
  }
  for (int i = 0; i < graph_.size(); ++i)
    for (int after : graph_.waiters(i)) add(static_cast<std::uint64_t>(after));
  return hash;
}

bool Program::operator==(const Program& other) const {
  const auto same = [](const Task& a, const Task& b) { return facts_of(a) == facts_of(b); };
  return graph_ == other.graph_ && footprint_ == other.footprint_ &&
         std::equal(tasks_.begin(), tasks_.end(), other.tasks_.begin(), other.tasks_.end(), same);
}

std::shared_ptr<const Program> ProgramPool::keep(Program program) {
  const std::size_t hash = program.hash();
  const auto [first, last] = programs_.equal_range(hash);
  for (auto known = first; known != last; ++known)
    if (*known->second == program) return known->second;
  return programs_.emplace(hash, std::make_shared<const Program>(std::move(program)))->second;
}

namespace {

[[noreturn]] void fail(const ScheduleSource& source, int rank, int step, const std::string& what) {
  throw ScheduleError(name_of(source.name, source.build(rank), step) + ": " + what);
}

/// Throws ScheduleError unless every send of `rank` has a receive of its size, and every receive a
/// send.
void check_messages(const ScheduleSource& source, const std::vector<std::shared_ptr<const Program>>& programs,
                    int rank) {
  const auto& tasks = programs[rank]->tasks();
  for (int i = 0; i < static_cast<int>(tasks.size()); ++i) {
    const Task& task = tasks[i];
    if (!task.is_message()) continue;
    const int peer = rank + task.peer_offset;
    const Program& other = *programs[peer];
    const Verb other_end = task.verb == Verb::send ? Verb::recv : Verb::send;
    const int partner = other.find_message(other_end, -task.peer_offset, task.sequence);
    if (partner < 0)
      fail(source, rank, i,
           "rank " + std::to_string(peer) + " has no " + to_string(other_end) + " for this message");
    if (other.tasks()[partner].bytes != task.bytes || other.tasks()[partner].dtype != task.dtype)
      fail(source, rank, i, "rank " + std::to_string(peer) + " has another size or type for this message");
  }
}

/// Returns why a native of `schedule` has no time on `topology`; empty if all have one.
Refusal unknown_native(const Schedule& schedule, const Topology& topology) {
  const std::set<std::string> known = simulated_natives(topology);
  for (const NativeCall& native : schedule.natives()) {
    if (!known.contains(native.name)) return native.name + no_native_time;
    if (schedule.ranks() > topology.ranks_per_node)
      return native.name + " is a native, whose times on " + topology.name + " are those of one node";
  }
  return {};
}

}  // namespace

Refusal unsupported_by_simulator(const ScheduleSource& source, const Topology& topology) {
  if (source.ranks > topology.ranks())
    return std::to_string(source.ranks) + " ranks do not fit on " + topology.name + ", which has " +
           std::to_string(topology.ranks());
  const Schedule middle = source.build(source.ranks / 2);
  if (const Refusal reason = unknown_native(middle, topology)) return reason;
  const double steps = static_cast<double>(middle.steps().size()) * source.ranks;
  if (steps <= most_simulated_steps) return {};
  return "about " + std::to_string(static_cast<std::int64_t>(steps / 1e6)) + " million steps to simulate";
}

std::vector<std::shared_ptr<const Program>> compile(const ScheduleSource& source, const Topology& topology) {
  ProgramPool pool;
  std::vector<std::shared_ptr<const Program>> programs;
  for (int rank = 0; rank < source.ranks; ++rank)
    programs.push_back(pool.keep(Program(source.name, source.build(rank), topology)));
  for (int rank = 0; rank < source.ranks; ++rank) check_messages(source, programs, rank);
  return programs;
}

}  // namespace baton
