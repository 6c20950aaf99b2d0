// SPDX-License-Identifier: Apache-2.0
// What is shared in a simulated machine, and the way that a message takes through it.
//
// Everything that can be busy is a server with a queue, first come, first served: of each rank its communication engine,
// its compute engine, and the two directions of its local and of its network port; of each node its memory bus and the
// two directions of its network card. A message passes the servers of its way one behind the other like a train: its
// head reaches the next while its tail is still in the last one (cut-through).
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/schedule/schedule.hpp"
#include "collectives/simulator/topology/topology.hpp"

namespace baton {

/// The servers that a message passes, in order.
struct Way {
  struct Stage {
    int server = 0;
    /// How long the message keeps it.
    double service_seconds = 0;
    /// Of the wire before it.
    double latency_seconds = 0;
  };
  int stages = 0;
  Stage stage[4];
  /// From the start of the last stage until the first element is there.
  double head_seconds = 0;
};

class Network {
 public:
  Network(const Topology& topology, int ranks);

  /// Of a message.
  Way way(int from, int to, std::int64_t bytes) const;
  /// Of a local step: an engine, and the memory bus where it holds that.
  Way local_way(int rank, Verb verb, double seconds, double node_seconds) const;

  int engine(int rank) const { return of_rank(rank, communication_engine); }

  /// Takes `server` for `seconds` from `now` on or from when it is free; when that starts.
  double occupy(int server, double now, double seconds);
  double free_at(int server) const { return free_at_[server]; }

 private:
  enum RankServer {
    communication_engine,
    kernel_engine,
    local_out,
    local_in,
    network_out,
    network_in,
    servers_a_rank
  };
  enum NodeServer { memory_bus, card_out, card_in, servers_a_node };

  int of_rank(int rank, RankServer which) const { return rank * servers_a_rank + which; }
  int of_node(int node, NodeServer which) const { return nodes_from_ + node * servers_a_node + which; }

  const Topology& topology_;
  int nodes_from_;
  std::vector<double> free_at_;
};

}  // namespace baton
