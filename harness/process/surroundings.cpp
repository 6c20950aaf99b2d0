// SPDX-License-Identifier: Apache-2.0
#include "harness/process/surroundings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <vector>

#include "collectives/executors/launcher.hpp"

namespace baton {
namespace {

bool starts_with_one_of(std::string_view name, std::initializer_list<std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::vector<std::string> names_of_variables() {
  std::vector<std::string> all;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    all.emplace_back(text.substr(0, text.find('=')));
  }
  return all;
}

/// Says once that a launch of one rank is taken for none.
void tell(const std::vector<std::string>& ignored) {
  if (!ignored.empty())
    fmt::print(
        stderr,
        "baton: {}: these speak of one rank, so they are left aside, and ranks are started on this host\n",
        fmt::join(ignored, ", "));
}

}  // namespace

bool is_of_surroundings(std::string_view name, bool in_open_mpi) {
  // Prefixes of variables of Slurm, PBS, LSF, SGE, LoadLeveler, Cobalt, MPICH and PMIx.
  if (starts_with_one_of(name, {"SLURM_", "PBS_", "LSB_", "PE_HOSTFILE", "LOADL_", "COBALT_", "PMI_", "HYDI_",
                                "MPI_LOCAL", "HYDRA_HOST_FILE"}))
    return true;
  if (name.starts_with("PMIX_")) return !name.starts_with("PMIX_MCA_");
  if (starts_with_one_of(name, {"OMPI_COMM_WORLD_", "OMPI_UNIVERSE_SIZE"})) return true;
  return in_open_mpi &&
         starts_with_one_of(name, {"OMPI_MCA_ess", "OMPI_MCA_orte_", "OMPI_MCA_pmix", "OMPI_MCA_initial_wdir",
                                   "OMPI_MCA_mpi_oversubscribe", "OMPI_MCA_shmem_RUNTIME"});
}

void leave_surroundings() {
  [[maybe_unused]] static const bool once = [] {
    tell(launcher().ignored);
    const bool in_open_mpi = std::getenv("OMPI_COMM_WORLD_RANK") != nullptr;
    for (const std::string& name : names_of_variables())
      if (is_of_surroundings(name, in_open_mpi)) unsetenv(name.c_str());
    setenv("OMPI_MCA_orte_default_hostfile", "none", 1);
    return true;
  }();
}

}  // namespace baton
