// SPDX-License-Identifier: Apache-2.0
// One rank's schedule as the simulator runs it: what each step costs and which steps wait for it, and nothing else.
//
// Peers are told relative to the rank. In a chain all inner ranks then have one program, and only that is kept: a
// schedule is built, turned into its program and dropped, so that thousands of ranks fit.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/schedule.hpp"
#include "collectives/schedule/step_graph.hpp"
#include "collectives/simulator/topology/topology.hpp"

namespace baton {

/// A step. Its index is the step's in the schedule.
struct Task {
  Verb verb = Verb::copy;
  /// A local step that some message waits for.
  bool feeds_message = false;
  /// Of a message: the peer's rank less this one's, and its place among the messages between the two.
  std::int32_t peer_offset = 0;
  std::int32_t sequence = 0;
  /// Of a message.
  std::int64_t bytes = 0;
  /// Of a local step: of its engine, and of the memory bus of its node.
  double seconds = 0;
  double node_seconds = 0;

  bool is_message() const { return verb == Verb::send || verb == Verb::recv; }
};

/// How errors name a step: "all_scan: rank 1, step 4 (recv, all_scan.cpp:31)".
std::string name_of(const std::string& collective, const Schedule& schedule, int step);

/// All steps of a rank.
class Program {
 public:
  /// Throws ScheduleError, naming `collective`, rank and step, on a native step: nobody can tell what it does.
  Program(const std::string& collective, const Schedule& schedule, const DeviceRates& device);

  const std::vector<Task>& tasks() const { return tasks_; }
  /// Which tasks wait for which.
  const StepGraph& graph() const { return graph_; }

  /// The message from or to the rank `peer_offset` away that is number `sequence`; -1 if there is none.
  int find_message(Verb verb, int peer_offset, int sequence) const;

  std::int64_t sent_bytes() const { return sent_bytes_; }
  /// Of the smallest and the largest message that it sends; the former is larger where it sends none.
  std::int64_t least_message_bytes() const { return least_message_bytes_; }
  std::int64_t most_message_bytes() const { return most_message_bytes_; }

  std::size_t hash() const;
  bool operator==(const Program& other) const;

 private:
  void add_task(const Schedule& schedule, const Step& step, const DeviceRates& device);
  void count(std::int64_t sent_bytes);
  void index_messages();

  std::vector<Task> tasks_;
  StepGraph graph_;
  std::int64_t sent_bytes_ = 0;
  std::int64_t least_message_bytes_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t most_message_bytes_ = 0;
  /// Messages by verb, peer offset and sequence.
  std::vector<std::int32_t> messages_;
};

/// Keeps equal programs once.
class ProgramPool {
 public:
  std::shared_ptr<const Program> keep(Program program);

 private:
  std::unordered_multimap<std::size_t, std::shared_ptr<const Program>> programs_;
};

/// A schedule for each rank, made when it is asked for: those of thousands of ranks do not fit in memory at once.
struct ScheduleSource {
  /// Stands in errors.
  std::string name;
  int ranks = 1;
  std::function<Schedule(int rank)> build;
};

/// The most steps that one simulation takes on: tens of seconds on one core.
inline constexpr double most_simulated_steps = 5e7;

/// Why `source` cannot be simulated on `topology`, or an empty string. Builds one rank's schedule to see.
Refusal unsupported_by_simulator(const ScheduleSource& source, const Topology& topology);

/// The programs of all ranks. Throws ScheduleError naming collective, rank and step unless every send has a
/// receive of its size and every receive a send, or if a step is a native.
std::vector<std::shared_ptr<const Program>> compile(const ScheduleSource& source, const DeviceRates& device);

}  // namespace baton
