// SPDX-License-Identifier: Apache-2.0
#include "harness/process/obstacles.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives/schedule/errors.hpp"

namespace {

using namespace baton;

TEST(Mpiexec, IsToldFromThatOfAnotherMpi) {
  constexpr auto library = "Open MPI v4.1.4";
  EXPECT_TRUE(is_mpiexec_of(library, "mpiexec (OpenRTE) 4.1.4"));
  EXPECT_TRUE(is_mpiexec_of(library, "mpirun (Open MPI) 4.1.6"));
  EXPECT_FALSE(is_mpiexec_of(library, "mpiexec (Open MPI) 5.0.3"));
  EXPECT_FALSE(is_mpiexec_of(library, "HYDRA build details:"));
  EXPECT_FALSE(is_mpiexec_of(library, "Intel(R) MPI Library for Linux* OS, Version 2021.9"));
  EXPECT_TRUE(is_mpiexec_of(library, "")) << "it did not say";
  EXPECT_TRUE(is_mpiexec_of("MPICH Version: 4.0.2", "HYDRA build details:")) << "it cannot be told";
  EXPECT_TRUE(is_mpiexec_of("Open MPI v5.0.3", "prterun (PRRTE) 3.0.3"));
}

TEST(Obstacle, IsAProgramThatIsNotThere) {
  const std::string report = "cannot start mpiexec: No such file or directory";
  EXPECT_EQ(obstacle_to_launches(127, report, "no MPI"), report);
  EXPECT_EQ(obstacle_to_launches(1, "rank 1 died", "no MPI"), "");
}

/// The exit code of a child that may open `files` files at most and asks for `processes` ranks: 1
/// if they are refused.
int refuses(rlim_t soft, rlim_t hard, int processes) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit files{soft, hard};
    setrlimit(RLIMIT_NOFILE, &files);
    try {
      require_open_files(processes);
    } catch (const SystemError& error) {
      _exit(testing::Value(std::string(error.what()), testing::HasSubstr("ulimit -n")) ? 1 : 2);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST(OpenFiles, AreRaisedToWhatIsAllowedOrRefusedByName) {
  EXPECT_EQ(refuses(64, 64, 16), 1);
  EXPECT_EQ(refuses(16, 16, 1), 1);
  EXPECT_EQ(refuses(32, 32, 2), 1);
  EXPECT_EQ(refuses(16, 256, 16), 0) << "the soft limit alone is too small";
  EXPECT_EQ(refuses(64, 64, 8), 0);
  EXPECT_EQ(refuses(16, 16, 0), 0) << "without mpiexec";
}

}  // namespace
