// SPDX-License-Identifier: Apache-2.0
// Launching under MPI, and agreement between processes. The only file of the harness that includes
// MPI.
#include "harness/process/world.hpp"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "collectives/executors/mpi/communicator.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton {

struct Team::CommHandle {
  std::unique_ptr<const Communicator> comm;  // null for a process alone, which needs no MPI
  bool is_member = true;
};

int Team::rank() const { return comm_->comm ? comm_->comm->rank() : 0; }
int Team::size() const { return comm_->comm ? comm_->comm->size() : 1; }
bool Team::is_member() const { return comm_->is_member; }

double Team::max(double value) const { return size() > 1 ? comm_->comm->max(value) : value; }

std::int64_t Team::sum(std::int64_t value) const { return size() > 1 ? comm_->comm->sum(value) : value; }

void Team::sum(std::span<double> values) const {
  if (size() > 1) comm_->comm->sum(values);
}

std::string Team::first(const std::string& text) const {
  return size() > 1 ? comm_->comm->first(text) : text;
}

std::vector<std::vector<double>> Team::gather(const std::vector<double>& mine) const {
  if (size() == 1) return {mine};
  return comm_->comm->gather(mine);
}

void Team::wait_asleep() const {
  if (size() > 1) comm_->comm->barrier_asleep();
}

World::World(int* argc, char*** argv) : uses_mpi_(is_launched()), all_(std::make_shared<Team::CommHandle>()) {
  if (!uses_mpi_) return;
  int provided = 0;
  mpi(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided));
  mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  int size = 1;
  mpi(MPI_Comm_size(MPI_COMM_WORLD, &size));
  all_ = team_of_first(size);
}

void World::require(int processes) const {
  if (size() == std::max(processes, 1)) return;
  const std::string asked =
      "the ranks asked for need " + std::to_string(std::max(processes, 1)) + " processes, but ";
  if (size() == 1)
    throw UsageError(asked + "this one runs alone: was it started without the launcher of its MPI?");
  throw UsageError(asked + "the launcher started " + std::to_string(size()));
}

World::~World() {
  all_ = Team(nullptr);
  if (uses_mpi_) MPI_Finalize();
}

Team World::team(int members) const {
  if (members == size()) return all_;
  if (members > 1 && rank() < members) return team_of_first(members);
  auto comm = std::make_shared<Team::CommHandle>();
  comm->is_member = rank() < members;
  return Team(std::move(comm));
}

Team World::team_of_first(int members) {
  auto comm = std::make_shared<Team::CommHandle>();
  comm->comm = std::make_unique<Communicator>(members, Communicator::Use::team);
  return Team(std::move(comm));
}

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  return std::string(text, std::strcspn(text, ",\n"));
}

void World::abort(int code) const {
  if (uses_mpi_) MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

namespace {

/// The variable in which the launcher passes a process its rank: Open MPI, PMIx, PMI (MPICH,
/// Intel), Slurm's srun.
const char* launcher_variable() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (std::getenv(name) != nullptr) return name;
  // A batch script has SLURM_PROCID too; only a step started by srun has these two as well.
  const bool in_step =
      std::getenv("SLURM_STEP_ID") != nullptr && std::getenv("SLURM_SRUN_COMM_PORT") != nullptr;
  return in_step ? "SLURM_PROCID" : nullptr;
}

}  // namespace

bool is_launched() { return launcher_variable() != nullptr; }

int launched_rank() { return is_launched() ? std::atoi(std::getenv(launcher_variable())) : 0; }

int launched_size() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (is_launched() && std::getenv(name) != nullptr) return std::atoi(std::getenv(name));
  return 0;
}

}  // namespace baton
