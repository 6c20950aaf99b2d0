// SPDX-License-Identifier: Apache-2.0
#include "harness/process/system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "collectives/schedule/errors.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;

class Files : public testing::Test {
 protected:
  Files() { std::filesystem::create_directory(folder_); }
  ~Files() override { std::filesystem::remove_all(folder_); }

  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string folder_ = testing::TempDir() + "files_test";
  std::string path_ = folder_ + "/file";
};

std::string refusal(const std::string& path) {
  try {
    require_writable(path, "a thing");
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

TEST_F(Files, ATrialLeavesNothingBehind) {
  EXPECT_EQ(refusal(path_), "");
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(Files, ATrialLeavesWhatWasThereAlone) {
  write_text(path_, "old");
  EXPECT_EQ(refusal(path_), "");
  EXPECT_EQ(text(), "old");
}

TEST_F(Files, RefusesPlacesThatCannotBeWritten) {
  EXPECT_THAT(refusal(folder_), HasSubstr("cannot write a thing to '" + folder_ + "': it is a directory"));
  EXPECT_THAT(refusal(folder_ + "/none/file"), HasSubstr("cannot write a thing to"));
}

TEST_F(Files, WritesInPlaceOfWhatWasThere) {
  write_text(path_, "a long old text");
  write_text(path_, "new\n");
  EXPECT_EQ(text(), "new\n");
}

TEST_F(Files, SaysWhereWritingFailed) {
  EXPECT_THROW(write_text(folder_, "x"), SystemError);
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no device that is always full";
  EXPECT_THROW(write_text("/dev/full", "x"), SystemError);
}

}  // namespace
