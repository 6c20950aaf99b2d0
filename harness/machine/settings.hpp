// SPDX-License-Identifier: Apache-2.0
// What steers messages, threads and memory of a run from outside: variables of the environment,
// files of the libraries, and the system.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace baton {

/// Names, each with its value.
using NamedValues = std::vector<std::pair<std::string, std::string>>;

/// Selects from `variables`, each "NAME=value", the ones that steer MPI, NCCL, UCX, threads,
/// products or the C library. Only known names are kept, so no secret is. What a launcher or this
/// suite sets itself is left out, and of libraries to load before others the names alone are kept.
NamedValues steering_variables(const std::vector<std::string>& variables);

/// The variables of this process.
std::vector<std::string> own_variables();

/// What the files of NCCL and UCX set in place of variables that are not among `variables`. `root`
/// is the folder that /etc and the home of the user are in; a test makes one up.
NamedValues settings_in_files(const std::vector<std::string>& variables,
                              const std::filesystem::path& root = "/");

/// The state of the system that moves times: transparent huge pages, and the size of /dev/shm.
NamedValues settings_of_system(const std::filesystem::path& root = "/");

}  // namespace baton
