// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/scratch_folder.hpp"

namespace baton {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr double mebibyte = 1 << 20, gibibyte = 1 << 30;

/// A made-up host with 8 GiB of free memory.
class Memory : public testing::Test {
 protected:
  Memory() { write("proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable:    8388608 kB"); }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root() / path).parent_path());
    std::ofstream(root() / path) << text << "\n";
  }
  /// A group of version 1 and the one around it, each with a file of each name.
  void write_groups(const std::string& name, const std::string& own, const std::string& outer) const {
    write("proc/self/cgroup", "5:memory:/batch/job");
    write("proc/self/mountinfo", "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory");
    write("sys/fs/cgroup/memory/batch/job/" + name, own);
    write("sys/fs/cgroup/memory/batch/" + name, outer);
  }
  FreeMemory found(int processes = 1) const { return free_memory(processes, root()); }
  const fs::path& root() const { return scratch_.path(); }

 private:
  const ScratchFolder scratch_;
};

TEST_F(Memory, OfAHostWithoutLimitsIsWhatIsFree) {
  EXPECT_EQ(found(4).bytes, 8 * gibibyte);
  EXPECT_EQ(found().limit, "memory of the host");
}

TEST_F(Memory, OfAGroupOfVersionOneIsItsLimitLessWhatCannotBeFreed) {
  write_groups("memory.limit_in_bytes", "1073741824", "9223372036854771712");
  EXPECT_EQ(found().bytes, gibibyte);
  EXPECT_EQ(found().limit, "memory limit of the control group: 1.0 GiB");
  write_groups("memory.usage_in_bytes", "314572800", "314572800");
  EXPECT_EQ(found().bytes, 724 * mebibyte);
  write_groups("memory.stat", "inactive_file 7\ntotal_inactive_file 104857600", "");
  EXPECT_EQ(found(8).bytes, 824 * mebibyte) << "the group has all processes together";
}

TEST_F(Memory, OfGroupsIsTheLeastOfAllAround) {
  write_groups("memory.limit_in_bytes", "4294967296", "2147483648");
  EXPECT_EQ(found().bytes, 2 * gibibyte);
}

TEST_F(Memory, OfAGroupOfVersionTwoIsItsLimitOrWhereItIsSlowedDown) {
  write("proc/self/cgroup", "0::/user.slice/pod");
  write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw");
  const std::string group = "sys/fs/cgroup/user.slice/pod/";
  write(group + "memory.max", "max");
  EXPECT_EQ(found().limit, "memory of the host");
  write(group + "memory.max", "2147483648");
  write(group + "memory.current", "1073741824");
  write(group + "memory.stat", "anon 5\ninactive_file 536870912");
  EXPECT_EQ(found().bytes, 1.5 * gibibyte);
  write(group + "memory.high", "1610612736");
  EXPECT_EQ(found().bytes, gibibyte);
  write(group + "memory.current", "4294967296");
  EXPECT_EQ(found().bytes, 0) << "never less than nothing";
}

TEST_F(Memory, OfProcessesWithAnUlimitIsThatOfAllOfThem) {
  const std::string head = "Limit                     Soft Limit           Hard Limit           Units\n";
  write("proc/self/status", "Name:\tbench\nVmSize:\t  524288 kB\nVmData:\t  262144 kB");
  write("proc/self/limits",
        head + "Max data size             unlimited            unlimited            bytes\n" +
            "Max address space         1073741824           unlimited            bytes");
  EXPECT_EQ(found().bytes, 0.5 * gibibyte);
  EXPECT_EQ(found(3).bytes, 1.5 * gibibyte);
  EXPECT_EQ(found().limit, "ulimit -v: 1.0 GiB a process");
  write("proc/self/limits",
        head + "Max data size             536870912            536870912            bytes\n" +
            "Max address space         unlimited            unlimited            bytes");
  EXPECT_EQ(found().bytes, 0.25 * gibibyte);
  EXPECT_THAT(found().limit, HasSubstr("ulimit -d: 512 MiB"));
}

TEST_F(Memory, HasNoLimitWhereTheSystemTellsNone) {
  write("proc/meminfo", "");
  EXPECT_TRUE(std::isinf(found().bytes));
}

TEST(MemoryWords, HaveAUnit) {
  EXPECT_EQ(memory_words(1.5 * gibibyte), "1.5 GiB");
  EXPECT_EQ(memory_words(300 * mebibyte), "300 MiB");
}

}  // namespace
}  // namespace baton
