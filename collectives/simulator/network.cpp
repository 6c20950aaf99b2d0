// SPDX-License-Identifier: Apache-2.0
// Servers and ways.
#include "collectives/simulator/network.hpp"

#include <algorithm>

namespace baton {

Network::Network(const Topology& topology, int ranks)
    : topology_(topology), nodes_from_(ranks * servers_a_rank) {
  const int nodes = (ranks + topology.ranks_a_node - 1) / topology.ranks_a_node;
  free_at_.assign(nodes_from_ + nodes * servers_a_node, 0);
}

Way Network::way(int from, int to, std::int64_t bytes) const {
  const LinkClass& link = topology_.link(from, to);
  const double size = static_cast<double>(bytes), busy = link.busy_seconds(size);
  const int from_node = topology_.node_of(from), to_node = topology_.node_of(to);
  const bool within = from_node == to_node, wired = link.moved_by == Mover::wire;
  Way way;
  const auto pass = [&way](int server, double seconds) { way.stage[way.stages++] = {server, seconds, 0}; };

  pass(of_rank(from, !wired ? communication_engine : within ? local_out : network_out), busy);
  if (const double shared = link.node_seconds(size); shared > 0) {
    pass(of_node(from_node, within ? memory_bus : card_out), shared);
    if (!within) pass(of_node(to_node, card_in), shared);
  }
  pass(of_rank(to, !wired ? communication_engine : within ? local_in : network_in), busy);
  way.stage[way.stages - 1].latency_seconds = link.latency(size);
  // All in all what a message of no bytes takes; measured latencies differ from size to size.
  way.head_seconds = std::clamp(link.message_seconds(0) - link.latency(size), 0.0, busy);
  return way;
}

Way Network::local_way(int rank, Verb verb, double seconds, double node_seconds) const {
  Way way;
  way.stage[way.stages++] = {of_rank(rank, verb == Verb::compute ? kernel_engine : communication_engine),
                             seconds, 0};
  if (node_seconds > 0)
    way.stage[way.stages++] = {of_node(topology_.node_of(rank), memory_bus), node_seconds, 0};
  return way;
}

double Network::occupy(int server, double now, double seconds) {
  const double start = std::max(now, free_at_[server]);
  free_at_[server] = start + seconds;
  return start;
}

}  // namespace baton
