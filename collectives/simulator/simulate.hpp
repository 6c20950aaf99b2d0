// SPDX-License-Identifier: Apache-2.0
// The simulator runs the same schedules as the executors in virtual time, on a machine that a file
// of topologies/ describes. It moves no data; its times are predictions, and the same at every run.
//
//   a step is ready when all steps that it waits for have finished
//   a message starts when its send and its receive are ready, and passes the servers of its route
//   a copy or combine that is ready queues for the rank's communication engine
//   a compute step that is ready queues for the rank's compute engine
//   events happen in order of time, and at equal times in the order in which they were made
//   steps that become ready at the same time start in the order of ranks and of recording
//
// On a machine that streams, a step is ready once the steps that it waits for have their first
// element, and it ends no sooner than they do. This holds among messages, copies and combines;
// compute steps always wait for the end.
//
// If the engine itself moves the bytes, a copy or combine that no message waits for runs after the
// messages, as in the engine of the mpi executor.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "collectives/executors/timing.hpp"
#include "collectives/schedule/schedule.hpp"
#include "collectives/simulator/network.hpp"
#include "collectives/simulator/program.hpp"
#include "collectives/simulator/topology/topology.hpp"

namespace baton {

/// The result of one simulated round.
struct Simulation {
  /// Seconds from the round's start to the end of the last step.
  double seconds = 0;
  /// Seconds at which each rank's last step ended.
  std::vector<double> rank_seconds;
  /// Largest number of bytes that a rank sends.
  std::int64_t busiest_sent_bytes = 0;
  /// Largest number of messages on a chain of steps that wait for one another.
  int hops = 0;
  /// Memory of the rank with the largest footprint.
  Footprint footprint;
  /// Floating-point operations of each rank.
  std::vector<double> rank_flops;
  /// Least seconds that the links allow: the largest sum of alphas on a chain of messages, and the
  /// longest time that a rank's bytes take, in or between nodes, at the rates of their links, or
  /// its combines by matrices if those take longer.
  double bound_seconds = 0;
  std::int64_t steps = 0;
  std::int64_t messages = 0;
  /// Bytes of the smallest message; 0 if there is none.
  std::int64_t least_message_bytes = 0;
  /// Bytes of the largest message; 0 if there is none.
  std::int64_t most_message_bytes = 0;
  /// Times of each step; empty unless asked for.
  std::vector<StepTime> timeline;
};

/// Runs the schedules of `source` in virtual time. Throws ScheduleError naming collective, rank and
/// step if messages do not match, if ranks deadlock, or if the time of a native is unknown.
Simulation simulate(const ScheduleSource& source, const Topology& topology, bool with_timeline = false);

/// The limits of the links of a machine.
struct LinkLimits {
  explicit LinkLimits(const Topology& machine);
  const LinkLimit& of(int from, int to) const;

  const Topology& topology;
  LinkLimit intra_node, inter_node, spine;
};

class EventLoop {
 public:
  /// `programs` are those of `source`, one a rank, with matching messages. `source` and `topology`
  /// must outlive the loop.
  EventLoop(const ScheduleSource& source, std::vector<std::shared_ptr<const Program>> programs,
            const Topology& topology, bool with_timeline);

  /// Throws ScheduleError if a step can never start.
  Simulation run();

 private:
  enum class What : std::uint8_t { reaches_server, has_head, finishes };
  struct Event {
    double seconds = 0;
    std::uint64_t order = 0;
    int rank = -1;  // of a step, -1 for a transfer
    int index = 0;  // of the step in its rank, or of the transfer
    What what = What::finishes;
    bool operator>(const Event& other) const {
      return seconds != other.seconds ? seconds > other.seconds : order > other.order;
    }
  };

  /// A running step: a message from its send to its receive, or a local step, which is both ends.
  struct Transfer {
    int from = 0, send = 0;
    int to = 0, recv = 0;
    Route route;
    int stage = 0;
    double reached_until = 0;  // when its tail has left the server before
    double started = 0;

    bool is_message() const { return from != to; }
  };

  std::int64_t number(int rank, int task) const { return first_[rank] + task; }
  const Task& task(int rank, int index) const { return programs_[rank]->tasks()[index]; }

  void push(double seconds, What what, int rank, int index);
  void happen(const Event& event);
  void make_ready(int rank, int index);
  void make_message_ready(int rank, int index);
  void pass_join(int rank, int index);
  void make_native_ready(int rank, int index);
  void start_message(int from, int send, int to, int recv);
  void start_ready();
  int keep(const Transfer& transfer);
  void start(int transfer);
  void pass_stage(int transfer);
  void pass_on(int rank, int index, double head, double end);
  Transfer local_step(int rank, int index) const;
  void start_soon(const Transfer& transfer);
  void has_head(int rank, int index);
  void finish(int rank, int index);
  void release(int rank, int index, int after);
  bool is_streamed(const Task& task) const { return streams_ && !task.is_kernel(); }
  void run_deferred(int rank);
  void note(int rank, int index, double start, double end);
  Simulation outcome();
  void count_bytes();
  void count_link(int from, int send, int to, int recv);
  double bound_seconds() const;
  [[noreturn]] void report_deadlock() const;

  const ScheduleSource& source_;  // for errors
  std::vector<std::shared_ptr<const Program>> programs_;
  Network network_;
  double round_seconds_;
  bool defers_;
  bool streams_;
  bool groups_;
  bool with_timeline_;

  double now_ = 0;
  std::uint64_t orders_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::int64_t> first_;  // number of each rank's first task
  std::vector<std::int32_t> waits_;  // of each task: how many it still waits for; ready_mark once it is ready
  std::vector<std::int32_t> depth_;  // of each task: the most messages on a chain that ends with it
  // The longest chain that ends with each task, in seconds; filled on machines of several nodes.
  std::vector<float> chain_seconds_;
  LinkLimits limits_;
  std::vector<double> wire_seconds_[2];  // of each rank: of the bytes that it sends in and between nodes
  // For each streamed task: the end of the last task that it waits for, then its own.
  std::vector<double> tail_;
  // Transfers to start now, once all events of this time have been seen, by their sending ends.
  std::vector<std::pair<std::int64_t, int>> ready_;
  std::vector<int> idle_;  // ranks that may have time for a deferred step then
  std::vector<Transfer> transfers_;
  std::vector<int> free_transfers_;
  std::map<int, std::vector<Transfer>> gathering_;  // natives by number, of the ranks that are there
  std::vector<int> under_way_;                      // messages of each rank that are ready and not finished
  std::vector<std::deque<int>> deferred_;           // of each rank: local steps that let messages go first
  std::int64_t unfinished_ = 0;
  Simulation result_;
};

}  // namespace baton
