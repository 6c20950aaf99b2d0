// SPDX-License-Identifier: Apache-2.0
// The engine of the executors with one process a rank, `mpi` and `tcp`: it runs one rank's schedule
// over messages that travel on their own. They start as soon as their dependencies allow, copies
// and combines run in between, and compute steps run on a separate thread, the worker.
//
//   ready = the steps that wait for nothing
//   until all steps are done:
//     start every ready message; hand every ready compute step to the worker
//     if a copy, combine or native is ready that some message waits for: run it
//     else if there is no worker and a compute step is ready: run it
//     else if no message is under way and any other is ready: run that
//     else: wait until some message or compute step is done
//     a step that is done makes ready the steps that waited for it alone
//
// With a worker the communicating thread never runs a kernel, so an exchange progresses during
// local work as it would on a device with its own copy engine. Where a rank has one core alone
// there is none, and messages progress between kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "collectives/executors/host/compute_worker.hpp"
#include "collectives/executors/host/memory.hpp"
#include "collectives/executors/team.hpp"
#include "collectives/executors/timing.hpp"
#include "collectives/schedule/kernel.hpp"
#include "collectives/schedule/schedule.hpp"
#include "collectives/schedule/step_graph.hpp"

namespace baton {

/// Messages between ranks. Message number `tag` from a to b matches the receive of that number, in
/// whatever order messages start.
class Messages {
 public:
  virtual ~Messages() = default;
  /// Begins a round, in which messages are numbered anew. All messages of the round before have
  /// finished on this rank.
  virtual void begin_round() {}
  /// Starts to send message `tag` and returns. `step` names it to `finish`, and `from` must stay
  /// until then.
  virtual void send(int step, std::span<const std::byte> from, int to, int tag) = 0;
  /// Starts to receive message `tag` and returns. `step` names it to `finish`, and `into` must stay
  /// until then.
  virtual void receive(int step, std::span<std::byte> into, int from, int tag) = 0;
  /// Appends the steps whose messages have finished to `done`. With `wait` it blocks until there is
  /// one, which must be under way. Throws SystemError if a rank cannot be reached any more.
  virtual void finish(std::vector<int>& done, bool wait) = 0;
  /// A step whose message is under way, for reports of where a rank waits; there must be one.
  virtual int under_way() const = 0;
};

/// Runs a native of the schedule on its operands.
using NativeRunner = std::function<void(const NativeCall& native, const HostOperands& operands)>;

/// One rank's prepared schedule.
class Engine {
 public:
  /// Makes the engine of one rank, which keeps one or two threads busy. `messages` must outlive it,
  /// and the rank has `own_cores` cores for itself.
  Engine(Schedule schedule, Messages& messages, NativeRunner run_native, int own_cores, int threads);

  const Schedule& schedule() const { return schedule_; }
  HostMemory& memory() { return memory_; }
  const HostMemory& memory() const { return memory_; }

  /// Runs the schedule once. Throws what `messages` throws.
  void run();

  /// Runs the schedule once and returns when each step started and finished, on the monotonic
  /// clock. The times of compute steps are those of the worker.
  std::vector<StepTime> run_traced();

 private:
  void start_message(int index);
  void run_local(int index);
  void run_next(std::deque<int>& ready);
  void look_after_messages();
  void wait_for_something();
  int finish_messages(bool wait);
  int finish_computed(bool wait);
  void finish(int index);
  void make_ready(int index);

  Schedule schedule_;
  HostMemory memory_;
  Messages& messages_;
  NativeRunner run_native_;
  StepGraph graph_;
  std::vector<bool> feeds_message_;  // for each step: whether a message waits for it
  StepRecorder recorder_;
  std::vector<HostOperands> operands_;  // of each step
  bool has_spare_core_;                 // for the worker, while this thread polls

  // The state of one run.
  std::int64_t worked_ = 0;  // elements written by local steps since the messages were last looked after
  int unfinished_ = 0;
  std::vector<int> blocked_by_;
  std::deque<int> ready_messages_;
  std::deque<int> ready_urgent_;           // copies, combines and natives that some message waits for
  std::deque<int> ready_compute_;          // compute steps, where there is no worker
  std::deque<int> ready_local_;            // the rest: they would only hold up the other ranks
  int under_way_ = 0;                      // messages that have started and not finished
  std::vector<int> completed_;             // scratch for Messages::finish
  std::unique_ptr<ComputeWorker> worker_;  // null if one thread does all; last, for it uses the memory
};

/// The base of executors that run one rank by an engine.
class EngineExecutor : public Executor {
 public:
  std::vector<int> local_ranks() const override { return {team_.rank()}; }
  void write(int, const Slice& into, std::span<const float> from) override {
    engine_->memory().write(into, from);
  }
  void read(std::span<float> into, int, const Slice& from) const override {
    std::as_const(*engine_).memory().read(into, from);
  }
  void use_threads(int per_rank) override { threads_ = per_rank; }
  double run() override;
  /// Runs one round and returns the times of its steps. On one host all ranks count from the
  /// earliest start; on several hosts each rank counts from its own start.
  std::vector<StepTime> run_traced() override;

 protected:
  /// Makes the executor's team. Collective over the first `ranks` processes of the run.
  explicit EngineExecutor(int ranks);

  const Team& team() const { return team_; }
  Engine& engine() { return *engine_; }  ///< That of this rank, once `prepare_engine` has made it.
  void prepare_engine(std::vector<Schedule> schedules, Messages& messages, NativeRunner run_native);

 private:
  Team team_;
  bool is_on_one_host_;
  int own_cores_;
  int threads_ = 2;
  std::unique_ptr<Engine> engine_;
};

}  // namespace baton
