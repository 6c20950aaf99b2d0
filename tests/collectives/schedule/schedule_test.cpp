// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "collectives/schedule/errors.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;

/// The text of the ScheduleError that `record` throws.
template <typename Record>
std::string error_of(Record record) {
  try {
    record();
  } catch (const ScheduleError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Schedule, RecordsVerbsWithTheirLine) {
  Schedule s(1, 3);
  const Slice own = s.input("own", 4), into = s.output("into", 4);
  s.recv(into, 0);
  s.send(2, own);
  const std::uint_least32_t line = std::source_location::current().line() - 1;
  ASSERT_EQ(s.steps().size(), 2u);
  EXPECT_EQ(s.steps()[1].verb, Verb::send);
  EXPECT_EQ(s.steps()[1].peer, 2);
  EXPECT_EQ(s.steps()[1].source.line(), line);
}

TEST(Schedule, NumbersMessagesByPeerAndDirection) {
  Schedule s(0, 3);
  const Slice own = s.input("own", 4);
  s.send(1, own);
  s.send(2, own);
  s.send(1, own);
  EXPECT_EQ(s.steps()[0].sequence, 0);
  EXPECT_EQ(s.steps()[1].sequence, 0);
  EXPECT_EQ(s.steps()[2].sequence, 1);
}

TEST(Schedule, ReversedCountsRanksFromTheOtherEnd) {
  Schedule s(0, 4);
  const Slice own = s.input("own", 4);
  {
    const Reversed reversed(s);
    EXPECT_EQ(s.rank(), 3);
    EXPECT_EQ(s.home_rank(), 0);
    s.send(2, own);
  }
  EXPECT_EQ(s.rank(), 0);
  EXPECT_EQ(s.steps()[0].peer, 1);
}

TEST(Schedule, ANativeOfAScanIsToldTheFormOfItsMap) {
  Schedule s(1, 3);
  const Slice own = s.input("own", 2 * 9 + 12), into = s.output("into", 12);
  const MapForm form{.kind = MapKind::affine, .share = 2, .transposed = true};
  s.native_scan("any", 1, into, {own.part(0, 18), own.part(18, 12), 3, form});
  ASSERT_EQ(s.natives().size(), 1u);
  EXPECT_EQ(s.natives()[0].row, 3);
  EXPECT_EQ(s.natives()[0].form, form);
  EXPECT_EQ(s.steps()[0].reads[0], own) << "the packed map";
}

TEST(Schedule, NodesAreThoseOfTheHomeRanksInScanOrder) {
  Schedule s(6, 7, 3);  // nodes {0, 1, 2}, {3, 4, 5}, {6}
  EXPECT_EQ(s.ranks_per_node(), 3);
  EXPECT_EQ(s.nodes().of(s.rank()), 2);
  const Reversed reversed(s);
  EXPECT_EQ(s.nodes().of(s.rank()), 0);
  EXPECT_EQ(s.nodes().end(0), 1);
  EXPECT_EQ(Schedule(0, 7).ranks_per_node(), 7);
}

TEST(Schedule, AmongSomeRanksTheseAreAll) {
  Schedule s(4, 6, 3);
  const Slice own = s.input("own", 4);
  {
    const Among some(s, {5, 4, 1});
    EXPECT_EQ(s.rank(), 1);
    EXPECT_EQ(s.ranks(), 3);
    EXPECT_EQ(s.home_rank(), 4);
    EXPECT_EQ(s.nodes().count(), 3);
    s.send(2, own);
    EXPECT_THAT(error_of([&] { s.send(3, own); }), HasSubstr("names rank 3"));
    EXPECT_THAT(error_of([&] { s.native("any", 1, {}, {}); }), HasSubstr("among some"));
    const Reversed reversed(s);
    s.send(0, own);
    const Among fewer(s, {1, 0});
    EXPECT_EQ(s.rank(), 0);
    s.send(1, own);
  }
  EXPECT_EQ(s.rank(), 4);
  EXPECT_EQ(s.ranks(), 6);
  s.send(5, own);
  const std::vector<Step>& steps = s.steps();
  EXPECT_EQ(steps[0].peer, 1);
  EXPECT_EQ(steps[1].peer, 1);  // of 5, 4, 1 the first from the other end
  EXPECT_EQ(steps[2].peer, 1);
  EXPECT_EQ(steps[3].peer, 5);
  EXPECT_EQ(steps[2].sequence, 2);
}

TEST(Schedule, AmongSomeRanksInReverseTheyAreNamedInScanOrder) {
  Schedule s(4, 6);
  const Slice own = s.input("own", 4);
  const Reversed reversed(s);
  const Among some(s, {1, 3});  // home ranks 4 and 2
  EXPECT_EQ(s.rank(), 0);
  s.send(1, own);
  EXPECT_EQ(s.steps()[0].peer, 2);
  EXPECT_THROW(Among(s, {1}), ScheduleError);
}

TEST(Schedule, StepsRememberTheirRegion) {
  Schedule s(0, 2);
  const Slice own = s.input("own", 4);
  {
    const Region region(s, "inner");
    s.send(1, own);
  }
  s.send(1, own);
  EXPECT_EQ(s.regions()[s.steps()[0].region], "inner");
  EXPECT_EQ(s.regions()[s.steps()[1].region], "");
}

TEST(Schedule, SkipsEmptySlices) {
  Schedule s(0, 2);
  const Slice own = s.input("own", 0), into = s.output("into", 0);
  s.send(1, own);
  s.recv(into, 1);
  s.copy(into, own);
  EXPECT_TRUE(s.steps().empty());
}

TEST(Schedule, AfterSettlingAllWaitsForWhatCameBefore) {
  Schedule s(0, 3);
  const Slice own = s.input("own", 4), into = s.output("into", 4), other = s.scratch("other", 4);
  s.send(1, own);   // 0
  s.recv(into, 2);  // 1
  s.fence();
  s.fence();            // nothing was recorded in between: still the same
  s.copy(other, own);   // 2
  s.copy(other, into);  // 3: waits for 2 and through it for the rest
  EXPECT_EQ(s.steps()[2].waits_for, (std::vector<int>{0, 1}));
  EXPECT_EQ(s.steps()[3].waits_for, (std::vector<int>{1, 2}));
}

TEST(Schedule, RejectsWhatCannotBe) {
  Schedule s(0, 2);
  const Slice own = s.input("own", 4), into = s.output("into", 4);
  EXPECT_THAT(error_of([&] { s.send(0, own); }), HasSubstr("names rank 0"));
  EXPECT_THAT(error_of([&] { s.send(2, own); }), HasSubstr("names rank 2"));
  EXPECT_THAT(error_of([&] { s.copy(own, into); }), HasSubstr("writes the input 'own'"));
  EXPECT_THAT(error_of([&] { s.copy(into, own.part(0, 2)); }), HasSubstr("copies 2 elements into 4"));
  EXPECT_THAT(error_of([&] { s.send(1, own.part(2, 4)); }), HasSubstr("outside its buffer"));
  EXPECT_THAT(error_of([&] { s.send(1, own.part(2, 4)); }), HasSubstr("schedule_test.cpp:"));
  EXPECT_THROW(s.scratch("huge", std::int64_t{1} << 60), UsageError);
  EXPECT_THROW(Schedule(2, 2), UsageError);
  EXPECT_THROW(Schedule(0, 2, -1), UsageError);
}

TEST(Schedule, ASumIsACombineWhoseDecayIsOne) {
  Schedule s(0, 1);
  const Slice a = s.input("a", 6), b = s.input("b", 6), into = s.output("into", 6);
  s.add(into, a, b);
  s.add(into, into, b);
  ASSERT_EQ(s.steps().size(), 2u);
  EXPECT_EQ(s.steps()[0].verb, Verb::combine);
  const Slice decay = s.steps()[0].reads[1];
  EXPECT_EQ(s.steps()[1].reads[1], decay);
  EXPECT_EQ(decay.count, 1);
  EXPECT_EQ(s.buffers()[decay.buffer].start, 1);
  EXPECT_EQ(s.steps()[1].waits_for, std::vector<int>{0});
  EXPECT_THAT(error_of([&] { s.add(into, a, b.part(0, 3)); }), HasSubstr("different shapes"));
}

TEST(Schedule, ACombineCarriesTheFormOfTheLaterMap) {
  Schedule s(0, 2);
  // One head of three rows of two elements, under a matrix of four.
  const Slice own = s.input("own", 4 + 6), scratch = s.scratch("scratch", 4 + 6);
  const MapForm form{.kind = MapKind::affine, .share = 3, .transposed = true};
  const Map map{own.part(0, 4), own.part(4, 6), 2, form}, other{scratch.part(0, 4), scratch.part(4, 6), 2};
  s.combine(other.only_state().block(1, 3), other.only_state().block(1, 3), map.block(1, 3));
  EXPECT_EQ(s.steps()[0].combine.row, 2);
  EXPECT_EQ(s.steps()[0].combine.form.first, 1);
  EXPECT_TRUE(s.steps()[0].combine.form.transposed);
  EXPECT_EQ(s.steps()[0].reads[1].count, 4) << "the whole matrix";
  EXPECT_EQ(s.steps()[0].combine_flops(), 2 * 2 * 2);
  s.combine(other, other, map);
  EXPECT_EQ(s.steps()[1].combine_flops(), 2 * 2 * (6 + 4));
  const Map part{scratch.part(0, 4), scratch.part(4, 2), 2};
  EXPECT_THAT(error_of([&] { s.combine(part, part, map.block(1, 3)); }), HasSubstr("cut within a head"));
}

TEST(Schedule, CombineRejectsMapsOfDifferentShapes) {
  Schedule s(0, 2);
  const Slice own = s.input("own", 2 + 6), scratch = s.scratch("scratch", 8);
  const Map map{own.part(0, 2), own.part(2, 6), 3};
  const Map state{{}, scratch.part(0, 6), 3};
  const Map shorter{{}, scratch.part(0, 3), 3};
  s.combine(state, state, map);
  EXPECT_THAT(error_of([&] { s.combine(shorter, state, map); }), HasSubstr("different shapes"));
  EXPECT_THAT(error_of([&] { s.combine(state, map, map); }), HasSubstr("different shapes"));
}

std::vector<int> sizes(const Nodes& nodes) {
  std::vector<int> all;
  for (int node = 0; node < nodes.count(); ++node) all.push_back(nodes.size(node));
  return all;
}

TEST(Schedule, AStepWritesInThePlaceOfAnOperandOrBesideThem) {
  Schedule s(0, 1);
  const Slice all = s.scratch("all", 32);
  const auto map = [&](std::int64_t at) { return Map{all.part(at, 2), all.part(at + 2, 4), 2}; };
  s.copy(all.part(0, 4), all.part(4, 4));
  s.combine(map(0), map(0), map(8));
  s.combine(map(8), map(0), map(8));
  s.combine(map(16), map(0), map(8));
  EXPECT_EQ(s.steps().size(), 4U);
  EXPECT_THAT(error_of([&] { s.copy(all.part(0, 4), all.part(1, 4)); }), HasSubstr("a part of itself"));
  for (const std::int64_t into : {1, 6, 7, 12})
    EXPECT_THAT(error_of([&] { s.combine(map(into), map(0), map(8)); }), HasSubstr("part of its operands"));
  const Map inside{all.part(20, 2), all.part(18, 4), 2};
  EXPECT_THAT(error_of([&] { s.combine(inside, map(0), map(8)); }), HasSubstr("part of its operands"));
}

TEST(Nodes, AreFilledOneAfterTheOther) {
  EXPECT_EQ(sizes({7, 3, false}), (std::vector{3, 3, 1}));
  EXPECT_EQ(sizes({6, 3, false}), (std::vector{3, 3}));
  EXPECT_EQ(sizes({3, 1, false}), (std::vector{1, 1, 1}));
}

TEST(Nodes, ThePartlyFilledOneComesFirstFromTheOtherEnd) {
  EXPECT_EQ(sizes({7, 3, true}), (std::vector{1, 3, 3}));
  EXPECT_EQ(sizes({6, 3, true}), (std::vector{3, 3}));
}

TEST(Nodes, OneNodeHoldsAllWhereNothingElseIsSaid) {
  for (int ranks_per_node : {0, 5, 9}) {
    EXPECT_EQ(sizes({5, ranks_per_node, false}), std::vector{5});
    EXPECT_EQ(Nodes(5, ranks_per_node, true).full_size(), 5);
  }
}

TEST(Nodes, ReversedRanksStayOnTheirNodes) {
  for (int ranks = 1; ranks <= 17; ++ranks)
    for (int ranks_per_node = 0; ranks_per_node <= 18; ++ranks_per_node) {
      const Nodes forward(ranks, ranks_per_node, false), reverse(ranks, ranks_per_node, true);
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(reverse.of(ranks - 1 - rank), forward.count() - 1 - forward.of(rank));
        for (const Nodes& nodes : {forward, reverse}) {
          EXPECT_LE(nodes.begin(nodes.of(rank)), rank);
          EXPECT_GT(nodes.end(nodes.of(rank)), rank);
        }
      }
    }
}

TEST(Pooled, LaterPartsWorkInTheMemoryOfEarlierOnes) {
  Schedule s(0, 1);
  ScratchPool pool;
  const auto part = [&] {
    const Pooled pooled(s, pool);
    const Slice first = s.scratch("x", 4), second = s.scratch("x", 4);
    EXPECT_NE(first.buffer, second.buffer) << "one part must not get the same memory twice";
    EXPECT_NE(s.lasting_scratch("x", 4).buffer, first.buffer);
    return first;
  };
  const Slice before = part();
  EXPECT_EQ(part(), before);
  const Pooled pooled(s, pool);
  EXPECT_NE(s.scratch("x", 5).buffer, before.buffer) << "another size";
  EXPECT_NE(s.scratch("y", 4).buffer, before.buffer) << "another name";
}

TEST(Pooled, AWriterWaitsForWhoStillReadsTheMemory) {
  Schedule s(0, 1);
  ScratchPool pool;
  const Slice in = s.input("in", 2), out = s.output("out", 2);
  for (int part = 0; part < 2; ++part) {
    const Pooled pooled(s, pool);
    const Slice work = s.scratch("work", 2);
    s.copy(work, in);
    s.copy(out, work);
  }
  EXPECT_EQ(s.steps()[2].waits_for, std::vector{1});
}

}  // namespace
