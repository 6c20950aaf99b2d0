// SPDX-License-Identifier: Apache-2.0
// The shared resources of a simulated machine, and the route of a message through them.
//
// Every resource is a server with a queue, first come, first served. A rank has a communication
// engine, a compute engine, and the two directions of a local and of a network port. A node has a
// memory bus and the two directions of a network card. A message passes the servers of its route
// one after the other, and its head reaches the next server while its tail is still in the last one
// (cut-through).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "collectives/schedule/schedule.hpp"
#include "collectives/simulator/topology/topology.hpp"

namespace baton {

/// The servers that a message passes, in order.
struct Route {
  struct Stage {
    int server = 0;
    /// Seconds for which the message occupies the server.
    double service_seconds = 0;
    /// Seconds of latency before this server.
    double latency_seconds = 0;
  };
  int stages = 0;
  Stage stage[4];
  /// Seconds from the start of the last stage to the arrival of the first element.
  double head_seconds = 0;
};

class Network {
 public:
  Network(const Topology& topology, int ranks);

  /// The route of a message of `bytes` bytes, which holds the sender and the receiver for so many
  /// seconds longer than the link says.
  Route route(int from, int to, std::int64_t bytes, double sent_longer, double received_longer) const;
  /// The route of a local step: its engine, and the memory bus if it occupies that.
  Route local_route(int rank, Verb verb, double seconds, double node_seconds) const;

  int engine(int rank) const { return of_rank(rank, communication_engine); }

  /// Occupies `server` for `seconds`, from `now` or from when it is free, and returns the start.
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
    servers_per_rank
  };
  enum NodeServer { memory_bus, card_out, card_in, servers_per_node };

  int of_rank(int rank, RankServer which) const { return rank * servers_per_rank + which; }
  int of_node(int node, NodeServer which) const { return nodes_from_ + node * servers_per_node + which; }

  const Topology& topology_;
  int nodes_from_;
  std::vector<double> free_at_;
};

inline Network::Network(const Topology& topology, int ranks)
    : topology_(topology), nodes_from_(ranks * servers_per_rank) {
  const int nodes = (ranks + topology.ranks_per_node - 1) / topology.ranks_per_node;
  free_at_.assign(nodes_from_ + nodes * servers_per_node, 0);
}

inline Route Network::route(int from, int to, std::int64_t bytes, double sent_longer,
                            double received_longer) const {
  const LinkModel& link = topology_.link(from, to);
  const double size = static_cast<double>(bytes);
  const double busy =
      link.busy_seconds(size) - (topology_.groups ? link.busy_seconds(0) : 0);  // less a launch
  const int from_node = topology_.node_of(from), to_node = topology_.node_of(to);
  const bool within = from_node == to_node, wired = link.moved_by == Transport::wire;
  Route route;
  const auto pass = [&route](int server, double seconds) {
    route.stage[route.stages++] = {server, seconds, 0};
  };

  pass(of_rank(from, !wired ? communication_engine : within ? local_out : network_out), busy + sent_longer);
  if (const double shared = link.node_seconds(size); shared > 0) {
    pass(of_node(from_node, within ? memory_bus : card_out), shared);
    if (!within) pass(of_node(to_node, card_in), shared);
  }
  pass(of_rank(to, !wired ? communication_engine : within ? local_in : network_in), busy + received_longer);
  route.stage[route.stages - 1].latency_seconds = link.latency(size);
  // In total this is the time of an empty message; measured latencies differ from size to size.
  route.head_seconds = std::clamp(link.message_seconds(0) - link.latency(size), 0.0, busy);
  return route;
}

inline Route Network::local_route(int rank, Verb verb, double seconds, double node_seconds) const {
  Route route;
  route.stage[route.stages++] = {of_rank(rank, verb == Verb::compute ? kernel_engine : communication_engine),
                                 seconds, 0};
  if (node_seconds > 0)
    route.stage[route.stages++] = {of_node(topology_.node_of(rank), memory_bus), node_seconds, 0};
  return route;
}

inline double Network::occupy(int server, double now, double seconds) {
  const double start = std::max(now, free_at_[server]);
  free_at_[server] = start + seconds;
  return start;
}

}  // namespace baton
