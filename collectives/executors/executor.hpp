// SPDX-License-Identifier: Apache-2.0
// What runs schedules: one interface for every machine, the accelerator behind it where there is one, and the
// registry of executors that are built in.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectives/executors/timing.hpp"
#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// What the hardware allows between two ranks whatever the library: the terms of a bound.
struct Wire {
  /// What an empty round reads.
  double floor_seconds = 0;
  /// One way of a flag from device to device.
  double alpha_seconds = 0;
  /// Bytes a second that a device stores into another's memory; 0 where it reaches none, and alpha then says nothing.
  double beta = 0;
};

/// A number that a device shows about itself at some moment, such as {"sm_clock_mhz", 1980}.
struct Reading {
  std::string name;
  double value = 0;
};

/// An executor's accelerator, one a rank.
class Device {
 public:
  virtual ~Device() = default;

  /// True where the devices start a round together by flags of their own, not by the ranks' barrier.
  virtual bool starts_on_device() const = 0;

  /// Why rounds cannot be recorded and replayed, or an empty string.
  virtual Refusal replay_unsupported() const = 0;
  /// Rounds in one recording.
  virtual int replayed_rounds() const = 0;
  /// Replays the recording of `replayed_rounds` rounds, back to back on the device and launched as one; the seconds of
  /// one of them. The first call after `prepare` records. To be called by all ranks.
  virtual double replay() = 0;

  /// True where an element is under way to the next rank as soon as it has come, before the rest of its message.
  virtual bool streams_messages() const { return false; }

  /// Measures the hardware. To be called by all ranks.
  virtual Wire measure_wire() = 0;

  /// Clocks, power and why the clocks were held down, now; the same names at every call.
  virtual std::vector<Reading> readings() const = 0;
  /// Names and versions, such as {"gpu", "NVIDIA H200"}.
  virtual std::vector<std::pair<std::string, std::string>> facts() const = 0;
};

/// Runs the schedules of a fixed number of ranks.
class Executor {
 public:
  virtual ~Executor() = default;

  /// The ranks whose buffers this process holds, ascending.
  virtual std::vector<int> local_ranks() const = 0;

  /// Why these schedules cannot run here, or an empty string.
  virtual Refusal unsupported(std::span<const Schedule> schedules) const = 0;

  /// Takes checked schedules, one a rank, and makes their buffers, all zeros. May connect and register
  /// memory. Throws SystemError if the library or the memory fails.
  virtual void prepare(std::vector<Schedule> schedules) = 0;

  /// Copies into, or out of, a slice of a local rank's buffers.
  virtual void write(int rank, const Slice& into, std::span<const float> from) = 0;
  virtual void read(std::span<float> into, int rank, const Slice& from) const = 0;

  /// Returns on all ranks at about the same time.
  virtual void synchronise() = 0;

  /// Runs the prepared schedules once; the seconds that this process took.
  virtual double run() = 0;

  /// Runs the prepared schedules `rounds` times back to back, with no word between the ranks; the seconds of each.
  virtual std::vector<double> stream(int rounds);

  /// Runs once as `run` does and tells when each step of the local ranks started and finished; nothing where the
  /// executor cannot tell. To be called by all ranks, right after `synchronise`. Where ranks run on several hosts,
  /// whose clocks differ, every rank counts from its own leaving of `synchronise`.
  virtual std::vector<StepTime> run_traced() { return {}; }

  /// Seconds that a message of `bytes` takes from one rank to another, by the plainest means of the library
  /// beneath. To be called by all ranks; those that are neither `from` nor `to` get 0 at once.
  virtual double one_way_seconds(std::int64_t bytes, int from, int to) = 0;

  /// What an f32 element is on its way from one rank to another; where that is narrower, messages are rounded.
  virtual Dtype wire_dtype() const { return Dtype::f32; }

  /// The accelerators that the ranks are, or a null pointer where they are processors.
  virtual Device* device() { return nullptr; }
};

/// The largest relative error that a message of f32 elements takes on its way; 0 where they arrive as they were sent.
double wire_roundoff(const Executor& executor);

/// What the user chose for all executors of this process.
struct ExecutorChoices {
  /// Whether libraries may use NVLink multicast.
  bool multicast = false;
};

/// To be set before the first executor is made.
ExecutorChoices& executor_choices();

/// A registered executor.
struct ExecutorEntry {
  std::string name;
  std::string summary;
  /// True where each rank is a process of its own.
  bool process_a_rank = false;
  std::function<std::unique_ptr<Executor>(int ranks)> make;
  /// What this machine lacks to run so many ranks, or an empty string; not there where nothing can be lacking. Needs no
  /// MPI.
  std::function<Refusal(int ranks)> lacks = nullptr;
  /// What the tensors of a layer are where nobody says it: what there are kernels for.
  Dtype tensors = Dtype::f32;

  Refusal lacking(int ranks) const { return lacks ? lacks(ranks) : Refusal{}; }
};

/// Adds an executor to the registry, before `main`. Throws UsageError if the name is taken.
struct RegisteredExecutor {
  explicit RegisteredExecutor(ExecutorEntry entry);
};

/// All executors that are built in, by name.
std::vector<const ExecutorEntry*> executors();

/// The executor called `name`. Throws UsageError if it is not built in.
const ExecutorEntry& find_executor(const std::string& name);

}  // namespace baton
