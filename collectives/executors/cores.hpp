// SPDX-License-Identifier: Apache-2.0
// The cores that processes may use: physical ones, within the mask that the user, a batch system or
// a container gave, and no more than their quota of processor time has time for. All parts of the
// project that count cores ask here.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "collectives/executors/team.hpp"

namespace baton {

/// Some physical cores of this host.
struct Cores {
  /// The hardware threads of each core that may be used, by the core's place in hwloc's order, in
  /// which cores of one cache and one package are neighbours.
  std::map<int, std::vector<int>> physical;
  /// The cores whose whole time control groups allow, such as 1.5; infinity without a limit.
  double quota = std::numeric_limits<double>::infinity();

  /// The threads that can be busy at once, at least 1. Each takes a core of its own and all of its
  /// time: hyperthreads of a core count once, and a quota of 1.5 cores has time for one thread.
  int count() const;
  /// All hardware threads, ascending.
  std::vector<int> hardware_threads() const;
};

/// The hardware threads that a process may run on, ascending; 0 is this process. Empty if the
/// system does not tell.
std::vector<int> allowed_hardware_threads(int process = 0);

/// The place of the physical core of each hardware thread of this host in hwloc's order.
std::map<int, int> places_of_cores();

/// `threads` by the place of their core. One that `place_of` lacks is taken for a core, after the
/// others.
std::map<int, std::vector<int>> by_core(const std::vector<int>& threads, const std::map<int, int>& place_of);

/// The cores that this process may use. They are those of the process that started it, where that
/// one started it for Baton: a rank that Baton bound to one of them may still use the others.
Cores usable_cores();

/// The cores that the ranks of `team` on this host may use. Collective over the team.
Cores usable_cores(const Team& team);

/// The number of cores that a rank with `mine` can have for itself beside the `others` of its host;
/// 0 if it shares its only one, or if the quota has no time for all.
int own_cores(const Cores& mine, const std::vector<Cores>& others);

/// The same for this rank and the others of `team`. Collective over the team.
int cores_of_rank(const Team& team);

/// The number of cores that each of `ranks` ranks of this host can have for itself, as far as one
/// process can tell: ranks are bound to cores of their own, or share all cores.
int cores_for_each(int ranks);

/// The environment variable that asks a rank which Baton starts to bind itself to `cores` cores; 0
/// leaves it unbound.
std::string binding_variable(int cores);

/// Binds this process to cores of its own if `binding_variable` asks for it: those that its rank
/// has in the order of the usable ones.
void bind_rank();

}  // namespace baton
