// SPDX-License-Identifier: Apache-2.0
// Launching under MPI, and agreement between processes. The only file of the harness that includes
// MPI.
#include "harness/process/world.hpp"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
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

std::string World::library() const {
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

/// Binds if every thread can have its own core: a bound rank that shares a core is slower than an
/// unbound one.
std::vector<std::string> binding(int processes, int threads) {
  if (processes * threads > static_cast<int>(std::thread::hardware_concurrency()))
    return {"--bind-to", "none"};
  return {"--map-by", "slot:PE=" + std::to_string(threads), "--bind-to", "core"};
}

void set_default(const char* name, const char* value) { setenv(name, value, 0); }

}  // namespace

bool is_launched() { return launcher_variable() != nullptr; }

int launched_rank() { return is_launched() ? std::atoi(std::getenv(launcher_variable())) : 0; }

int launched_size() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (is_launched() && std::getenv(name) != nullptr) return std::atoi(std::getenv(name));
  return 0;
}

void relaunch(int processes, int threads, char** argv) {
  if (is_launched() || processes == 0) return;
  set_default("OMPI_ALLOW_RUN_AS_ROOT", "1");
  set_default("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  std::vector<std::string> command{"mpiexec", "-n", std::to_string(processes), "--oversubscribe"};
  for (const std::string& word : binding(processes, threads)) command.push_back(word);
  command.push_back(std::filesystem::read_symlink("/proc/self/exe"));
  for (char** argument = argv + 1; *argument != nullptr; ++argument) command.push_back(*argument);
  std::vector<char*> pointers;
  for (std::string& word : command) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp("mpiexec", pointers.data());
  throw SystemError(std::string("cannot start mpiexec: ") + std::strerror(errno));
}

}  // namespace baton
