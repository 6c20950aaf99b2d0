// SPDX-License-Identifier: Apache-2.0
#include "collectives/simulator/topology/topology.hpp"

#include <algorithm>
#include <iterator>

namespace baton {

double Curve::seconds(double bytes) const {
  // The segment that holds `bytes`, or the first or last one outside of all.
  const auto above = std::upper_bound(points.begin() + 1, points.end() - 1, bytes,
                                      [](double b, const Point& point) { return b < point.bytes; });
  const Point &end = *above, &start = *std::prev(above);
  const double slope = (end.seconds - start.seconds) / (end.bytes - start.bytes);
  return std::max(0.0, start.seconds + (bytes - start.bytes) * slope);
}

double LinkModel::busy_seconds(double bytes) const {
  return measured.empty() ? overhead_seconds + bytes / bytes_a_second : measured.seconds(bytes);
}

double LinkModel::node_seconds(double bytes) const {
  if (!node_measured.empty()) return node_measured.seconds(bytes);
  return node_bytes_a_second > 0 ? bytes / node_bytes_a_second : 0;
}

double LinkModel::latency(double bytes) const {
  if (measured_idle.empty()) return latency_seconds;
  return std::max(0.0, measured_idle.seconds(bytes) - busy_seconds(bytes));
}

double Rate::seconds(double flops, double bytes) const {
  if (!measured.empty()) return measured.seconds(bytes);
  return launch_seconds + std::max(flops / flops_a_second, bytes / bytes_a_second);
}

const Rate& DeviceRates::rate_of(const std::string& kernel_name) const {
  const auto own = kernels.find(kernel_name);
  return own == kernels.end() ? kernel : own->second;
}

const LinkModel& Topology::link(int from, int to) const {
  if (node_of(from) == node_of(to)) return intra_node;
  const bool same_place = from % ranks_a_node == to % ranks_a_node;
  return spine && !same_place ? *spine : inter_node;
}

}  // namespace baton
