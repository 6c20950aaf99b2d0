// SPDX-License-Identifier: Apache-2.0
// Why this host can start no launch at all, which no further try changes.
#pragma once

#include <string>

namespace baton {

/// Lets this process open as many files as the system allows it. Throws SystemError if a launch of
/// `processes` ranks needs more: mpiexec would wait for a minute and crash.
void require_open_files(int processes);

/// True for the first line of `mpiexec --version` of `library`, the MPI of this program such as
/// "Open MPI v4.1.4"; also if the line names no known MPI.
bool is_mpiexec_of(const std::string& library, const std::string& version);

/// Why no launch on this host can start ranks, as the exit code and the report of one show that
/// started none; empty if another one may. `library` is the MPI of this program.
std::string obstacle_to_launches(int exit_code, const std::string& report, const std::string& library);

}  // namespace baton
