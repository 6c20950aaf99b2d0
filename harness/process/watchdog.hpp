// SPDX-License-Identifier: Apache-2.0
// What ends a launch in which a rank died, stopped or takes too long, and says so.
#pragma once

#include <string>

#include "harness/process/report.hpp"
#include "harness/process/world.hpp"

namespace baton {

/// Reports dead, stopped and slow ranks, and ends the launch. Works through signals alone, so
/// that nothing runs beside a measured round but a handler of a few microseconds once a second
/// (SIGALRM): it compares the time with the limit, every few seconds looks whether the next rank
/// of this host still runs, and sends the heartbeat of the bootstrap, which finds lost ranks of
/// other hosts. The first ranks of several hosts send signs of life to one another, so that a
/// report names a host that is silent. SIGTERM means that a launcher ends the survivors of a dead
/// rank, SIGUSR1 that another rank has reported, SIGINT that the user interrupts a process without
/// a launcher.
class Watchdog {
 public:
  /// Begins to watch. `limit_seconds` is the limit of each case, 0 for none. `keeps` says, for an
  /// interrupted run, where its results are and how to go on. Collective over `world`.
  Watchdog(const World& world, int limit_seconds, const std::string& keeps);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Notes that a case begins: reports name it, and its time starts.
  void enter(const std::string& case_name);
};

/// Reports the error that ends this rank, unless another rank has reported a failure, and tells the
/// others. Before the first Watchdog no other rank hears of it.
void report_error(const Report& error);

}  // namespace baton
