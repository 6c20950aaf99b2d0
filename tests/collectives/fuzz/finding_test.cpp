// SPDX-License-Identifier: Apache-2.0
// Draws from seeds, as the fuzzer does from bytes of its own: BATON_SEED is the first seed, other
// ones in every run, and BATON_SCHEDULES how many are drawn.
#include "tests/collectives/fuzz/finding.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "collectives/schedule/check.hpp"
#include "collectives/schedule/errors.hpp"
#include "tests/held_out_seed.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;

std::uint64_t schedules_to_draw() {
  const char* given = std::getenv("BATON_SCHEDULES");
  return given == nullptr ? 1000 : std::strtoull(given, nullptr, 10);
}

TEST(DrawnSchedules, AreAcceptedIfTheyRunAndRejectedIfNot) {
  for (std::uint64_t i = 0; i < schedules_to_draw(); ++i) {
    const std::uint64_t seed = held_out_seed() + i;
    ASSERT_EQ(finding(bytes_of(seed)), "")
        << "again: BATON_SEED=" << seed
        << " BATON_SCHEDULES=1 build/cpu/bin/unit_tests --gtest_filter=DrawnSchedules.AreAccepted*";
  }
}

std::string word_of_check(const DrawnSchedules& drawn) {
  try {
    product_check(drawn.schedules);
    return "accepted";
  } catch (const ScheduleError& error) {
    return error.what();
  }
}

TEST(DrawnSchedules, HaveEveryVerbAndGoWrongInEveryWay) {
  std::set<Verb> accepted_verbs;
  std::string words;
  int accepted = 0;
  constexpr int draws = 3000;
  for (int seed = 0; seed < draws; ++seed) {
    const auto bytes = bytes_of(seed);
    const DrawnSchedules drawn = draw_schedules(Bytes(bytes));
    const std::string word = word_of_check(drawn);
    words += word + "\n";
    if (word != "accepted") continue;
    ++accepted;
    for (const Schedule& schedule : drawn.schedules)
      for (const Step& step : schedule.steps()) accepted_verbs.insert(step.verb);
  }
  EXPECT_GT(accepted, draws / 4);
  EXPECT_LT(accepted, draws / 4 * 3);
  EXPECT_EQ(accepted_verbs.size(), 6U);
  for (const char* reason : {"has no receive", "has no send", "elements, but", "of another type",
                             "nothing wrote", "deadlock: ", "deadlock when messages run in groups"})
    EXPECT_THAT(words, HasSubstr(reason));
}

/// What the first of some draws that is a finding says of `checker`.
std::string first_finding(const Checker& checker) {
  for (int seed = 0; seed < 3000; ++seed)
    if (std::string found = finding(bytes_of(seed), checker); !found.empty()) return found;
  return {};
}

/// The checker that takes what check rejects with a text that has `words` in it.
Checker blind_to(const std::string& words) {
  return [words](std::span<const Schedule> schedules) {
    try {
      product_check(schedules);
    } catch (const ScheduleError& error) {
      if (std::string(error.what()).find(words) == std::string::npos) throw;
    }
  };
}

TEST(DrawnSchedules, FindACheckerThatIsBlind) {
  EXPECT_THAT(first_finding(blind_to("has no receive")), HasSubstr("check accepts"));
  EXPECT_THAT(first_finding(blind_to("elements, but")), HasSubstr("does not fit"));
  EXPECT_THAT(first_finding(blind_to("nothing wrote")), HasSubstr("is not written"));
  EXPECT_THAT(first_finding(blind_to("deadlock: ")), HasSubstr("waits for ever"));
  EXPECT_THAT(first_finding(blind_to("when messages run in groups")), HasSubstr("waits for ever"));
}

TEST(DrawnSchedules, FindACheckerThatIsTooStrict) {
  const Checker strict = [](std::span<const Schedule> schedules) {
    if (check("drawn", schedules).hops > 3) throw ScheduleError("too many hops");
  };
  EXPECT_THAT(first_finding(strict), HasSubstr("check rejects schedules that always end well"));
}

}  // namespace
