// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/verify.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "harness/process/world.hpp"

namespace {

using namespace baton;

constexpr Shape shape{1, 4, 3, 2};

/// A run of `name` on three local ranks, ready to be compared.
std::unique_ptr<Executor> run(const std::string& name, const Subject& subject,
                              const std::string& on = "local") {
  auto executor = find_executor(on).make(subject.ranks);
  executor->prepare(build_all(find_collective(name), subject.shape,
                              {.ranks = subject.ranks, .blocks = 2, .direction = subject.direction}));
  write_inputs(*executor, subject);
  executor->run();
  return executor;
}

Subject subject_of(const std::string& name, Direction direction = Direction::forward) {
  return {find_collective(name).kind, shape, 3, direction, 9};
}

TEST(Verify, FindsNothingWrongWhereNothingIs) {
  for (const char* name : {"all_scan", "ring_all_gather", "ring_reduce_scatter", "ring_exchange",
                           "bruck_all_to_all", "direct_to_zigzag"})
    EXPECT_EQ(compare(*run(name, subject_of(name)), subject_of(name)).wrong, 0) << name;
}

TEST(Verify, CountsAndNamesASingleWrongElement) {
  for (const char* name : {"all_scan", "ring_all_gather", "ring_reduce_scatter", "ring_exchange",
                           "bruck_all_to_all", "direct_to_zigzag"}) {
    const auto executor = run(name, subject_of(name));
    executor->write(2, {1, 5, 1}, std::vector{1e6f});
    const Comparison found = compare(*executor, subject_of(name));
    EXPECT_EQ(found.wrong, 1) << name;
    EXPECT_NE(found.first.find("rank 2, element 5: 1000000"), std::string::npos) << found.first;
  }
}

TEST(Verify, MissesNoElementThatNobodyWrote) {
  const Subject subject = subject_of("all_scan");
  auto executor = find_executor("local").make(subject.ranks);
  executor->prepare(build_all(find_collective("all_scan"), shape, {.ranks = 3, .blocks = 2}));
  write_inputs(*executor, subject);
  EXPECT_EQ(compare(*executor, subject).wrong, 2 * shape.state_elements());  // all but the first rank's
}

TEST(Verify, WantsTheFirstRanksOutputUntouched) {
  const Subject subject = subject_of("all_scan");
  const auto executor = run("all_scan", subject);
  executor->write(0, {1, 0, 1}, std::vector{0.0f});
  EXPECT_EQ(compare(*executor, subject).wrong, 1);
}

TEST(Verify, TellsTheDirections) {
  const auto forward = run("all_scan", subject_of("all_scan"));
  EXPECT_GT(compare(*forward, subject_of("all_scan", Direction::reverse)).wrong, 0);
}

TEST(Verify, ShowsWhatARoundingWireDoesAndCallsItRight) {
  for (const char* name : {"all_scan", "recursive_doubling", "ring_all_gather", "ring_reduce_scatter",
                           "ring_exchange", "pairwise_all_to_all", "direct_to_zigzag"}) {
    const Comparison found = compare(*run(name, subject_of(name), "local_bf16"), subject_of(name));
    EXPECT_EQ(found.wrong, 0) << name << ": " << found.first;
    EXPECT_GT(found.relative_error, 1e-4) << name;
    EXPECT_LT(found.relative_error, found.tolerance) << name;
  }
}

TEST(Verify, ShowsNoErrorWhereNothingIsRounded) {
  const Comparison found = compare(*run("all_scan", subject_of("all_scan")), subject_of("all_scan"));
  EXPECT_EQ(found.relative_error, 0);
  EXPECT_EQ(found.tolerance, 0);
}

/// What another executor did, as if its wire were more exact than it is, or less.
class Claiming : public Executor {
 public:
  Claiming(std::unique_ptr<Executor> executor, Dtype wire) : executor_(std::move(executor)), wire_(wire) {}

  std::vector<int> local_ranks() const override { return executor_->local_ranks(); }
  Refusal unsupported(std::span<const Schedule> all) const override { return executor_->unsupported(all); }
  void prepare(std::vector<Schedule> all) override { executor_->prepare(std::move(all)); }
  void write(int rank, const Slice& into, std::span<const float> from) override {
    executor_->write(rank, into, from);
  }
  void read(std::span<float> into, int rank, const Slice& from) const override {
    executor_->read(into, rank, from);
  }
  void synchronise() override {}
  double run() override { return executor_->run(); }
  double one_way_seconds(std::int64_t, int, int) override { return 0; }
  Dtype wire_dtype() const override { return wire_; }

 private:
  std::unique_ptr<Executor> executor_;
  Dtype wire_;
};

/// Changes each element of the output of `rank`.
template <class Change>
void change_outputs(Executor& executor, int rank, Change change) {
  std::vector<float> got(shape.state_elements());
  executor.read(got, rank, {1, 0, shape.state_elements()});
  for (float& value : got) value = change(value);
  executor.write(rank, {1, 0, shape.state_elements()}, got);
}

TEST(Verify, WhatIsTruncatedAndNotRoundedIsWrong) {
  const Subject subject = subject_of("all_scan");
  Claiming executor(run("all_scan", subject), Dtype::bf16);
  write_inputs(executor, subject);
  executor.run();
  EXPECT_EQ(compare(executor, subject).wrong, 0);
  // Rank 1 has what rank 0 sent, cut off: half of the elements lose more than rounding could take.
  change_outputs(executor, 1, [](float value) {
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xffff0000u);
  });
  EXPECT_GT(compare(executor, subject).wrong, 0);
}

TEST(Verify, ASingleElementIsWrongOnARoundingWireToo) {
  for (const char* name : {"all_scan", "ring_all_gather", "ring_reduce_scatter", "ring_exchange",
                           "bruck_all_to_all", "direct_to_zigzag"}) {
    const auto executor = run(name, subject_of(name), "local_bf16");
    std::vector<float> right(1);
    executor->read(right, 2, {1, 5, 1});
    executor->write(2, {1, 5, 1}, std::vector{right[0] + 0.3f});
    EXPECT_EQ(compare(*executor, subject_of(name)).wrong, 1) << name;
  }
}

TEST(Verify, NothingWrittenAndNoNumberAreWrongOnARoundingWireToo) {
  const Subject subject = subject_of("all_scan");
  const auto executor = run("all_scan", subject, "local_bf16");
  change_outputs(*executor, 1, [](float) { return NAN; });
  EXPECT_EQ(compare(*executor, subject).wrong, shape.state_elements());
  write_inputs(*executor, subject);  // and no run
  EXPECT_EQ(compare(*executor, subject).wrong, 2 * shape.state_elements());
}

TEST(Verify, AFoldIsKeptForTheCollectivesOfAGroup) {
  const World world(nullptr, nullptr);
  Oracles oracles(world.all());
  for (const char* name : {"all_scan", "recursive_doubling"})
    for (const char* on : {"local", "local_bf16"}) {
      const Subject subject = subject_of(name);
      const auto executor = run(name, subject, on);
      EXPECT_EQ(compare(*executor, subject, &oracles).wrong, 0) << name;
      Subject reversed = subject;
      reversed.direction = Direction::reverse;
      EXPECT_GT(compare(*executor, reversed, &oracles).wrong, 0) << "another fold";
      executor->write(1, {1, 5, 1}, std::vector{1e6f});
      EXPECT_EQ(compare(*executor, subject, &oracles).wrong, 1) << name;
    }
}

TEST(Verify, AWireThatRoundsTwiceAsCoarselyIsWrong) {
  // Ranks of 4096 elements: each error is within 12 of its rms, but that of all together is not.
  const Shape large{2, 32, 64, 2};
  const Subject subject{Kind::exclusive_scan, large, 2, Direction::forward, 3};
  auto executor = find_executor("local_bf16").make(2);
  executor->prepare(build_all(find_collective("all_scan"), large, {.ranks = 2, .blocks = 2}));
  write_inputs(*executor, subject);
  executor->run();
  const Comparison right = compare(*executor, subject);
  EXPECT_EQ(right.wrong, 0);
  EXPECT_LT(right.tolerance, 10 * right.relative_error);
  std::vector<float> got(large.state_elements());
  executor->read(got, 1, {1, 0, large.state_elements()});
  int n = 0;
  for (float& value : got) value *= ++n % 2 ? 1.01f : 0.99f;
  executor->write(1, {1, 0, large.state_elements()}, got);
  const Comparison coarse = compare(*executor, subject);
  EXPECT_GT(coarse.wrong, 0);
}

/// Every scan, at sizes that make an average.
TEST(Verify, ToleratesAtMostTenTimesTheErrorOfARoundingWire) {
  const Shape large{1, 64, 64, 2};
  for (const Collective* scan : collectives())
    for (int ranks : {2, 4, 16, 64}) {
      if (scan->kind != Kind::exclusive_scan) continue;
      for (int ranks_per_node : {0, 4}) {
        auto schedules =
            build_all(*scan, large, {.ranks = ranks, .blocks = 2, .ranks_per_node = ranks_per_node});
        auto executor = find_executor("local_bf16").make(ranks);
        if (executor->unsupported(schedules)) continue;
        const Subject subject{Kind::exclusive_scan, large, ranks, Direction::forward, 3};
        executor->prepare(std::move(schedules));
        write_inputs(*executor, subject);
        executor->run();
        const Comparison found = compare(*executor, subject);
        EXPECT_EQ(found.wrong, 0) << found.first;
        const double times = found.tolerance / found.relative_error;
        EXPECT_LT(times, 10) << scan->name << " at " << ranks << " ranks";
        EXPECT_GT(times, 1.5) << scan->name << " at " << ranks << " ranks";
      }
    }
}

class OraclesTest : public testing::Test {
 protected:
  /// The value of `key`, and how often values were made so far.
  std::pair<int, int> get(const std::string& key, double bytes) {
    const auto value = oracles_.get<int>(key, bytes, [&] { return ++made_; });
    return {*value, made_};
  }

  World world_{nullptr, nullptr};
  Oracles oracles_{world_.all(), 10};
  int made_ = 0;
};

TEST_F(OraclesTest, MakeAValueOnce) {
  EXPECT_EQ(get("a", 1), (std::pair{1, 1}));
  EXPECT_EQ(get("b", 1), (std::pair{2, 2}));
  EXPECT_EQ(get("a", 1), (std::pair{1, 2}));
}

TEST_F(OraclesTest, ForgetWhatWasAskedForLeastRecently) {
  get("a", 4);
  get("b", 4);
  get("a", 4);
  get("c", 4);
  EXPECT_EQ(get("a", 4).second, 3) << "kept";
  EXPECT_EQ(get("b", 4).second, 4) << "made anew";
}

TEST_F(OraclesTest, KeepTheLastOneWhateverItsSize) {
  get("a", 100);
  EXPECT_EQ(get("a", 100).second, 1);
}

}  // namespace
