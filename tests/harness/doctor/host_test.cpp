// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/host.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/scratch_folder.hpp"

namespace baton::doctor {
namespace {

using testing::Contains;
using testing::DoubleEq;
using testing::ElementsAre;
using testing::IsEmpty;

/// A made-up root folder.
class Root : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root() / path).parent_path());
    std::ofstream(root() / path) << text << "\n";
  }
  const fs::path& root() const { return scratch_.path(); }

 private:
  const ScratchFolder scratch_;
};

TEST_F(Root, TellsTheLoadOfCores) {
  write("proc/stat", "cpu  9 9 9 9 9 9 9 9\ncpu0 100 0 0 900 0 0 0 0\ncpu1 50 0 0 50 0 0 0 0\nintr 5");
  const auto before = core_ticks(root());
  write("proc/stat", "cpu  9 9 9 9 9 9 9 9\ncpu0 110 10 5 955 10 3 2 5\ncpu1 50 0 0 50 0 0 0 0");
  std::vector<Core> cores{{.number = 0}, {.number = 1}, {.number = 2}};
  add_shares(cores, before, core_ticks(root()), &Core::busy, &CoreTicks::busy);
  add_shares(cores, before, core_ticks(root()), &Core::stolen, &CoreTicks::stolen);
  EXPECT_THAT(cores[0].busy, ElementsAre(DoubleEq(0.3)));
  EXPECT_THAT(cores[0].stolen, ElementsAre(DoubleEq(0.05)));
  EXPECT_THAT(cores[1].busy, IsEmpty()) << "no time passed";
  EXPECT_THAT(cores[2].busy, IsEmpty()) << "no such core";
}

TEST_F(Root, TellsTheTimesOfProcesses) {
  write("proc/42/stat", "42 (a (strange) name) S 1 1 1 0 -1 0 0 0 0 0 300 100 0 0 20 0 1 0 5");
  write("proc/self/stat", "7 (no number) S 1");
  const auto processes = process_times(root());
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes.at(42).name, "a (strange) name");
  EXPECT_DOUBLE_EQ(processes.at(42).seconds, 400.0 / static_cast<double>(sysconf(_SC_CLK_TCK)));
}

TEST_F(Root, TellsClocks) {
  RankReadings rank;
  add_clock(rank, 3, root());
  EXPECT_THAT(rank.clock_mhz, IsEmpty()) << "not told";
  write("sys/devices/system/cpu/cpu3/cpufreq/scaling_cur_freq", "1200000");
  write("sys/devices/system/cpu/cpu3/cpufreq/cpuinfo_max_freq", "3800000");
  write("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "powersave");
  write("sys/devices/system/cpu/cpu3/thermal_throttle/core_throttle_count", "17");
  add_clock(rank, 3, root());
  EXPECT_THAT(rank.clock_mhz, ElementsAre(1200));
  EXPECT_EQ(rank.base_mhz, 0);
  EXPECT_EQ(rank.most_mhz, 3800);
  EXPECT_EQ(rank.governor, "powersave");
  EXPECT_EQ(heat_events_of(3, root()), 17);
}

TEST_F(Root, TellsTheQuotaOfAGroupBelowTheRoot) {
  EXPECT_EQ(facts_of_host(root()).quota_cores, 0) << "no limit";
  write("proc/self/cgroup", "1:cpu:/slurm/job_7");
  write("proc/self/mountinfo", "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu");
  write("sys/fs/cgroup/cpu/slurm/job_7/cpu.cfs_quota_us", "150000");
  write("sys/fs/cgroup/cpu/slurm/job_7/cpu.cfs_period_us", "100000");
  EXPECT_EQ(facts_of_host(root()).quota_cores, 1.5);
}

TEST_F(Root, TellsItsGpus) {
  EXPECT_EQ(facts_of_host(root()).gpus, 0);
  fs::create_directories(root() / "proc/driver/nvidia/gpus/0000:1b:00.0");
  fs::create_directories(root() / "proc/driver/nvidia/gpus/0000:43:00.0");
  EXPECT_EQ(facts_of_host(root()).gpus, 2);
}

TEST(ThisProcess, RunsOnACoreThatItMayUse) {
  EXPECT_THAT(allowed_hardware_threads(), Contains(current_core()));
  EXPECT_THAT(process_times(), Contains(testing::Key(getpid())));
}

}  // namespace
}  // namespace baton::doctor
