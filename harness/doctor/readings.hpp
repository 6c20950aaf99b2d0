// SPDX-License-Identifier: Apache-2.0
// The readings of an examination: numbers and names of a machine and its ranks, which
// plots/baton/doctor judges.
// A reading that can change is taken several times, spread over the whole examination.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace baton::doctor {

/// One value for each repeat; empty if the system does not tell the value.
using Repeats = std::vector<double>;

/// A logical core. Facts that the system does not tell are -1.
struct Core {
  int number = 0;
  /// The lowest logical core of the same physical core; another number means a hyperthread.
  int physical = -1;
  int package = -1;
  /// The lowest logical core that shares the last-level cache.
  int cache = -1;
  /// The NUMA node.
  int node = -1;
  /// The part of the time for which others used this core while all ranks slept.
  Repeats busy;
  /// The part of the time for which a hypervisor took this core away while ranks computed.
  Repeats stolen;
};

/// A process that is no rank and that used the processor while all ranks slept.
struct OtherProcess {
  int number = 0;
  std::string name;
  /// Cores that the process used on average while all ranks slept.
  double cores = 0;
};

/// A host, as its first rank sees it.
struct HostReadings {
  std::uint32_t host = 0;
  std::vector<Core> cores;
  /// hwloc's XML of the host, of which the cores are a part.
  std::string topology;
  /// The busiest processes that are no ranks, busiest first.
  std::vector<OtherProcess> others;
  /// Cores that the control group may use; 0 if it sets no limit.
  double quota_cores = 0;
  /// How often the control group held processes back during the examination.
  std::int64_t quota_stops = 0;
  /// NVIDIA GPUs that the driver has.
  int gpus = 0;
  std::string clock_source;
  /// Seconds that one reading of the clock takes.
  double timer_seconds = 0;
  /// Free bytes of /dev/shm; -1 if there is none.
  std::int64_t shared_memory_bytes = -1;
};

/// The accelerator of a rank.
struct DeviceReadings {
  std::string executor;
  std::string name;
  /// Mean seconds of the same work on each rank.
  Repeats work_seconds;
  /// The readings of the device right after the measured work, by name; -1 for an unknown value.
  std::map<std::string, Repeats> values;
};

/// A rank's process.
struct RankReadings {
  int rank = 0;
  std::uint32_t host = 0;
  /// Logical cores that the rank may run on.
  std::vector<int> cores;
  /// The core that the rank ran on at last; -1 if unknown.
  int core = -1;
  /// The NUMA node of the rank's memory; -1 if unknown.
  int memory_node = -1;
  /// Mean seconds of the same computation on all ranks at once.
  Repeats spin_seconds;
  /// The part of the computation's time in which another thread had the rank's core.
  Repeats waited;
  /// The clock of the rank's core right after the computation, in MHz.
  Repeats clock_mhz;
  /// The base clock of the rank's core in MHz, 0 if unknown; `most_mhz` is the highest clock.
  double base_mhz = 0;
  double most_mhz = 0;
  /// The highest clock in MHz that the system's settings allow; 0 if unknown.
  double allowed_mhz = 0;
  std::string governor;
  /// How often heat slowed the rank's core during the examination.
  std::int64_t heat_events = 0;
  std::vector<DeviceReadings> devices;
};

/// One-way times of messages between two ranks.
struct PairReadings {
  int from = 0;
  int to = 0;
  /// The median seconds of a message of `small_bytes` in each repeat; `large_seconds` are those of
  /// `large_bytes`.
  Repeats latency_seconds;
  Repeats large_seconds;
};

/// The readings of all pairs of ranks of one executor.
struct LinkReadings {
  std::string executor;
  int ranks = 0;
  /// True if the executor moves messages between accelerators.
  bool is_device = false;
  std::int64_t small_bytes = 8;
  std::int64_t large_bytes = 0;
  std::vector<PairReadings> pairs;
};

/// An executor that is built in, and the reason why this machine cannot run it; empty if it can.
struct ExecutorReadings {
  std::string name;
  std::string lacks;
};

struct BuildReadings {
  std::string type;
  std::string commit;
  std::string mpi;
  std::vector<ExecutorReadings> executors;
};

/// All readings. Those of hosts and ranks are texts of `text_of`, as other processes send them.
struct Readings {
  std::string machine;
  BuildReadings build;
  std::vector<std::string> hosts;
  std::vector<std::string> ranks;
  std::vector<LinkReadings> links;
  /// Why the ranks ended before all readings were taken; empty if they did not.
  std::string failure;
};

/// The readings as JSON in one line.
std::string text_of(const RankReadings& rank);
std::string text_of(const HostReadings& host);
std::string text_of(const Readings& readings);

}  // namespace baton::doctor
