// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/launcher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>

#include "collectives/schedule/errors.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

Launcher launcher_in(const Variables& variables) {
  return read_launcher([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Variables with(Variables all, const Variables& more) {
  for (const auto& [name, value] : more) all[name] = value;
  return all;
}

const Variables torch{{"RANK", "2"},
                      {"WORLD_SIZE", "4"},
                      {"LOCAL_WORLD_SIZE", "2"},
                      {"MASTER_ADDR", "n07"},
                      {"MASTER_PORT", "29500"}};
const Variables open_mpi{
    {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "3"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}};
const Variables step{{"SLURM_PROCID", "5"},
                     {"SLURM_STEP_ID", "3"},
                     {"SLURM_SRUN_COMM_PORT", "41000"},
                     {"SLURM_JOB_ID", "77"},
                     {"SLURM_STEP_NUM_TASKS", "8"},
                     {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"},
                     {"SLURM_STEP_NODELIST", "n[07-08]"}};

TEST(Launcher, IsNoneInABareEnvironment) {
  EXPECT_EQ(launcher_in({}).bootstrap, "");
  EXPECT_EQ(launcher_in({{"RANK", "1"}, {"WORLD_SIZE", "2"}}).bootstrap, "") << "half of torchrun's";
  EXPECT_EQ(launcher_in({{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "batch"}}).bootstrap, "")
      << "a batch script";
}

const Variables interactive_step{
    {"SLURM_PROCID", "0"},  {"SLURM_STEP_ID", "4294967290"}, {"SLURM_SRUN_COMM_PORT", "36851"},
    {"SLURM_JOB_ID", "77"}, {"SLURM_STEP_NUM_TASKS", "1"},   {"SLURM_STEP_NODELIST", "n07"}};
const Variables torch_of_one = with(torch, {{"RANK", "0"}, {"WORLD_SIZE", "1"}});
const Variables open_mpi_of_one{{"OMPI_COMM_WORLD_RANK", "0"},
                                {"OMPI_COMM_WORLD_SIZE", "1"},
                                {"PMIX_RANK", "0"},
                                {"PMIX_NAMESPACE", "1582563329"}};

TEST(Launcher, OfOneRankIsNone) {
  for (const Variables& alone :
       {interactive_step, with(interactive_step, {{"PMIX_RANK", "0"}}),
        with(interactive_step, {{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "slurm.pmix.77.0"}}), torch_of_one,
        with(torch_of_one, {{"TORCHELASTIC_RUN_ID", "none"}}), open_mpi_of_one,
        with(open_mpi_of_one, torch_of_one), Variables{{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}},
        Variables{{"PMIX_RANK", "0"}}}) {
    const Launcher found = launcher_in(alone);
    EXPECT_EQ(found.bootstrap, "") << alone.begin()->first;
    EXPECT_EQ(found.size, 0);
    EXPECT_FALSE(found.ignored.empty()) << alone.begin()->first;
  }
  EXPECT_THAT(launcher_in(with(torch_of_one, {{"TORCHELASTIC_RUN_ID", "none"}})).ignored,
              testing::ElementsAre("RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=n07", "MASTER_PORT=29500"));
}

TEST(Launcher, OfAnAllocationsShellIsNoneWhateverTheJobHas) {
  Variables all = with(interactive_step, {{"SLURM_NTASKS", "8"}});
  all.erase("SLURM_STEP_NUM_TASKS");
  EXPECT_EQ(launcher_in(all).bootstrap, "");
}

TEST(Launcher, OfOneRankIsNotAskedForItsPort) {
  EXPECT_EQ(launcher_in(with(torch_of_one, {{"MASTER_PORT", "tcp://10.0.0.1:23456"}})).bootstrap, "");
}

TEST(Launcher, OfSeveralRanksInOneOfASingleRankDecides) {
  EXPECT_EQ(launcher_in(with(interactive_step, torch)).rank, 2);
  EXPECT_EQ(launcher_in(with(interactive_step, open_mpi)).bootstrap, "mpi");
  EXPECT_EQ(launcher_in(with(open_mpi_of_one, torch)).bootstrap, "tcp") << "set by hand under mpirun -n 1";
  const Variables prte{{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "prte-1@1"}};
  EXPECT_EQ(launcher_in(with(interactive_step, prte)).bootstrap, "mpi") << "its size is not Slurm's";
}

TEST(Launcher, OfAProgramOfOursMayHaveOneRank) {
  const Launcher mpi = launcher_in(with(with(open_mpi_of_one, torch), {{own_launch, "mpi"}}));
  EXPECT_EQ(mpi.bootstrap, "mpi") << "whatever else is set";
  EXPECT_EQ(mpi.size, 1);
  const Launcher tcp = launcher_in(with(with(open_mpi, torch_of_one), {{own_launch, "tcp"}}));
  EXPECT_EQ(tcp.bootstrap, "tcp");
  EXPECT_EQ(tcp.size, 1);
}

TEST(Launcher, OfMpiTellsRankAndSizes) {
  const Launcher found = launcher_in(open_mpi);
  EXPECT_EQ(found.bootstrap, "mpi");
  EXPECT_EQ(found.rank, 1);
  EXPECT_EQ(found.size, 3);
  EXPECT_EQ(found.size_on_host, 3);
}

TEST(Launcher, LikeTorchrunTellsWhereToMeet) {
  const Launcher found = launcher_in(torch);
  EXPECT_EQ(found.bootstrap, "tcp");
  EXPECT_EQ(found.rank, 2);
  EXPECT_EQ(found.size, 4);
  EXPECT_EQ(found.size_on_host, 2);
  EXPECT_EQ(found.address, "n07");
  EXPECT_EQ(found.port, 29501) << "torchrun's own store may hold its port";
  EXPECT_EQ(launcher_in(with(torch, {{"BATON_PORT", "4000"}})).port, 4000);
  EXPECT_EQ(found.meeting_seconds, 60);
  EXPECT_EQ(launcher_in(with(torch, {{"BATON_MEETING_SECONDS", "8"}})).meeting_seconds, 8);
  EXPECT_NE(found.run, launcher_in(with(torch, {{"MASTER_PORT", "29600"}})).run);
}

TEST(Launcher, TheInnermostOneDecides) {
  const Variables both = with(torch, open_mpi);
  EXPECT_EQ(launcher_in(both).bootstrap, "mpi");
  EXPECT_EQ(launcher_in(with(both, {{"TORCHELASTIC_RUN_ID", "none"}})).bootstrap, "tcp");
  EXPECT_EQ(launcher_in(with(step, {{"PMIX_RANK", "5"}})).bootstrap, "mpi");
  EXPECT_EQ(launcher_in(with(step, torch)).rank, 2);
}

TEST(Launcher, OfSlurmMeetsAtTheFirstHost) {
  const Launcher found = launcher_in(step);
  EXPECT_EQ(found.bootstrap, "tcp");
  EXPECT_EQ(found.rank, 5);
  EXPECT_EQ(found.size, 8);
  EXPECT_EQ(found.size_on_host, 4);
  EXPECT_EQ(found.address, "n07");
  EXPECT_THAT(found.hosts, testing::ElementsAre("n07", "n08"));
  EXPECT_NE(found.port, launcher_in(with(step, {{"SLURM_STEP_ID", "4"}})).port) << "steps of a job at once";
}

TEST(Launcher, RefusesNumbersThatAreNone) {
  const auto refusal = [](const Variables& changed) -> std::string {
    try {
      launcher_in(with(torch, changed));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({{"RANK", "4"}}), "RANK is '4', expected a number from 0 to 3");
  EXPECT_THAT(refusal({{"WORLD_SIZE", "two"}}), HasSubstr("WORLD_SIZE is 'two'"));
  EXPECT_THAT(refusal({{"MASTER_PORT", "65535"}}), HasSubstr("MASTER_PORT is '65535'"));
  EXPECT_THAT(refusal({{"BATON_PORT", "29500 "}}), HasSubstr("BATON_PORT"));
  for (const char* word : {"x", "nan", "-1", "0", "1.5", "", "86401"})
    EXPECT_EQ(refusal({{"BATON_MEETING_SECONDS", word}}),
              std::string("BATON_MEETING_SECONDS is '") + word + "', expected a number from 1 to 86400");
}

TEST(Launcher, RefusesAMasterThatCanBeNoHost) {
  for (const char* name :
       {"", " 127.0.0.1", "[::1]", "http://n07", "tcp://10.0.0.1:29500", "n07:29500", "a b", "n07/"})
    EXPECT_THROW(launcher_in(with(torch, {{"MASTER_ADDR", name}})), UsageError) << name;
  for (const char* name : {"n07", "n07.cluster.local", "10.0.0.7", "::1", "fd00::7", "fe80::7%eth0",
                           "::ffff:127.0.0.1", "worker_0",
                           "b\xc3\xbc"
                           "cher"})
    EXPECT_EQ(launcher_in(with(torch, {{"MASTER_ADDR", name}})).address, name);
  EXPECT_THROW(launcher_in(with(step, {{"MASTER_ADDR", "[::1]"}})), UsageError);
}

TEST(HostsIn, OfListsAsSlurmWritesThem) {
  using testing::ElementsAre;
  EXPECT_THAT(hosts_in("localhost"), ElementsAre("localhost"));
  EXPECT_THAT(hosts_in("a1,a2"), ElementsAre("a1", "a2"));
  EXPECT_THAT(hosts_in("n[07-09,12],m1"), ElementsAre("n07", "n08", "n09", "n12", "m1"));
  EXPECT_THAT(hosts_in("n[099-101]"), ElementsAre("n099", "n100", "n101"));
  EXPECT_THAT(hosts_in("rack[1-2]-n[3,5],m"),
              ElementsAre("rack1-n3", "rack1-n5", "rack2-n3", "rack2-n5", "m"));
}

/// A file of some words with the permissions `mode`, which goes with this value.
class SecretFile {
 public:
  SecretFile(const std::string& words, mode_t mode) {
    const int opened = mkstemp(path_.data());
    EXPECT_EQ(write(opened, words.data(), words.size()), static_cast<ssize_t>(words.size()));
    fchmod(opened, mode);
    close(opened);
  }
  ~SecretFile() { unlink(path_.c_str()); }
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = testing::TempDir() + "secret-XXXXXX";
};

TEST(Secret, IsWhatTheUserGivesOrNobodyCanGuess) {
  const Variables drawn = with(torch, {{"TORCHELASTIC_RUN_ID", "0f8fad5b-d9cb-469f-a165-70867728950e"}});
  const SecretFile file("of a file\n", 0600);
  EXPECT_EQ(launcher_in(torch).secret, "");
  EXPECT_EQ(launcher_in(with(torch, {{"TORCHELASTIC_RUN_ID", "none"}})).secret, "") << "a word that all know";
  EXPECT_EQ(launcher_in(drawn).secret, drawn.at("TORCHELASTIC_RUN_ID"));
  EXPECT_EQ(launcher_in(with(drawn, {{"BATON_SECRET_FILE", file.path()}})).secret, "of a file");
  EXPECT_EQ(launcher_in(with(drawn, {{"BATON_SECRET", "words"}, {"BATON_SECRET_FILE", file.path()}})).secret,
            "words");
  EXPECT_EQ(launcher_in(with(drawn, {{"BATON_SECRET", ""}})).secret, "") << "without, on purpose";
}

TEST(Secret, IsReadFromAFileOfTheUserAlone) {
  const auto refusal = [](const std::string& path) -> std::string {
    try {
      launcher_in(with(torch, {{"BATON_SECRET_FILE", path}}));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal(testing::TempDir() + "no such file"), HasSubstr("is no file"));
  const SecretFile shared("words", 0640), empty("\n", 0600);
  EXPECT_THAT(refusal(shared.path()), HasSubstr("is not this user's alone"));
  EXPECT_THAT(refusal(empty.path()), HasSubstr("is empty"));
  EXPECT_THAT(refusal(testing::TempDir()), HasSubstr("is no file"));
}

}  // namespace
