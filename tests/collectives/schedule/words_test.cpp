// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/words.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <vector>

#include "collectives/schedule/errors.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;
using testing::StrEq;

/// One rank's text of a scan with two rows of two elements.
using Text = std::function<void(Schedule&, const Map& own, const Map& into)>;

/// The error of running `text` on words on three ranks; empty if it is right.
std::string error_of(const Text& text) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < 3; ++rank) {
    Schedule& s = schedules.emplace_back(rank, 3);
    const Slice own = s.input("own", 6);
    text(s, {own.part(0, 2), own.part(2, 4), 2}, {{}, s.output("into", 4, rank > 0), 2});
  }
  try {
    run_on_words({.name = "scan, 3 ranks", .rows = 2, .row = 2}, schedules);
  } catch (const ScheduleError& error) {
    return error.what();
  }
  return {};
}

/// A right chain, in which rank 1 hands on what `carry` makes of its own map and its prefix.
Text chain(const std::function<void(Schedule&, const Map& carry, const Map& prefix, const Map& own)>& carry) {
  return [carry](Schedule& s, const Map& own, const Map& into) {
    if (s.rank() > 0) s.recv(into, s.rank() - 1);
    if (s.rank() == 2) return;
    Map handed_on = own.only_state();
    if (s.rank() == 1) {
      handed_on = s.scratch_map("carry", own).only_state();
      carry(s, handed_on, into, own);
    }
    s.send(s.rank() + 1, handed_on);
  };
}

TEST(Words, AChainIsRight) {
  EXPECT_THAT(error_of(chain([](Schedule& s, const Map& carry, const Map& prefix, const Map& own) {
                s.combine(carry, prefix, own);
              })),
              StrEq(""));
}

TEST(Words, AWrongOrderIsNamedWithTheWordItMust) {
  EXPECT_THAT(error_of(chain([](Schedule& s, const Map& carry, const Map&, const Map& own) {
                s.combine(carry, own.only_state(), own);
              })),
              StrEq("scan, 3 ranks: rank 2 has 1 1, must have 0 1"));
}

TEST(Words, AForgottenRankIsNamed) {
  EXPECT_THAT(error_of(chain([](Schedule& s, const Map& carry, const Map&, const Map& own) {
                s.copy(carry, own.only_state());
              })),
              StrEq("scan, 3 ranks: rank 2 has 1, must have 0 1"));
}

TEST(Words, ADecayOfAnotherRowIsNamedWithItsStep) {
  EXPECT_THAT(error_of(chain([](Schedule& s, const Map& carry, const Map& prefix, const Map& own) {
                const Slice turned = s.scratch("turned", 2);
                s.copy(turned.part(0, 1), own.decay.part(1, 1));
                s.copy(turned.part(1, 1), own.decay.part(0, 1));
                s.combine(carry, prefix, {turned, own.state, 2});
              })),
              HasSubstr("rank 2 has a state and another row's decay, combined by rank 1 in step 3 (combine"));
}

TEST(Words, ADecayOfAnotherWordIsNamed) {
  // The composed state is combined with the decay of the map alone.
  EXPECT_THAT(error_of(chain([](Schedule& s, const Map& carry, const Map& prefix, const Map& own) {
                const Map twice = s.scratch_map("twice", own);
                s.combine(twice, own, own);
                s.combine(carry, prefix, {own.decay, twice.state, 2});
              })),
              HasSubstr("rank 2 has the state of 1 1 and the decay of 1, combined by rank 1"));
}

TEST(Words, MemoryThatNothingHasWrittenIsNamed) {
  EXPECT_THAT(error_of(chain([](Schedule& s, const Map& carry, const Map&, const Map& own) {
                s.combine(carry, s.scratch_map("zeros", own).only_state(), own);
              })),
              HasSubstr("rank 2 has memory that nothing has written, must have 0 1"));
}

TEST(Words, ElementsInEachOthersPlacesAreNamed) {
  EXPECT_THAT(error_of(chain([](Schedule& s, const Map& carry, const Map& prefix, const Map& own) {
                const Map right = s.scratch_map("right", own).only_state();
                s.combine(right, prefix, own);
                s.copy(carry.state.part(0, 2), right.state.part(2, 2));
                s.copy(carry.state.part(2, 2), right.state.part(0, 2));
              })),
              StrEq("scan, 3 ranks: rank 2 has 0 1 of element 2 in element 0"));
}

TEST(Words, TheFirstRankMustGetNothing) {
  EXPECT_THAT(error_of([](Schedule& s, const Map& own, const Map& into) { s.copy(into, own.only_state()); }),
              StrEq("scan, 3 ranks: rank 0 has 0, must have nothing"));
}

TEST(Words, ALongWordIsCutInTheText) {
  EXPECT_THAT(error_of(chain([](Schedule& s, const Map& carry, const Map& prefix, const Map& own) {
                s.combine(carry, prefix, own);
                for (int i = 0; i < 9; ++i) s.combine(carry, carry, own);
              })),
              StrEq("scan, 3 ranks: rank 2 has 0 1 1 1 .., must have 0 1"));
}

/// The same of two heads of one row of two elements, under affine maps.
std::string affine_error_of(const Text& text, bool is_reversed = false) {
  const MapForm form{.kind = MapKind::affine, .transposed = is_reversed};
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < 4; ++rank) {
    Schedule& s = schedules.emplace_back(rank, 4);
    std::optional<Reversed> reversed;
    if (is_reversed) reversed.emplace(s);
    const Slice own = s.input("own", 12);
    text(s, {own.part(0, 8), own.part(8, 4), 2, form}, {{}, s.output("into", 4, s.rank() > 0), 2});
  }
  try {
    run_on_words({.name = "scan", .rows = 2, .row = 2, .is_reversed = is_reversed, .form = form}, schedules);
  } catch (const ScheduleError& error) {
    return error.what();
  }
  return {};
}

/// Each rank gets all maps before its own. `compose` makes one map of those of ranks 1 and 2.
Text composing(
    const std::function<void(Schedule&, const Map& into, const Map& earlier, const Map& later)>& compose) {
  return [compose](Schedule& s, const Map& own, const Map& into) {
    for (int to = s.rank() + 1; to < 4; ++to) s.send(to, own.packed());
    std::vector<Map> maps;
    for (int from = 0; from < s.rank(); ++from) {
      maps.push_back(s.scratch_map("map", own));
      s.recv(maps.back().packed(), from);
    }
    if (s.rank() == 1) s.copy(into, maps[0].only_state());
    if (s.rank() == 2) s.combine(into, maps[0].only_state(), maps[1]);
    if (s.rank() != 3) return;
    const Map both = s.scratch_map("both", own);
    compose(s, both, maps[1], maps[2]);
    s.combine(into, maps[0].only_state(), both);
  };
}

TEST(Words, MatricesAreComposedInOrder) {
  for (const bool is_reversed : {false, true}) {
    const auto error = [is_reversed](const auto& compose) {
      return affine_error_of(composing(compose), is_reversed);
    };
    EXPECT_THAT(error([](Schedule& s, const Map& into, const Map& earlier, const Map& later) {
                  s.combine(into, earlier, later);
                }),
                StrEq(""));
    EXPECT_THAT(error([](Schedule& s, const Map& into, const Map& earlier, const Map& later) {
                  s.combine(into, later, earlier);
                }),
                HasSubstr(is_reversed ? "rank 0 has 3 1 2, must have 3 2 1" : "rank 3 has 0 2 1"));
    EXPECT_THAT(error([](Schedule& s, const Map& into, const Map& earlier, const Map& later) {
                  s.combine(into, earlier, {earlier.decay, later.state, later.row, later.form});
                }),
                HasSubstr("and the decay of "));
  }
}

TEST(Words, AMapThatActsTheOtherWayRoundIsNamed) {
  EXPECT_THAT(affine_error_of(composing([](Schedule& s, const Map& into, const Map& earlier, Map later) {
                later.form.transposed = true;
                s.combine(into, earlier, later);
              })),
              HasSubstr("rank 3 has maps of another form, combined by rank 3"));
}

TEST(Words, ARowOfTwoRowsIsNamed) {
  EXPECT_THAT(affine_error_of([](Schedule& s, const Map& own, const Map& into) {
                for (int to = s.rank() + 1; to < 4; ++to) s.send(to, own.only_state().packed());
                for (int from = 0; from < s.rank(); ++from) s.recv(into, from);
                if (s.rank() < 2) return;
                s.copy(into.state.part(0, 1), own.state.part(2, 1));
                s.combine(into, into, own);
              }),
              HasSubstr("a row or a matrix of parts, combined by rank 2"));
}

TEST(Words, StepsThatTakeNumbersHaveNone) {
  Schedule s(0, 1);
  const Slice own = s.input("own", 2), into = s.output("into", 2);
  s.copy(into, own);
  EXPECT_TRUE(has_words({&s, 1}));
  s.compute({.name = "square"}, {into}, {own});
  EXPECT_FALSE(has_words({&s, 1}));
}

}  // namespace
