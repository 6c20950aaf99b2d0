// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/scratch_folder.hpp"

namespace baton {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(SteeringVariables, AreThoseOfMessagesThreadsAndMemory) {
  for (const std::string name :
       {"OMPI_MCA_btl", "OMPI_MCA_osc", "OMPI_MCA_mpi_yield_when_idle", "OMPI_MCA_shmem", "PMIX_MCA_gds",
        "UCX_TLS", "OMP_NUM_THREADS", "NCCL_ALGO", "GLIBC_TUNABLES", "MALLOC_ARENA_MAX",
        "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMPI_MCA_opal_progress_threads"})
    EXPECT_THAT(steering_variables({name + "=a=b"}), ElementsAre(Pair(name, "a=b"))) << name;
}

TEST(SteeringVariables, AreNoSecretsAndNothingThatALauncherSets) {
  EXPECT_THAT(
      steering_variables(
          {"AWS_SECRET_ACCESS_KEY=s", "OMPI_MCA_orte_precondition_transports=4eb1-88c3",
           "OMPI_MCA_orte_hnp_uri=1;tcp://192.0.2.2:41259", "OMPI_MCA_initial_wdir=/home/a",
           "OMPI_MCA_shmem_RUNTIME_QUERY_hint=mmap", "OMPI_MCA_mpi_oversubscribe=0", "PMIX_MCA_psec=native",
           "OMPI_MCA_rmaps_base_mapping_policy=slot:PE=1", "OMPI_MCA_hwloc_base_binding_policy=core",
           "OMPI_MCA_btl_vader_backing_directory=/dev/shm/x", "OMPI_MCA_plm_rsh_agent=ssh -i key",
           "PMIX_SECURITY_MODE=native", "OMP", "HOME=/root"}),
      IsEmpty());
}

TEST(SteeringVariables, NameLibrariesToLoadWithoutTheirFolders) {
  EXPECT_THAT(steering_variables({"LD_PRELOAD=/home/me/lib/libjemalloc.so.2:/opt/libtrace.so "}),
              ElementsAre(Pair("LD_PRELOAD", "libjemalloc.so.2 libtrace.so")));
}

class SettingsOf : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root() / path).parent_path());
    std::ofstream(root() / path) << text << "\n";
  }
  const fs::path& root() const { return scratch_.path(); }

 private:
  const ScratchFolder scratch_;
};

TEST_F(SettingsOf, FilesHoldWhereNoVariableDoesAndTheUsersComeFirst) {
  write("home/me/.nccl.conf", "# NCCL_PROTO=LL\n NCCL_ALGO = Ring \nSECRET=1");
  write("etc/nccl.conf", "NCCL_ALGO=Tree\nNCCL_P2P_DISABLE=1\nno setting");
  write("etc/ucx/ucx.conf", "[default]\nUCX_TLS=tcp,self");
  EXPECT_THAT(
      settings_in_files({"HOME=/home/me"}, root()),
      ElementsAre(Pair("NCCL_ALGO", "Ring"), Pair("NCCL_P2P_DISABLE", "1"), Pair("UCX_TLS", "tcp,self")));
  EXPECT_THAT(settings_in_files({"HOME=/home/me", "NCCL_ALGO=Tree", "UCX_TLS=sm"}, root()),
              ElementsAre(Pair("NCCL_P2P_DISABLE", "1")));
  write("opt/own.conf", "NCCL_ALGO=CollnetDirect");
  EXPECT_THAT(settings_in_files({"NCCL_CONF_FILE=/opt/own.conf"}, root())[0],
              Pair("NCCL_ALGO", "CollnetDirect"));
  EXPECT_THAT(settings_in_files({}, root() / "home"), IsEmpty());
}

TEST_F(SettingsOf, TheSystemHasPagesAndSharedMemory) {
  EXPECT_THAT(settings_of_system(root()), IsEmpty());
  write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
  fs::create_directories(root() / "dev/shm");
  const NamedValues found = settings_of_system(root());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0], Pair("transparent_huge_pages", "madvise"));
  EXPECT_THAT(found[1], Pair("dev_shm", testing::MatchesRegex("[0-9]+ MiB")));
}

}  // namespace
}  // namespace baton
