// SPDX-License-Identifier: Apache-2.0
// Bootstrap `mpi`: the processes are those that mpirun, mpiexec or srun started, in MPI_COMM_WORLD.
// The launcher looks after them: it ends all of them when one dies.
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "collectives/executors/mpi/communicator.hpp"
#include "collectives/executors/mpi/control_variables.hpp"
#include "collectives/executors/settings_in_force.hpp"
#include "collectives/executors/team.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

std::string library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  return std::string(text, std::strcspn(text, ",\n"));
}

class MpiBootstrap : public Bootstrap {
 public:
  MpiBootstrap(int* argc, char*** argv) {
    int provided = 0;
    mpi(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided));
    if (provided < MPI_THREAD_FUNNELED)
      throw SystemError(library() +
                        " runs without threads, and ranks have some: start it without what asks for "
                        "MPI_THREAD_SINGLE, or take --executor tcp");
    mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
    mpi(MPI_Comm_size(MPI_COMM_WORLD, &size_));
  }
  ~MpiBootstrap() override { MPI_Finalize(); }
  MpiBootstrap(const MpiBootstrap&) = delete;
  MpiBootstrap& operator=(const MpiBootstrap&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Team team(int members) const override {
    return Team(std::make_shared<const Communicator>(members, Communicator::Use::team));
  }

  std::string address() const override {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    return name.data();
  }

  [[noreturn]] void abort(int code) const override {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

 private:
  int rank_ = 0;
  int size_ = 1;
};

const RegisteredBootstrap registered{
    "mpi",
    {.join = [](int* argc, char*** argv) { return std::make_unique<MpiBootstrap>(argc, argv); },
     .library = library}};
[[maybe_unused]] const bool tells_settings = (settings_in_force() = control_variables, true);

}  // namespace
}  // namespace baton
