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
  /// Latency in seconds. The hardware's value if the executor can measure it, otherwise that of its
  /// messages. Used for the bound.
  double alpha_seconds = 0;
  /// Bytes a second.
  double beta = 1;
  /// Seconds that an empty round takes.
  double floor_seconds = 0;
  /// The values of the executor's own messages, which decide the number of blocks; 0 if they are
  /// the values above.
  double message_alpha_seconds = 0;
  double message_beta = 0;
  /// The values of messages between hosts; 0 where all ranks share one. If no two ranks share a
  /// host, the first two values above are these.
  double between_alpha_seconds = 0;
  double between_beta = 0;
  /// Operations a second of the executor's products of affine maps on one rank, as measured; 0 if
  /// they were not, and then they cost nothing.
  double product_flops_a_second = 0;

  /// The least seconds for `hops` messages that wait for one another while the busiest rank sends
  /// `bytes`, and a rank has products of `flops` operations.
  double bound_seconds(int hops, std::int64_t bytes, double flops = 0) const {
    return floor_seconds + hops * alpha_seconds + busy_seconds(bytes, flops);
  }
  /// The part of it for which the busiest link or rank is busy.
  double busy_seconds(std::int64_t bytes, double flops) const {
    const double products = product_flops_a_second > 0 ? flops / product_flops_a_second : 0;
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

/// Operations a second of products of affine maps on the first `busy` of the executor's ranks at
/// once, over as many heads as keep a device busy, or over four on the host. 0 if ranks share a
/// device. Collective over the team.
double measure_products(Executor& executor, const Team& team, int ranks, int busy);

}  // namespace baton
