// SPDX-License-Identifier: Apache-2.0
// Routines: a user's own code in place of all steps of a rank, on the executor's memory. The Python
// package makes them of functions.
//
//   inputs were written   prepare, before the next round; not timed
//   a round               run; timed
//   outputs are accessed  finish, once after a round; not timed
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/schedule/registry.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// An operand of a routine, in the memory of the executor's buffers.
struct RoutineOperand {
  /// The name of the buffer.
  std::string name;
  /// The sizes of its dimensions, the last one changing fastest.
  std::vector<std::int64_t> shape;
  Dtype dtype = Dtype::f32;
  void* data = nullptr;
};

/// Messages between the routines of a round, by places in scan order.
class RoutineMessages {
 public:
  virtual ~RoutineMessages() = default;
  /// Sends to another rank, and returns when the memory may be written again. Message n from a to b
  /// is received by the n-th `receive` of b from a, which must be of the same size.
  virtual void send(std::span<const float> from, int to) = 0;
  virtual void receive(std::span<float> into, int from) = 0;
};

/// What a routine is made for: one rank's part of one prepared case.
struct RoutineCall {
  std::vector<RoutineOperand> writes, reads;
  /// This rank's place in scan order, and the number of ranks.
  int rank = 0;
  int ranks = 1;
  bool reversed = false;
  /// Number of elements of a row of the scanned maps, and their form, if the routine scans.
  std::int64_t row = 0;
  MapForm form = {};
  /// The executor's messages; null if it has none for routines.
  RoutineMessages* messages = nullptr;
  /// The CUDA stream that takes the routine's work, and the number of its device; null on
  /// processors.
  void* stream = nullptr;
  int device = 0;

  /// The home rank of a place in scan order.
  int home(int place) const { return reversed ? ranks - 1 - place : place; }
};

/// A user's code in place of all steps of a rank. Executors call its parts through RoutineTurns,
/// when the head of this file says. Each part may throw SystemError.
class Routine {
 public:
  virtual ~Routine() = default;
  virtual void prepare() = 0;
  virtual void run() = 0;
  virtual void finish() = 0;
};

using MakeRoutine = std::function<std::unique_ptr<Routine>(const RoutineCall&)>;

/// The routines that were added, by the name of their native.
Registry<MakeRoutine>& routines();

/// Measures the seconds that the call of a routine takes whose function does nothing; null where
/// there are no routines.
std::function<double()>& empty_call_seconds();

/// True if the only step of a schedule is a native that a routine runs.
bool has_routine(const Schedule& schedule);

/// What a rank's routine is called with, but for what the executor adds. `memory` gives the memory
/// of a slice of `schedule`, which must have a routine.
RoutineCall routine_call(const Schedule& schedule, const std::function<void*(const Slice&)>& memory);

/// Calls the parts of a rank's routine in their order. Empty turns do nothing.
class RoutineTurns {
 public:
  RoutineTurns() = default;
  /// Makes the routine of `schedule`, which must have one.
  RoutineTurns(const Schedule& schedule, const RoutineCall& call)
      : routine_(routines().at(schedule.natives()[0].name)(call)), inputs_(schedule.steps()[0].reads) {}
  explicit operator bool() const { return routine_ != nullptr; }

  /// To be called before a slice is written.
  void before_write(const Slice& into) {
    before_read();
    for (const Slice& input : inputs_)
      if (input.buffer == into.buffer) is_prepared_ = false;
  }
  /// To be called before outputs are read.
  void before_read() const {
    if (!is_finished_) routine_->finish();
    is_finished_ = true;
  }
  /// True if inputs were written since `prepare`, which must be called before the next round.
  bool must_prepare() const { return routine_ && !is_prepared_; }
  void prepare() {
    routine_->prepare();
    is_prepared_ = true;
  }
  void run() {
    if (!is_prepared_) prepare();
    is_finished_ = false;
    routine_->run();
  }

 private:
  std::unique_ptr<Routine> routine_;
  std::vector<Slice> inputs_;
  bool is_prepared_ = false;
  mutable bool is_finished_ = true;
};

}  // namespace baton
