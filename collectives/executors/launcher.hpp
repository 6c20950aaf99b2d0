// SPDX-License-Identifier: Apache-2.0
// The environment names the launcher that started this process.
//
//   TORCHELASTIC_RUN_ID with RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT   torchrun: TCP
//   OMPI_COMM_WORLD_RANK, PMIX_RANK or PMI_RANK                           a launcher of MPI: MPI
//   RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT                         as torchrun, by hand: TCP
//   SLURM_PROCID in a step that srun started                              srun without MPI: TCP
//
// The first line that holds decides. torchrun comes first, since the processes that it starts
// inherit the variables of a launcher that started it, one agent a host. A line whose variables
// tell of a single rank does not hold: an interactive step of Slurm, a pod and `mpirun -n 1 bash`
// leave such variables to all that is started in them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace baton {

/// The variable in which a program tells the ranks that it starts by which bootstrap they meet.
/// They look for no other launcher, and one rank is a launch too.
constexpr const char* own_launch = "BATON_LAUNCH";

struct Launcher {
  /// How the processes find one another: "mpi", "tcp", or empty for a process without a launcher.
  std::string bootstrap;
  int rank = 0;
  /// Number of processes of the run; 0 if the launcher does not say.
  int size = 0;
  /// Number of processes of the run on this host; 0 if the launcher does not say.
  int size_on_host = 0;
  /// Host at which rank 0 listens, if `bootstrap` is "tcp".
  std::string address;
  int port = 0;
  /// A number that differs between runs that might meet at one port. It is made of public words.
  std::uint64_t run = 0;
  /// The secret of the run, known to its processes alone, if `bootstrap` is "tcp"; or empty.
  std::string secret;
  /// The hosts of the run beside that of rank 0, as far as the launcher names them.
  std::vector<std::string> hosts;
  /// How long the processes of the run wait for one another: BATON_MEETING_SECONDS.
  int meeting_seconds = 60;
  /// The variables of launches of one rank, such as "PMI_SIZE=1", which are taken for none.
  std::vector<std::string> ignored;
};

/// Reads the launcher's variables by `variable`, which returns null for one that is not set. Throws
/// UsageError if a variable that decides is no number, or is out of its range.
Launcher read_launcher(const std::function<const char*(const char*)>& variable);

/// The launcher of this process. The first call reads it, and throws as `read_launcher` does.
const Launcher& launcher();

/// True for a text that can be a host's name or address: no URL, port, bracket or blank.
bool is_host(const std::string& name);

/// The hosts of a list as Slurm writes it: "n[07-09,12],m1" has n07, n08, n09, n12 and m1.
std::vector<std::string> hosts_in(const std::string& list);

}  // namespace baton
