// SPDX-License-Identifier: Apache-2.0
// The engine of executor `mpi`, and its natives: library calls and hand-written loops that stand in
// for a schedule.
//
// The engine runs one rank's schedule over MPI: messages start as soon as their dependencies allow,
// copies and combines run in between, and compute steps run on a separate thread.
//
//   ready = the steps that wait for nothing
//   until all steps are done:
//     start every ready message (non-blocking); hand every ready compute step to the worker
//     if a copy, combine or native is ready that some message waits for: run it
//     else if no message is under way and any other is ready: run that
//     else: wait until some message or compute step is done
//     a step that is done makes ready the steps that waited for it alone
//
// The communicating thread never runs a kernel, so an exchange progresses during local work as it
// would on a device with its own copy engine.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/executors/host/compute_worker.hpp"
#include "collectives/executors/host/memory.hpp"
#include "collectives/executors/timing.hpp"
#include "collectives/schedule/kernel.hpp"
#include "collectives/schedule/registry.hpp"
#include "collectives/schedule/schedule.hpp"
#include "collectives/schedule/step_graph.hpp"

namespace baton {

/// The arguments of a native: its operands and a communicator whose ranks are in scan order.
struct MpiCall {
  MPI_Comm comm;
  int blocks = 1;
  const HostOperands& operands;
};

using MpiNative = std::function<void(const MpiCall&)>;

/// The natives that are built in, by name.
inline Registry<MpiNative>& mpi_natives() {
  static Registry<MpiNative> all("native of mpi");
  return all;
}

/// Adds a native to the registry, before `main`. Throws UsageError if the name is taken.
struct RegisteredMpiNative {
  RegisteredMpiNative(const std::string& name, MpiNative body) { mpi_natives().add(name, std::move(body)); }
};

/// One rank's prepared schedule.
class MpiEngine {
 public:
  /// `in_order` and `in_reverse` hold the schedule's ranks, forward and backward; `ranks_on_host`
  /// of them run on this host.
  MpiEngine(Schedule schedule, MPI_Comm in_order, MPI_Comm in_reverse, int ranks_on_host);

  HostMemory& memory() { return memory_; }
  const HostMemory& memory() const { return memory_; }

  /// Runs the schedule once. Throws SystemError if MPI fails.
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
  MPI_Comm in_order_;
  MPI_Comm in_reverse_;
  StepGraph graph_;
  std::vector<bool> feeds_message_;  // for each step: whether a message waits for it
  StepRecorder recorder_;
  std::vector<MpiNative> natives_;
  std::vector<HostOperands> operands_;  // of each step
  bool has_spare_core_;                 // for the worker, while this thread polls

  // The state of one run.
  std::int64_t worked_ = 0;  // elements written by local steps since the messages were last looked after
  int unfinished_ = 0;
  std::vector<int> blocked_by_;
  std::deque<int> ready_messages_;
  std::deque<int> ready_urgent_;           // copies, combines and natives that some message waits for
  std::deque<int> ready_local_;            // those that none does: they would only hold up the other ranks
  std::vector<MPI_Request> requests_;      // of the messages under way
  std::vector<int> under_way_;             // their steps
  std::vector<int> completed_;             // scratch for MPI_Waitsome
  std::unique_ptr<ComputeWorker> worker_;  // only where there are compute steps; last, for it uses the memory
};

}  // namespace baton
