// SPDX-License-Identifier: Apache-2.0
// Executors run schedules: their interface, the accelerator behind some of them, and their
// registry.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectives/executors/timing.hpp"
#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/registry.hpp"
#include "collectives/schedule/schedule.hpp"
#include "collectives/schedule/slice.hpp"

namespace baton {

/// The limits of the hardware between two ranks, whatever the library: the terms of a bound.
struct HardwareLimits {
  /// Seconds of an empty round.
  double floor_seconds = 0;
  /// Seconds of a flag from device to device, one way.
  double alpha_seconds = 0;
  /// Bytes a second that a device stores into another's memory. If it is 0, the device reaches no
  /// other, and alpha has no meaning.
  double beta = 0;
};

/// The time by which one clock is ahead of another, and the largest error of that time.
struct ClockOffset {
  double ahead_seconds = 0;
  double error_seconds = 0;
};

/// A number that a device reports about itself, such as {"sm_clock_mhz", 1980}.
struct Reading {
  std::string name;
  double value = 0;
};

/// An executor's accelerators, one a rank unless several ranks share one.
class Device {
 public:
  virtual ~Device() = default;

  /// True if several ranks take turns on a device, so that times say nothing of links.
  virtual bool is_shared() const { return false; }

  /// True if the devices start a round together by their own flags instead of the ranks' barrier.
  virtual bool starts_on_device() const = 0;

  /// The reason why rounds cannot be recorded and replayed; empty if they can.
  virtual Refusal replay_unsupported() const = 0;
  /// The number of rounds in one recording.
  virtual int replayed_rounds() const = 0;
  /// Replays the recording of `replayed_rounds` rounds, launched at once and run back to back, and
  /// returns the seconds of one round. The first call after `prepare` records. All ranks must call
  /// it.
  virtual double replay() = 0;

  /// True if each element travels on as soon as it arrives, before the rest of its message.
  virtual bool streams_messages() const { return false; }
  /// True if messages run in the groups of `message_groups`, and a launch starts all of a group.
  virtual bool groups_messages() const { return false; }

  /// Measures the hardware. All ranks must call it.
  virtual HardwareLimits measure_limits() = 0;

  /// The current clocks, power and reasons for throttling. The names are the same at every call.
  virtual std::vector<Reading> readings() const = 0;
  /// Names and versions, such as {"gpu", "NVIDIA H200"}.
  virtual std::vector<std::pair<std::string, std::string>> facts() const = 0;
};

/// A checksum is the sum modulo 2^64 of word * (index * checksum_step | 1) over elements. Factors
/// are odd and differ, so that the change of one element always changes the sum. The order of
/// summation does not matter.
inline constexpr std::uint64_t checksum_step = 0x9e3779b97f4a7c15;

/// Runs the schedules of a fixed number of ranks.
class Executor {
 public:
  virtual ~Executor() = default;

  /// The ranks whose buffers this process holds, ascending.
  virtual std::vector<int> local_ranks() const = 0;

  /// The reason why these schedules cannot run here; empty if they can.
  virtual Refusal unsupported(std::span<const Schedule> schedules) const = 0;

  /// Lets each rank keep `per_rank` threads busy from the next `prepare` on: 2, of which one
  /// computes while the other exchanges, or 1 that does both in turn. Executors with other ranks
  /// ignore it.
  virtual void use_threads(int /*per_rank*/) {}

  /// Takes checked schedules, one a rank, and allocates their buffers, as they start. May connect
  /// and register memory. Throws SystemError if the library or an allocation fails.
  virtual void prepare(std::vector<Schedule> schedules) = 0;

  /// Copies `from` into a slice of a local rank's buffers.
  virtual void write(int rank, const Slice& into, std::span<const float> from) = 0;
  /// Copies a slice of a local rank's buffers to `into`.
  virtual void read(std::span<float> into, int rank, const Slice& from) const = 0;

  /// The checksum of slices of one local rank, made where their memory is. Equal bits in equal
  /// slices give equal sums on one executor, whereas executors may differ.
  virtual std::uint64_t checksum(int rank, std::span<const Slice> slices) const;
  /// Overwrites the first of every `stride` elements of a slice of a local rank.
  virtual void scatter(int rank, const Slice& into, std::int64_t stride, float value);

  /// Waits for all ranks and returns on all of them at about the same time.
  virtual void synchronise() = 0;

  /// Runs the prepared schedules once and returns the seconds that this process took.
  virtual double run() = 0;

  /// Runs the prepared schedules `rounds` times back to back, without synchronising the ranks, and
  /// returns the seconds of each round.
  virtual std::vector<double> stream(int rounds) {
    std::vector<double> seconds(rounds);
    for (double& round : seconds) round = run();
    return seconds;
  }

  /// Runs once as `run` does and returns when each step of the local ranks started and finished;
  /// empty if the executor cannot tell. All ranks must call it right after `synchronise`. On
  /// several hosts, whose clocks differ, each rank counts from its own return from `synchronise`.
  virtual std::vector<StepTime> run_traced() { return {}; }

  /// The seconds that a message of `bytes` takes from one rank to another, by the simplest call of
  /// the library beneath. All ranks must call it; ranks other than `from` and `to` return 0 at
  /// once. It may drop the prepared schedules, so `prepare` must be called before the next `run`.
  virtual double one_way_seconds(std::int64_t bytes, int from, int to) = 0;

  /// How far `monotonic_seconds` of rank `to` is ahead of that of rank `from`, by one message there
  /// and back: known on `from`, zeros elsewhere. Not numbers if the executor cannot tell. All ranks
  /// must call it.
  virtual ClockOffset clock_offset(int /*from*/, int /*to*/) {
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    return {unknown, unknown};
  }

  /// The type of an f32 element on its way between ranks. Messages are rounded if it is narrower.
  virtual Dtype wire_dtype() const { return Dtype::f32; }

  /// The accelerators behind the ranks, or a null pointer if ranks are processors.
  virtual Device* device() { return nullptr; }
};

inline std::uint64_t Executor::checksum(int rank, std::span<const Slice> slices) const {
  constexpr std::int64_t piece = 1 << 14;  // elements that stay in a cache, an even number
  std::vector<float> values(piece);
  std::uint64_t sum = 0, weight = 0;
  for (const Slice& slice : slices)
    for (std::int64_t from = 0; from < slice.count; from += piece) {
      const auto count = static_cast<std::size_t>(std::min(piece, slice.count - from));
      read(std::span(values).first(count), rank, slice.part(from, static_cast<std::int64_t>(count)));
      if (count % 2 == 1) values[count] = 0;
      // Two elements make a word.
      for (std::size_t i = 0; i < count; i += 2, weight += checksum_step)
        sum += std::bit_cast<std::uint64_t>(std::array{values[i], values[i + 1]}) * (weight | 1);
    }
  return sum;
}

inline void Executor::scatter(int rank, const Slice& into, std::int64_t stride, float value) {
  const std::int64_t piece = stride > 1 ? 1 : 1 << 18;  // stays in a cache
  const std::vector<float> values(std::min(piece, into.count), value);
  for (std::int64_t i = 0; i < into.count; i += piece * stride) {
    const std::int64_t count = std::min(piece, into.count - i);
    write(rank, into.part(i, count), std::span(values).first(count));
  }
}

/// The largest relative error that a message adds to an f32 element; 0 if elements arrive
/// unchanged.
inline double wire_roundoff(const Executor& executor) {
  return executor.wire_dtype() == Dtype::bf16 ? bf16_roundoff : 0;
}

/// The user's choices for all executors of this process.
struct ExecutorChoices {
  /// True if libraries may use NVLink multicast.
  bool multicast = false;
  /// Number of ranks that share a GPU. More than one is for tests and for a look at schedules.
  int ranks_per_gpu = 1;

  bool share_gpus() const { return ranks_per_gpu > 1; }
};

/// The choices of this process. They must be set before the first executor is made.
inline ExecutorChoices& executor_choices() {
  static ExecutorChoices choices;
  return choices;
}

/// A registered executor.
struct ExecutorEntry {
  std::string name;
  std::string summary;
  /// True if each rank is a process of its own.
  bool process_per_rank = false;
  std::function<std::unique_ptr<Executor>(int ranks)> make;
  /// The reason why this machine cannot run `ranks` ranks; empty if it can. A null function never
  /// refuses, and the function must not need MPI.
  std::function<Refusal(int ranks)> lacks = nullptr;
  /// The default type of a layer's tensors, for which the executor has kernels.
  Dtype tensors = Dtype::f32;
  /// True if the executor runs the native called `name`. A null function stands for none.
  std::function<bool(const std::string& name)> runs_native = nullptr;
  /// The type in which messages carry f32 elements.
  Dtype wire = Dtype::f32;
  /// True if the ranks of the executor can share a GPU.
  bool shares_gpus = false;
  /// The threads that a rank can keep busy: 2 if one computes while the other exchanges.
  int most_threads = 1;

  Refusal lacking(int ranks) const { return lacks ? lacks(ranks) : Refusal{}; }
};

/// The executors that are built in, by name.
inline Registry<ExecutorEntry>& executor_registry() {
  static Registry<ExecutorEntry> all("executor");
  return all;
}

/// Adds an executor to the registry, before `main`. If the name is taken, the program ends with
/// exit code 2 and a text that says so.
struct RegisteredExecutor {
  explicit RegisteredExecutor(const ExecutorEntry& entry) {
    add_or_exit([&entry] { executor_registry().add(entry.name, entry); });
  }
};

/// All executors that are built in, by name.
inline std::vector<const ExecutorEntry*> executors() { return executor_registry().all(); }

/// The executor called `name`. Throws UsageError if it is not built in.
inline const ExecutorEntry& find_executor(const std::string& name) {
  if (const ExecutorEntry* entry = executor_registry().find(name)) return *entry;
  throw UsageError("the executor '" + name + "' is not built in");
}

}  // namespace baton
