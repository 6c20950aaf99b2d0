// SPDX-License-Identifier: Apache-2.0
// One rank's schedule as the simulator runs it: the cost of each step and the steps that wait for
// it.
//
// Peers are stored relative to the rank, so that all inner ranks of a chain share one program. A
// schedule is built, turned into its program and dropped, so that thousands of ranks fit in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collectives/schedule/check.hpp"
#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/schedule.hpp"
#include "collectives/schedule/step_graph.hpp"
#include "collectives/simulator/topology/topology.hpp"

namespace baton {

class WorkingSet;

/// A step under its index in the schedule, or a join, with which a group of messages may start.
struct Task {
  Verb verb = Verb::copy;
  /// True for a local step that a message waits for.
  bool feeds_message = false;
  /// Type of the elements of a message.
  Dtype dtype = Dtype::f32;
  /// Rank of a message's peer minus this rank.
  std::int32_t peer_offset = 0;
  /// Number of a message among the messages between its two ranks, or of a native among those of
  /// its rank.
  std::int32_t sequence = 0;
  /// Size of a message in bytes.
  std::int64_t bytes = 0;
  /// Seconds of a local step on its engine, or of the launch of a group of messages. Of a message
  /// those by which it holds its rank longer than one whose bytes lie in a cache.
  double seconds = 0;
  /// Seconds of a local step on the memory bus of its node.
  double node_seconds = 0;

  bool is_message() const { return verb == Verb::send || verb == Verb::recv; }
  /// True if the step begins only when all that it waits for has ended, on any machine.
  bool is_kernel() const { return verb == Verb::compute || verb == Verb::native; }
};

/// How errors name a step: "all_scan: rank 1, step 4 (recv, all_scan.cpp:31)".
std::string name_of(const std::string& collective, const Schedule& schedule, int step);

/// The steps of one rank.
class Program {
 public:
  /// Makes the program of `schedule`. Throws ScheduleError, naming `collective`, rank and step, on
  /// a native whose time `topology` does not have.
  Program(const std::string& collective, const Schedule& schedule, const Topology& topology);

  /// The tasks: one a step, then one a join. A join stands between many steps and those that wait
  /// for all of them. It takes no time, or that of the launch of a group of messages.
  const std::vector<Task>& tasks() const { return tasks_; }
  int steps() const { return steps_; }
  bool is_join(int task) const { return task >= steps_; }
  /// The graph of the tasks that wait for one another.
  const StepGraph& graph() const { return graph_; }

  /// The index of message number `sequence` from or to the rank `peer_offset` away; -1 if there is
  /// none.
  int find_message(Verb verb, int peer_offset, int sequence) const;

  const Footprint& footprint() const { return footprint_; }
  std::int64_t sent_bytes() const { return sent_bytes_; }
  /// Floating-point operations of the rank.
  double flops() const { return flops_; }
  /// Bytes of the smallest message that the program sends. If it sends none, this exceeds
  /// `most_message_bytes`.
  std::int64_t least_message_bytes() const { return least_message_bytes_; }
  /// Bytes of the largest message that the program sends; 0 if it sends none.
  std::int64_t most_message_bytes() const { return most_message_bytes_; }

  /// Seconds of all combines by matrices.
  double matrix_seconds() const { return matrix_seconds_; }

  std::size_t hash() const;
  bool operator==(const Program& other) const;

 private:
  void add_task(const Schedule& schedule, const Step& step, const Topology& topology,
                const WorkingSet& works_in);
  void add_native(const std::string& collective, const Schedule& schedule, const Step& step,
                  const Topology& topology);
  void count(std::int64_t sent_bytes);
  void mark_feeding();
  void index_messages();

  /// The messages of one direction between this rank and a peer, which lie in `messages_` in the
  /// order of their numbers.
  struct Channel {
    Verb verb = Verb::send;
    std::int32_t peer_offset = 0;
    std::int32_t first = 0;
    std::int32_t count = 0;
  };
  static auto key_of(const Channel& channel) { return std::pair(channel.verb, channel.peer_offset); }

  int steps_ = 0;
  int natives_ = 0;
  std::vector<Task> tasks_;
  StepGraph graph_;
  Footprint footprint_;
  std::int64_t sent_bytes_ = 0;
  double flops_ = 0;
  double matrix_seconds_ = 0;
  std::int64_t least_message_bytes_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t most_message_bytes_ = 0;
  std::vector<std::int32_t> messages_;  // by channel
  std::vector<Channel> channels_;       // sorted by their keys
};

/// Stores equal programs once.
class ProgramPool {
 public:
  std::shared_ptr<const Program> keep(Program program);

 private:
  std::unordered_multimap<std::size_t, std::shared_ptr<const Program>> programs_;
};

/// Builds the schedule of each rank on demand, since those of thousands of ranks do not fit in
/// memory at once.
struct ScheduleSource {
  /// The name of the schedules in errors.
  std::string name;
  int ranks = 1;
  std::function<Schedule(int rank)> build;
};

/// The most steps of one simulation, which then takes tens of seconds on one core.
inline constexpr double most_simulated_steps = 5e7;

/// The reason why `source` cannot be simulated on `topology`; empty if it can. Builds the schedule
/// of one rank.
Refusal unsupported_by_simulator(const ScheduleSource& source, const Topology& topology);

/// The programs of all ranks. Throws ScheduleError naming collective, rank and step unless every
/// send has a receive of its size and every receive a send, and the time of every native is known.
std::vector<std::shared_ptr<const Program>> compile(const ScheduleSource& source, const Topology& topology);

}  // namespace baton
