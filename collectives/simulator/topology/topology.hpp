// SPDX-License-Identifier: Apache-2.0
// A machine for the simulator: its nodes, the ranks on them, and the costs of messages and local
// steps. It is read from a file of topologies/, whose keys docs/topologies.md explains.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collectives/simulator/topology/curve.hpp"
#include "collectives/simulator/topology/library_call.hpp"

namespace baton {

/// The mover of a message's bytes. A wire has a port for each direction, apart from the rank's
/// engine. If the engine copies (a processor through shared memory), the sends, receives, copies
/// and combines of a rank queue for it.
enum class Transport { wire, engine };

/// Bounds of all messages on a link, whatever their sizes: the least latency, and the highest rate
/// of a row of messages.
struct LinkLimit {
  double alpha_seconds = 0;
  double bytes_per_second = 1;
};

/// The cost of a message between two ranks. It occupies a port for `busy_seconds` and arrives
/// `latency_seconds` later.
struct LinkModel {
  /// Seconds by which a message is delayed without occupying a port.
  double latency_seconds = 0;
  /// Seconds for which a message occupies its ports, whatever its size.
  double overhead_seconds = 0;
  /// Bytes a second of one port in one direction.
  double bytes_per_second = 1;
  /// Measured seconds for which a message occupies its ports. It replaces overhead and rate unless
  /// it is empty.
  Curve measured;
  /// Measured seconds of a whole message on an idle network. It replaces the latency unless it is
  /// empty.
  Curve measured_idle;
  Transport moved_by = Transport::wire;
  /// Bytes a second, in each direction, of the resource that all ranks of a node share (a network
  /// card, a memory bus); 0 if they share none.
  double node_bytes_per_second = 0;
  /// Measured seconds for which a message occupies the shared resource of its node. It replaces
  /// node_bytes_per_second unless it is empty.
  Curve node_measured;
  /// The source of the numbers.
  std::string source;

  /// Seconds for which a message of `bytes` occupies a port.
  double busy_seconds(double bytes) const;
  /// Seconds for which a message of `bytes` occupies the resource that the ranks of a node share.
  double node_seconds(double bytes) const;
  /// Seconds from start to end of a message of `bytes` on an idle network, minus those for which it
  /// occupies a port.
  double latency(double bytes) const;
  double message_seconds(double bytes) const { return latency(bytes) + busy_seconds(bytes); }
  /// The bounds of all messages on this link. For a measured curve: the best rate of a port at any
  /// size, and the least time that any size takes beside it.
  LinkLimit limit() const;
};

/// The cost of a local step: a launch, and the larger of operations and bytes over their rates.
struct Rate {
  double launch_seconds = 0;
  double flops_per_second = 1;
  double bytes_per_second = 1;
  Curve measured;  // by bytes; takes the place of all three where it is not empty
  /// Measured seconds for which a step occupies the memory bus of its node, by bytes. If it is
  /// empty, the step does not use the bus.
  Curve node_measured;
  /// The source of the numbers.
  std::string source;

  double seconds(double flops, double bytes) const;
  double node_seconds(double bytes) const { return node_measured.empty() ? 0 : node_measured.seconds(bytes); }
};

/// The cache that the processors of a node share. Without it a copy, a combine or a message that an
/// engine moves takes the same wherever its bytes lie.
struct Cache {
  /// Bytes in it; 0 if there is none.
  double bytes = 0;
  /// By which share such a step takes longer if none of its bytes lie in the cache.
  double slowdown = 0;
  /// The source of the numbers.
  std::string source;
};

/// The name under which `DeviceRates::kernels` has combines by matrices.
inline constexpr const char* affine_combine = "affine_combine";

struct DeviceRates {
  /// The rate of any kernel that `kernels` does not name.
  Rate kernel;
  Rate copy;
  Rate combine;
  Cache cache;
  /// The rates of kernels, by name.
  std::map<std::string, Rate> kernels;

  const Rate& rate_of(const std::string& kernel_name) const;
  /// The rate of a combine by matrices: that of the kernel "affine_combine", or else of any
  /// combine. A curve over bytes says nothing of products; then it is that of any kernel.
  const Rate& affine_combine() const {
    return kernels.contains(baton::affine_combine) || !combine.measured.empty()
               ? rate_of(baton::affine_combine)
               : combine;
  }
};

/// The range in which a topology was measured. Predictions outside are marked as extrapolated.
struct Calibration {
  /// The date, commit, machine and executor of the measurement, in words.
  std::string stands_on;
  /// The most ranks that were measured; 0 if nothing was measured.
  int most_ranks = 0;
  /// Bytes of the smallest message that was measured; 0 if nothing was measured.
  std::int64_t least_bytes = 0;
  /// Bytes of the largest message that was measured; 0 if nothing was measured.
  std::int64_t most_bytes = 0;
  /// The error of the fit: the geometric mean of max(measured / fitted, fitted / measured), minus
  /// 1.
  double residual = 0;
  /// The number of nodes between which messages were measured, 1 if none were.
  int most_nodes = 1;
};

struct Topology {
  std::string name;
  std::string description;
  int nodes = 1;
  int ranks_per_node = 1;
  /// Seconds of a round before its first step: the launch of a kernel, the exit from a barrier.
  double round_seconds = 0;
  /// True if messages, copies and combines pass on each element as soon as they have it; false if
  /// they wait for all elements.
  bool streams = false;
  /// True if the messages of a rank run in the groups of `message_groups`, one group after the
  /// other, and each group pays one launch. False if each message starts, and pays, for itself.
  bool groups = false;
  /// The source of the machine's numbers.
  std::string source;
  LinkModel intra_node;
  /// The link between nodes. If there is a spine, it joins only ranks of equal place in their nodes
  /// (a rail).
  LinkModel inter_node;
  /// The link between ranks of different nodes that are not on one rail, through the same network
  /// port of a rank.
  std::optional<LinkModel> spine;
  DeviceRates device;
  /// The calls of a communication library whose times are known, by their natives' names.
  std::map<std::string, LibraryCall> natives;
  Calibration calibration;

  int ranks() const { return nodes * ranks_per_node; }
  int node_of(int rank) const { return rank / ranks_per_node; }
  const LinkModel& link(int from, int to) const;
};

/// Reads the topology in the file `path` (docs/topologies.md). Throws UsageError, one line that
/// names the file, the key, the expected and the found value.
Topology read_topology(const std::string& path);

/// Reads the topology in `text`, which errors call `name`. Throws UsageError, one line that names
/// the key, the expected and the found value.
Topology parse_topology(const std::string& text, const std::string& name);

/// The text of a file that `parse_topology` reads back. Sections without a source get that of the
/// calibration. Throws UsageError if a file cannot express this topology.
std::string write_topology(const Topology& topology);

inline double LinkModel::busy_seconds(double bytes) const {
  return measured.empty() ? overhead_seconds + bytes / bytes_per_second : measured.seconds(bytes);
}

inline double LinkModel::node_seconds(double bytes) const {
  if (!node_measured.empty()) return node_measured.seconds(bytes);
  return node_bytes_per_second > 0 ? bytes / node_bytes_per_second : 0;
}

inline double LinkModel::latency(double bytes) const {
  if (measured_idle.empty()) return latency_seconds;
  return std::max(0.0, measured_idle.seconds(bytes) - busy_seconds(bytes));
}

inline LinkLimit LinkModel::limit() const {
  if (measured.empty() && measured_idle.empty()) return {message_seconds(0), bytes_per_second};
  std::vector<double> sizes{1 << 30};
  for (const Curve* curve : {&measured, &measured_idle})
    for (const Curve::Point& point : curve->points)
      if (point.bytes > 0) sizes.push_back(point.bytes);
  LinkLimit limit{message_seconds(0), 1};
  for (const double bytes : sizes)
    if (const double busy = busy_seconds(bytes); busy > 0)
      limit.bytes_per_second = std::max(limit.bytes_per_second, bytes / busy);
  for (const double bytes : sizes) {
    const double beside = std::min(busy_seconds(0), busy_seconds(bytes) - bytes / limit.bytes_per_second);
    limit.alpha_seconds = std::min(limit.alpha_seconds, latency(bytes) + std::max(beside, 0.0));
  }
  return limit;
}

inline double Rate::seconds(double flops, double bytes) const {
  if (!measured.empty()) return measured.seconds(bytes);
  return launch_seconds + std::max(flops / flops_per_second, bytes / bytes_per_second);
}

inline const Rate& DeviceRates::rate_of(const std::string& kernel_name) const {
  const auto own = kernels.find(kernel_name);
  return own == kernels.end() ? kernel : own->second;
}

inline const LinkModel& Topology::link(int from, int to) const {
  if (node_of(from) == node_of(to)) return intra_node;
  const bool same_place = from % ranks_per_node == to % ranks_per_node;
  return spine && !same_place ? *spine : inter_node;
}

}  // namespace baton
