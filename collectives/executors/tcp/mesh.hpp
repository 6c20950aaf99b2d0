// SPDX-License-Identifier: Apache-2.0
// A connection between every two ranks of executor `tcp`, and the messages of its engine over them.
//
//   connect:  each rank listens at a port of its own; all tell all their addresses and ports; each
//             connects to the ranks before it, and accepts the ranks behind it, which send a nonce
//             that this team alone knows
//   wait:     look at all connections for 50 us if the rank has a core for itself; then sleep until
//             one of them can go on
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/executors/host/engine.hpp"
#include "collectives/executors/tcp/link.hpp"
#include "collectives/executors/team.hpp"

namespace baton::tcp {

/// The links of one rank to all others.
class Mesh : public Messages {
 public:
  /// Connects all pairs. Collective over the team, which must outlive it. Throws SystemError with
  /// the pair that cannot be connected.
  explicit Mesh(const Team& team);

  void begin_round() override;
  void send(int step, std::span<const std::byte> from, int to, int tag) override;
  void receive(int step, std::span<std::byte> into, int from, int tag) override;
  void finish(std::vector<int>& done, bool wait) override;
  int under_way() const override { return steps_.front(); }

  /// A dissemination barrier, as executor `mpi` has: after ceil(log2 P) exchanges with ranks at
  /// distance 1, 2, 4, ... each rank has heard of all others.
  void barrier();

 private:
  void connect_all(const Team& team);
  void move(int milliseconds);

  const Team& team_;
  bool has_own_core_;
  std::uint32_t round_ = 0;
  std::vector<Link> links_;  // by rank; the own one is not connected
  std::vector<int> done_;    // steps that finished and were not asked for yet
  std::vector<int> steps_;   // under way
  std::vector<pollfd> polled_;
};

}  // namespace baton::tcp
