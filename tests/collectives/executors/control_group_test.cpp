// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/control_group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/scratch_folder.hpp"

namespace baton {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr double no_limit = std::numeric_limits<double>::infinity();

/// A made-up root folder.
class ControlGroups : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root() / path).parent_path());
    std::ofstream(root() / path) << text << "\n";
  }
  void make(const std::string& folder) const { fs::create_directories(root() / folder); }
  fs::path at(const std::string& path) const { return root() / path; }
  std::vector<fs::path> of(const std::string& controller) const { return control_groups(controller, root()); }
  Quota quota() const { return processor_quota(root()); }
  const fs::path& root() const { return scratch_.path(); }

 private:
  const ScratchFolder scratch_;
};

TEST_F(ControlGroups, OfAServiceOfVersionTwoAreItsOwnAndThoseAround) {
  write("proc/self/cgroup", "0::/system.slice/slurmd.service/job_7");
  write("proc/self/mountinfo",
        "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate");
  make("sys/fs/cgroup/system.slice/slurmd.service/job_7");
  const std::string top = "sys/fs/cgroup";
  EXPECT_THAT(of("cpu"),
              ElementsAre(at(top + "/system.slice/slurmd.service/job_7"),
                          at(top + "/system.slice/slurmd.service"), at(top + "/system.slice"), at(top)));
  EXPECT_EQ(of("memory"), of("cpu")) << "version 2 has one hierarchy";
}

TEST_F(ControlGroups, OfVersionOneAreThoseOfTheController) {
  write("proc/self/cgroup", "5:memory:/box\n4:cpu,cpuacct:/batch/one\n3:cpuset:/\n0::/");
  write("proc/self/mountinfo",
        "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "33 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
        "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw");
  make("sys/fs/cgroup/cpu,cpuacct/batch/one");
  make("sys/fs/cgroup/memory/box");
  const std::string cpu = "sys/fs/cgroup/cpu,cpuacct";
  EXPECT_THAT(of("cpu"), ElementsAre(at(cpu + "/batch/one"), at(cpu + "/batch"), at(cpu)));
  EXPECT_THAT(of("memory"), ElementsAre(at("sys/fs/cgroup/memory/box"), at("sys/fs/cgroup/memory")));
}

TEST_F(ControlGroups, OfAContainerMayLieAtThePlaceOfTheRoot) {
  write("proc/self/cgroup", "1:cpu:/docker/4f2a");
  write("proc/self/mountinfo",
        "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "77 32 0:29 /docker/4f2a /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu");
  make("sys/fs/cgroup/cpu");
  EXPECT_THAT(of("cpu"), ElementsAre(at("sys/fs/cgroup/cpu")));
}

TEST_F(ControlGroups, OutsideOfWhatIsMountedTheTopIsTaken) {
  write("proc/self/cgroup", "0::/../other");
  write("proc/self/mountinfo", "30 23 0:26 /.. /sys/fs/cgroup ro - cgroup2 cgroup rw");
  make("sys/fs/cgroup");
  EXPECT_THAT(of("cpu"), ElementsAre(at("sys/fs/cgroup")));
}

TEST_F(ControlGroups, OfAControllerThatVersionOneLacksAreThoseOfVersionTwo) {
  write("proc/self/cgroup", "1:name=systemd:/a\n0::/user slice");
  write("proc/self/mountinfo", R"(30 23 0:26 / /sys/fs/my\040groups rw - cgroup2 cgroup2 rw)");
  make("sys/fs/my groups/user slice");
  EXPECT_THAT(of("cpu"), ElementsAre(at("sys/fs/my groups/user slice"), at("sys/fs/my groups")));
}

TEST_F(ControlGroups, AreNoneWhereTheSystemTellsNone) {
  EXPECT_THAT(of("cpu"), IsEmpty());
  write("proc/self/cgroup", "no line of a group\n1:cpu:/a");
  EXPECT_THAT(of("cpu"), IsEmpty()) << "not mounted";
}

TEST_F(ControlGroups, HaveNumbersOrWords) {
  write("memory.max", "max");
  write("memory.limit_in_bytes", "1073741824");
  write("cpu.cfs_quota_us", "-1");
  EXPECT_FALSE(number_in_file(at("memory.max")));
  EXPECT_FALSE(number_in_file(at("no.such.file")));
  EXPECT_EQ(number_in_file(at("memory.limit_in_bytes")), 1073741824);
  EXPECT_EQ(number_in_file(at("cpu.cfs_quota_us")), -1);
}

TEST_F(ControlGroups, OfVersionTwoTellTheLeastQuotaAround) {
  write("proc/self/cgroup", "0::/pod/main");
  write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw");
  make("sys/fs/cgroup/pod/main");
  EXPECT_EQ(quota().cores, no_limit);
  write("sys/fs/cgroup/pod/main/cpu.max", "max 100000");
  EXPECT_EQ(quota().cores, no_limit);
  write("sys/fs/cgroup/pod/cpu.max", "150000 100000");
  write("sys/fs/cgroup/pod/cpu.stat", "usage_usec 5\nnr_periods 9\nnr_throttled 12\nthrottled_usec 7");
  EXPECT_EQ(quota().cores, 1.5);
  EXPECT_EQ(quota().stops, 12);
  write("sys/fs/cgroup/pod/main/cpu.max", "50000 100000");
  write("sys/fs/cgroup/pod/main/cpu.stat", "nr_throttled 3");
  EXPECT_EQ(quota().cores, 0.5);
  EXPECT_EQ(quota().stops, 15);
}

TEST_F(ControlGroups, OfVersionOneTellTheQuotaOfAGroupBelowTheRoot) {
  write("proc/self/cgroup", "1:cpu:/slurm/job_7\n0::/");
  write("proc/self/mountinfo", "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu");
  const std::string group = "sys/fs/cgroup/cpu/slurm/job_7/";
  write(group + "cpu.cfs_quota_us", "-1");
  write(group + "cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota().cores, no_limit);
  write(group + "cpu.cfs_quota_us", "100000");
  write(group + "cpu.stat", "nr_periods 269\nnr_throttled 35\nthrottled_time 1");
  EXPECT_EQ(quota().cores, 1);
  EXPECT_EQ(quota().stops, 35);
}

}  // namespace
}  // namespace baton
