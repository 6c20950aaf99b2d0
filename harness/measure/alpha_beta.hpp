// SPDX-License-Identifier: Apache-2.0
// The two numbers of the alpha-beta model, and how they are measured.
#pragma once

#include <algorithm>
#include <cstdint>

namespace baton {

class Executor;
class Placement;
class Team;

/// The alpha-beta model of a message: alpha + bytes / beta seconds.
struct AlphaBeta {
  /// Latency of a message in seconds, for the bound: that of the hardware if the executor can
  /// measure it, otherwise that of the executor's messages.
  double alpha_seconds = 0;
  /// Rate of a message in bytes a second, for the bound.
  double beta = 1;
  /// Seconds that an empty round takes.
  double floor_seconds = 0;
  /// Latency of the executor's own messages, which with `message_beta` decides the number of
  /// blocks. Both are 0 where `alpha_seconds` and `beta` are those of messages.
  double message_alpha_seconds = 0;
  double message_beta = 0;
  /// Latency of messages between hosts, with the rate `between_beta`; 0 where all ranks share a
  /// host. If no two ranks share a host, `alpha_seconds` and `beta` are measured between hosts too.
  double between_alpha_seconds = 0;
  double between_beta = 0;
  /// Floating-point operations a second of a rank's products of affine maps; 0 if they were not
  /// measured, and then products cost nothing.
  double product_flops_per_second = 0;

  /// The least seconds for `hops` messages that wait for one another while the busiest rank sends
  /// `bytes`, and a rank has products of `flops` operations.
  double bound_seconds(int hops, std::int64_t bytes, double flops = 0) const {
    return floor_seconds + hops * alpha_seconds + busy_seconds(bytes, flops);
  }
  /// The seconds for which the busiest link or rank is busy: the longer of sending `bytes` and of
  /// products of `flops` operations.
  double busy_seconds(std::int64_t bytes, double flops) const {
    const double products = product_flops_per_second > 0 ? flops / product_flops_per_second : 0;
    return std::max(static_cast<double>(bytes) / beta, products);
  }

  /// The number of blocks that makes a chain of P ranks fastest, sqrt((P-2) N / (alpha beta)), from
  /// 1 to `most`. Over several hosts, alpha and beta are those between hosts.
  int best_blocks(int ranks, std::int64_t bytes, std::int64_t most) const;
};

/// Measures ping-pongs between neighbours, one pair at a time. alpha is half the round trip of 8
/// bytes; beta is the best rate, less alpha, of 64 KiB to 4 MiB where a message takes more than 2
/// alpha. Each time is the least of its rounds, and each number the median over at most 8 pairs.
/// Over several hosts, pairs within a host and pairs of neighbouring hosts are measured apart.
/// Devices measure their hardware themselves; the executor's messages are then
/// `message_alpha_seconds` and `message_beta`. Nothing is measured if ranks share a device.
AlphaBeta measure_alpha_beta(Executor& executor, const Team& team, const Placement& placement);

/// `link` with the better latencies, rates and empty rounds of two readings of it.
AlphaBeta best_of(AlphaBeta link, const AlphaBeta& again);

/// Floating-point operations a second of products of affine maps, on the first `busy` of the
/// executor's ranks at once. A device has as many heads as keep it busy, a host four. 0 if ranks
/// share a device. Collective over the team.
double measure_products(Executor& executor, const Team& team, int ranks, int busy);

}  // namespace baton
