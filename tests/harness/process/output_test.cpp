// SPDX-License-Identifier: Apache-2.0
#include "harness/process/output.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <latch>
#include <thread>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "tests/scratch_folder.hpp"

namespace {

using namespace baton;
using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

class Outputs : public testing::Test {
 protected:
  static std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void put(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

  static std::string refusal(const std::vector<NamedFile>& outputs,
                             const std::vector<NamedFile>& inputs = {}) {
    try {
      require_files(outputs, inputs);
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  }

  const ScratchFolder scratch_;
  const std::string folder_ = scratch_.path();
  const std::string path_ = scratch_.file("file");
};

TEST_F(Outputs, ATrialLeavesNothingBehind) {
  EXPECT_EQ(refusal({{"--json", path_}, {"--trace", ""}}), "");
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Outputs, ATrialLeavesWhatWasThereAlone) {
  put(path_, "old");
  fs::create_symlink(folder_ + "/none", folder_ + "/link");
  EXPECT_EQ(refusal({{"--json", path_}, {"--trace", folder_ + "/link"}}), "");
  EXPECT_EQ(text_of(path_), "old");
  EXPECT_TRUE(fs::is_symlink(folder_ + "/link")) << "a link to nowhere stays one";
  EXPECT_FALSE(fs::exists(folder_ + "/none"));
}

TEST_F(Outputs, RefusesPlacesThatCannotBeWritten) {
  EXPECT_THAT(refusal({{"--json", folder_}}), AllOf(HasSubstr("--json"), HasSubstr("it is a directory")));
  EXPECT_THAT(refusal({{"--json", "-"}}),
              AllOf(HasSubstr("--json: cannot write '-'"), HasSubstr("name a file")));
  EXPECT_THAT(refusal({{"--json", folder_ + "/none/file"}}), HasSubstr("No such file or directory"));
  EXPECT_THAT(refusal({{"--json", std::string(300, 'x')}}), HasSubstr("File name too long"));
  fs::create_symlink(folder_ + "/b", folder_ + "/a");
  fs::create_symlink(folder_ + "/a", folder_ + "/b");
  EXPECT_THAT(refusal({{"--json", folder_ + "/a"}}), HasSubstr("Too many levels of symbolic links"));
}

TEST_F(Outputs, RefusesPipesAndDevicesAtOnce) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(refusal({{"--trace", path_}}), HasSubstr("--trace: cannot write"));
  EXPECT_THAT(refusal({{"--trace", path_}}), HasSubstr("a pipe or a device"));
  EXPECT_THROW(Journal{path_}, UsageError);
  EXPECT_THAT(refusal({{"--json", "/dev/full"}}), HasSubstr("a pipe or a device"));
  EXPECT_EQ(refusal({{"--json", "/dev/null"}, {"--trace", "/dev/null"}}), "");
}

TEST_F(Outputs, RefusesOneFileUnderTwoNames) {
  put(path_, "old");
  fs::create_hard_link(path_, folder_ + "/hard");
  fs::create_symlink(path_, folder_ + "/soft");
  for (const std::string& other : {path_, folder_ + "/hard", folder_ + "/soft", folder_ + "/./file"}) {
    EXPECT_THAT(refusal({{"--json", path_}, {"--trace", other}}),
                HasSubstr("--json and --trace name the same file"));
    EXPECT_THAT(refusal({{"--json", other}}, {{"--topology", path_}}),
                HasSubstr("--topology and --json name the same file"));
  }
  EXPECT_THAT(refusal({{"--json", folder_ + "/new"}, {"--trace", folder_ + "/./new"}}),
              HasSubstr("name the same file"));
  EXPECT_EQ(text_of(path_), "old");
}

TEST_F(Outputs, WritesInPlaceOfWhatWasThere) {
  write_text(path_, "a long old text");
  fs::create_symlink(path_, folder_ + "/link");
  write_text(folder_ + "/link", "new\n");
  EXPECT_EQ(text_of(path_), "new\n");
  EXPECT_TRUE(fs::is_symlink(folder_ + "/link"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 2) << "no temporary file stays";
}

/// No file of this process may grow beyond so many bytes, which stands for a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(Outputs, AFullDiskLeavesTheOldText) {
  write_text(path_, "old");
  {
    const FileSizeLimit limit(100);
    EXPECT_THROW(write_text(path_, std::string(1000, 'x')), SystemError);
  }
  EXPECT_EQ(text_of(path_), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
  EXPECT_THROW(write_text(folder_, "x"), SystemError);
  if (fs::exists("/dev/full")) EXPECT_THROW(write_text("/dev/full", "x"), SystemError);
}

TEST_F(Outputs, RecordsAreAppended) {
  Journal(path_).append(R"({"line":1})");
  Journal(path_).append(R"({"line":2})");
  EXPECT_EQ(text_of(path_), "{\"line\":1}\n{\"line\":2}\n");
}

TEST_F(Outputs, ATornLineIsClosedBeforeTheNextRecord) {
  put(path_, "{\"line\":1}\n{\"li");
  Journal(path_).append(R"({"line":2})");
  EXPECT_EQ(text_of(path_), "{\"line\":1}\n{\"li\n{\"line\":2}\n");
}

TEST_F(Outputs, ARecordThatDoesNotFitIsTakenBack) {
  Journal journal(path_);
  journal.append("first");
  {
    const FileSizeLimit limit(100);
    EXPECT_THROW(journal.append(std::string(1000, 'x')), SystemError);
  }
  EXPECT_EQ(text_of(path_), "first\n");
  journal.append("third");
  EXPECT_EQ(text_of(path_), "first\nthird\n");
}

TEST_F(Outputs, AFileThatIsGoneIsNoticed) {
  Journal journal(path_);
  journal.append("first");
  fs::remove(path_);
  EXPECT_THROW(journal.append("second"), SystemError);
  put(path_, "another's");
  EXPECT_THROW(journal.append("third"), SystemError);
  EXPECT_EQ(text_of(path_), "another's");
}

TEST_F(Outputs, AnEmptyFileThatIsGoneIsMadeAnew) {
  Journal journal(path_);
  ASSERT_EQ(refusal({{"--json", path_}}), "");
  fs::remove(path_);  // as the bench does that made it for its trial
  journal.append("first");
  EXPECT_EQ(text_of(path_), "first\n");
  fs::remove(path_);
  EXPECT_THROW(journal.append("second"), SystemError) << "it had a record";
}

TEST_F(Outputs, AHeadingStandsAboveTheFirstLine) {
  Journal(path_).append("first", "heading");
  Journal(path_).append("second", "heading");
  EXPECT_EQ(text_of(path_), "heading\nfirst\nsecond\n");
}

TEST_F(Outputs, BenchesThatStartAtOnceLoseNothing) {
  constexpr int benches = 8, starts = 300;
  for (int start = 0; start < starts; ++start) {
    fs::remove(path_);
    std::latch all(benches);
    std::atomic<int> lost = 0;
    std::vector<std::jthread> started;
    for (int bench = 0; bench < benches; ++bench)
      started.emplace_back([&] {
        all.arrive_and_wait();
        try {
          require_files({{"--json", path_}}, {});
          Journal(path_).append("record", "heading");
        } catch (const std::exception&) {
          ++lost;
        }
      });
    started.clear();  // waits for them
    ASSERT_EQ(lost, 0);
    const std::string all_text = text_of(path_);
    ASSERT_EQ(std::count(all_text.begin(), all_text.end(), '\n'), benches + 1) << all_text;
  }
}

TEST_F(Outputs, RecordsNeedAPlace) {
  EXPECT_THROW(Journal{folder_}, UsageError);
  EXPECT_THROW(Journal{folder_ + "/none/file.jsonl"}, UsageError);
  Journal("").append("nowhere");
}

}  // namespace
