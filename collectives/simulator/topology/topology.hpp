// SPDX-License-Identifier: Apache-2.0
// A machine as the simulator sees it: nodes, the ranks on them, what a message and a local step cost. Read from a file
// of topologies/, whose keys docs/topologies.md explains.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace baton {

/// What moves the bytes of a message. A wire has a port for each direction, beside the rank's engine; where the engine
/// copies (a processor through shared memory), sends, receives, copies and combines of a rank queue for it.
enum class Transport { wire, engine };

/// Seconds that `bytes` take, by measured points: straight lines between them, the last slope beyond the last, the
/// first below the first, never less than 0.
struct Curve {
  struct Point {
    double bytes = 0;
    double seconds = 0;
  };
  /// At least two, or none. Bytes ascend; seconds never descend, and ascend at the end.
  std::vector<Point> points;

  bool empty() const { return points.empty(); }
  double seconds(double bytes) const;
};

/// What a message costs between two ranks: it holds a port for `busy_seconds` and is there `latency_seconds` after.
struct LinkModel {
  /// Holds up the message, occupies nothing.
  double latency_seconds = 0;
  /// A message's fixed share of its ports' time.
  double overhead_seconds = 0;
  /// Of one port in one direction.
  double bytes_a_second = 1;
  /// Takes the place of overhead and rate where it is not empty.
  Curve measured;
  /// Of a whole message on an idle network; takes the place of the latency where it is not empty.
  Curve measured_idle;
  Transport moved_by = Transport::wire;
  /// Through what all ranks of a node share in each direction (a node's network card, a memory bus); 0 for nothing.
  double node_bytes_a_second = 0;
  /// Takes its place where it is not empty.
  Curve node_measured;
  /// Where the numbers come from.
  std::string source;

  /// Seconds that a message of `bytes` holds a port.
  double busy_seconds(double bytes) const;
  /// Seconds that it holds what the ranks of a node share.
  double node_seconds(double bytes) const;
  /// Seconds from a message's start to its end on an idle network, less those that it holds a port.
  double latency(double bytes) const;
  double message_seconds(double bytes) const { return latency(bytes) + busy_seconds(bytes); }
};

/// What a local step costs: the larger of its operations and its bytes over the rates, and a launch.
struct Rate {
  double launch_seconds = 0;
  double flops_a_second = 1;
  double bytes_a_second = 1;
  Curve measured;  // by bytes; takes the place of all three where it is not empty
  /// How long it holds the memory bus of its node, by bytes; where it is empty it has the memory for itself.
  Curve node_measured;
  /// Where the numbers come from.
  std::string source;

  double seconds(double flops, double bytes) const;
  double node_seconds(double bytes) const { return node_measured.empty() ? 0 : node_measured.seconds(bytes); }
};

struct DeviceRates {
  /// Of any kernel that `kernels` does not name.
  Rate kernel;
  Rate copy;
  Rate combine;
  /// By the kernels' names.
  std::map<std::string, Rate> kernels;

  const Rate& rate_of(const std::string& kernel_name) const;
};

/// What a topology was measured with; a prediction beyond it is marked as extrapolated.
struct Calibration {
  /// Date, commit, machine and executor, in words.
  std::string stands_on;
  /// Rank counts, bytes of a message: from the least to the most that was measured; 0 where nothing was.
  int most_ranks = 0;
  std::int64_t least_bytes = 0;
  std::int64_t most_bytes = 0;
  /// Of the fit: the geometric mean of max(measured / fitted, fitted / measured), less 1.
  double residual = 0;
};

struct Topology {
  std::string name;
  std::string description;
  int nodes = 1;
  int ranks_a_node = 1;
  /// What a round costs before its first step: the launch of a kernel, a barrier's exit.
  double round_seconds = 0;
  /// True where a message, copy or combine passes on each element as soon as it has it; false where it waits for all.
  bool streams = false;
  /// Where the five above come from.
  std::string source;
  LinkModel intra_node;
  /// Between nodes; where there is a spine, between ranks of equal place in their nodes: a rail.
  LinkModel inter_node;
  /// Between nodes off the rails, through the same network port of a rank.
  std::optional<LinkModel> spine;
  DeviceRates device;
  Calibration calibration;

  int ranks() const { return nodes * ranks_a_node; }
  int node_of(int rank) const { return rank / ranks_a_node; }
  const LinkModel& link(int from, int to) const;
};

/// The topology in the file `path` (docs/topologies.md). Throws UsageError, one line that names the file, the key, what
/// was expected there and what was found.
Topology read_topology(const std::string& path);

/// The topology in `text`; `name` stands for it in errors. Throws as above.
Topology parse_topology(const std::string& text, const std::string& name);

/// The text of a file that `parse_topology` reads back. What has no source of its own gets that of the calibration.
/// Throws as above where no file can say this topology.
std::string write_topology(const Topology& topology);

}  // namespace baton
