// SPDX-License-Identifier: Apache-2.0
#include "harness/process/shared_folder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <utime.h>

#include <fstream>
#include <string>

#include "tests/scratch_folder.hpp"

namespace baton {
namespace {

namespace fs = std::filesystem;

class SharedFolder : public ::testing::Test {
 protected:
  /// A folder with a file, last changed in 1970 if it is old.
  std::string made(const std::string& name, bool is_old = true) {
    const fs::path folder = fs::path(scratch_.path()) / name;
    fs::create_directory(folder);
    std::ofstream(folder / "segment") << "shared memory";
    const utimbuf long_ago{.actime = 0, .modtime = 0};
    if (is_old) utime(folder.c_str(), &long_ago);
    return folder;
  }

  ScratchFolder scratch_;
};

TEST_F(SharedFolder, WhatAKilledProcessLeftIsRemovedAtTheNextStart) {
  const std::string left = made("baton_aaaaaa");
  const std::string mine = new_shared_folder(scratch_.path());
  EXPECT_TRUE(fs::is_directory(mine));
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(SharedFolder, WhatAProcessHoldsOrAnotherProgramMadeStays) {
  const std::string held = made("baton_bbbbbb");
  ASSERT_EQ(flock(open(held.c_str(), O_RDONLY | O_DIRECTORY), LOCK_EX), 0);
  const std::string young = made("baton_cccccc", false);
  const std::string other = made("vader_segment");
  const std::string mine = new_shared_folder(scratch_.path());
  const utimbuf long_ago{.actime = 0, .modtime = 0};
  utime(mine.c_str(), &long_ago);
  new_shared_folder(scratch_.path());
  for (const std::string& folder : {held, young, other, mine}) EXPECT_TRUE(fs::exists(folder)) << folder;
}

TEST_F(SharedFolder, WhereNoneCanBeMadeThereIsNone) {
  EXPECT_EQ(new_shared_folder(fs::path(scratch_.path()) / "missing"), "");
}

}  // namespace
}  // namespace baton
