// SPDX-License-Identifier: Apache-2.0
// What a launcher or a scheduler around this process has left in its environment, and which ranks
// that this process starts itself must not find.
//
//   a launch of one rank    an interactive step of Slurm, a pod, `mpirun -n 1 bash`: MPI joins it
//   an allocation           of Slurm, PBS, LSF or SGE: mpiexec would take its other hosts
//   a default hostfile      of a site: likewise
#pragma once

#include <string_view>

namespace baton {

/// True for the name of a variable that launchers and schedulers set, but not for the user's
/// settings of their libraries. Open MPI gives its processes settings of its own, which tell of an
/// outer launch where `in_open_mpi`.
bool is_of_surroundings(std::string_view name, bool in_open_mpi);

/// Removes the variables of outer launchers from the environment of this process, and prints which
/// of them named a launch of one rank. Only the first call does so.
void leave_surroundings();

}  // namespace baton
