// SPDX-License-Identifier: Apache-2.0
#include "harness/process/surroundings.hpp"

#include <gtest/gtest.h>

namespace {

using namespace baton;

TEST(Surroundings, AreTheVariablesOfLaunchersAndSchedulers) {
  for (const char* name :
       {"SLURM_JOBID", "SLURM_NODELIST", "SLURM_TASKS_PER_NODE", "PE_HOSTFILE", "PBS_NODEFILE", "LSB_HOSTS",
        "LSB_AFFINITY_HOSTFILE", "LOADL_HOSTFILE", "PMI_RANK", "PMI_FD", "PMIX_RANK", "PMIX_SERVER_URI2",
        "OMPI_COMM_WORLD_SIZE", "OMPI_UNIVERSE_SIZE", "HYDRA_HOST_FILE"})
    EXPECT_TRUE(is_of_surroundings(name, false)) << name;
}

TEST(Surroundings, AreNoSettingsOfTheUser) {
  for (const char* name :
       {"OMPI_MCA_btl", "OMPI_MCA_pml", "OMPI_MCA_orte_tmpdir_base", "PMIX_MCA_gds", "UCX_TLS",
        "OMPI_ALLOW_RUN_AS_ROOT", "NCCL_DEBUG", "CUDA_VISIBLE_DEVICES", "PATH", "TMPDIR"})
    EXPECT_FALSE(is_of_surroundings(name, false)) << name;
  EXPECT_FALSE(is_of_surroundings("OMPI_MCA_btl", true)) << "of the user of the outer mpirun";
}

TEST(Surroundings, OfAnOuterOpenMpiAreTheSettingsThatItMakes) {
  for (const char* name : {"OMPI_MCA_ess", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri",
                           "OMPI_MCA_pmix", "OMPI_MCA_orte_tmpdir_base", "OMPI_MCA_mpi_oversubscribe"})
    EXPECT_TRUE(is_of_surroundings(name, true)) << name;
}

}  // namespace
