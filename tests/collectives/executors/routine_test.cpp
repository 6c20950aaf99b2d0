// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/routine.hpp"

#include <gtest/gtest.h>

#include <array>

namespace {

using namespace baton;

/// Notes what it is asked for.
class Noting : public Routine {
 public:
  explicit Noting(std::string& noted) : noted_(noted) {}
  void prepare() override { noted_ += 'p'; }
  void run() override { noted_ += 'r'; }
  void finish() override { noted_ += 'f'; }

 private:
  std::string& noted_;
};

std::string noted;
RoutineCall last_call;

/// A schedule of one native of two inputs and an output, of rank 1 of 3.
Schedule schedule_of(const std::string& name, bool reversed = false) {
  Schedule s(1, 3);
  const Slice q = s.input("q", 6), k = s.input("k", 4), o = s.output("o", 6);
  std::optional<Reversed> other_end;
  if (reversed) other_end.emplace(s);
  s.native(name, 1, {o}, {q, k});
  return s;
}

class Routines : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    routines().add("noting", [](const RoutineCall& call) {
      last_call = call;
      return std::make_unique<Noting>(noted);
    });
  }
  void SetUp() override { noted.clear(); }

  std::array<float, 16> memory_{};
  void* at(const Slice& slice) { return memory_.data() + 6 * slice.buffer; }
  RoutineTurns turns_of(const Schedule& s) {
    return {s, routine_call(s, [this](const Slice& slice) { return at(slice); })};
  }
};

TEST_F(Routines, PrepareAfterInputsAndFinishBeforeResultsAreSeen) {
  const Schedule s = schedule_of("noting");
  const Slice q = s.buffer("q"), o = s.buffer("o");
  RoutineTurns turns = turns_of(s);
  turns.before_write(q);
  EXPECT_TRUE(turns.must_prepare());
  turns.prepare();
  EXPECT_FALSE(turns.must_prepare());
  turns.run();
  EXPECT_EQ(noted, "pr");
  turns.before_read();
  turns.before_read();
  EXPECT_EQ(noted, "prf") << "results are handed over once";
  turns.before_write(o);
  EXPECT_FALSE(turns.must_prepare()) << "an output that is overwritten is no new input";
  turns.run();
  turns.before_write(o);
  EXPECT_EQ(noted, "prfrf") << "what is written over a result must come after it";
  turns.before_write(s.buffer("k"));
  turns.run();
  EXPECT_EQ(noted, "prfrfpr") << "a round over new inputs is never without its preparation";
}

TEST_F(Routines, OfSchedulesWithoutARoutineDoNothing) {
  RoutineTurns none;
  EXPECT_FALSE(none);
  EXPECT_FALSE(none.must_prepare());
  none.before_read();
  none.before_write({});
  EXPECT_FALSE(has_routine(schedule_of("of_another_kind")));
  EXPECT_TRUE(has_routine(schedule_of("noting")));
  Schedule two = schedule_of("noting");
  two.copy(two.scratch("copy", 6), two.buffer("q"));
  EXPECT_FALSE(has_routine(two)) << "its messages are numbered as if it were alone";
}

TEST_F(Routines, CallHasOperandsWithTheirShapes) {
  Schedule s = schedule_of("noting");
  s.shape_native({{1, 2, 3}, {3, 2, 1}, {2, 2}});
  turns_of(s);
  ASSERT_EQ(last_call.writes.size(), 1U);
  ASSERT_EQ(last_call.reads.size(), 2U);
  EXPECT_EQ(last_call.writes[0].shape, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(last_call.reads[1].shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(last_call.reads[1].name, "k");
  EXPECT_EQ(last_call.reads[1].data, at(s.buffer("k")));
  turns_of(schedule_of("noting"));
  EXPECT_EQ(last_call.reads[1].shape, std::vector<std::int64_t>{4}) << "flat where nobody told";
}

TEST_F(Routines, PlacesCountInScanOrder) {
  turns_of(schedule_of("noting"));
  EXPECT_EQ(last_call.rank, 1);
  EXPECT_EQ(last_call.home(2), 2);
  turns_of(schedule_of("noting", true));
  EXPECT_EQ(last_call.rank, 1);
  EXPECT_EQ(last_call.home(2), 0);
}

}  // namespace
