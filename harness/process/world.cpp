// SPDX-License-Identifier: Apache-2.0
// Joining the run that a launcher started, and its teams.
#include "harness/process/world.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "collectives/executors/cores.hpp"
#include "collectives/executors/launcher.hpp"
#include "collectives/executors/settings_in_force.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

std::unique_ptr<Bootstrap> join(int* argc, char*** argv) {
  bind_rank();  // before a library has threads
  const std::string& name = launcher().bootstrap;
  if (name.empty()) return nullptr;
  const BootstrapEntry* entry = bootstraps().find(name);
  if (entry == nullptr)
    throw UsageError("a launcher of MPI started this process, and this build has no MPI: start it with " +
                     std::string("torchrun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT"));
  return entry->join(argc, argv);
}

}  // namespace

World::World(int* argc, char*** argv) : bootstrap_(join(argc, argv)) {
  if (!bootstrap_) return;
  the_bootstrap() = bootstrap_.get();
  all_ = bootstrap_->team(bootstrap_->size());
}

World::~World() {
  all_ = Team();
  the_bootstrap() = nullptr;
}

void World::require(int processes) const {
  if (size() == std::max(processes, 1)) return;
  const std::string asked =
      "the ranks asked for need " + std::to_string(std::max(processes, 1)) + " processes, but ";
  if (size() == 1)
    throw UsageError(asked + "this one runs alone: was it started without the launcher of its MPI?");
  throw UsageError(asked + "the launcher started " + std::to_string(size()));
}

Team World::team(int members) const {
  if (members == size()) return all_;
  if (rank() >= members) return Team::of_others();
  return members > 1 ? team_of_first(members) : Team();
}

void World::abort(int code) const {
  if (bootstrap_) bootstrap_->abort(code);
  std::_Exit(code);
}

std::string mpi_library() {
  const BootstrapEntry* entry = bootstraps().find("mpi");
  return entry == nullptr ? "no MPI" : entry->library();
}

std::vector<std::pair<std::string, std::string>> settings_of_messages(const std::string& executor) {
  const bool are_by_mpi = the_bootstrap() != nullptr && launcher().bootstrap == "mpi" && executor == "mpi";
  if (!are_by_mpi || !settings_in_force()) return {};
  return settings_in_force()();
}

std::string host_executor() {
  return launcher().bootstrap == "tcp" || bootstraps().find("mpi") == nullptr ? "tcp" : "mpi";
}

bool is_launched() { return !launcher().bootstrap.empty(); }

int launched_rank() {
  try {
    return launcher().rank;
  } catch (const UsageError&) {
    return 0;  // the error itself is being reported
  }
}

int launched_size() {
  try {
    return launcher().size;
  } catch (const UsageError&) {
    return 0;  // the error itself is being reported
  }
}

}  // namespace baton
