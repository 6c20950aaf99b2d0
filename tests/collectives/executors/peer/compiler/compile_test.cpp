// SPDX-License-Identifier: Apache-2.0
// The instructions that schedules are compiled to. device/interpreter_test.cpp runs them.
#include "collectives/executors/peer/compiler/compile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "collectives/collective.hpp"
#include "collectives/schedule/errors.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;

std::vector<Schedule> schedules_of(const char* name, int ranks, int blocks = 1,
                                   const Shape& shape = {2, 8, 16, 4},
                                   Direction direction = Direction::forward) {
  return build_all(find_collective(name), shape, {.ranks = ranks, .blocks = blocks, .direction = direction});
}

PeerProgram program_of(const char* name, int rank, int ranks, int blocks = 1, bool merges = true) {
  const auto schedules = schedules_of(name, ranks, blocks);
  return compile_peer_programs(schedules, {.merges = merges})[rank];
}

bool has_barriers(const PeerProgram& program) {
  return std::any_of(program.instructions.begin(), program.instructions.end(),
                     [](const PeerInstruction& instruction) { return instruction.barrier; });
}

/// Sums of two scratches that are copies of the inputs, at these places.
Schedule sums(const std::vector<std::pair<int, int>>& places) {
  Schedule s(0, 1);
  const Slice ones = s.input("ones", 64), a = s.input("a", 64), b = s.input("b", 64);
  const Slice A = s.scratch("A", 64), B = s.scratch("B", 64);
  const auto length = static_cast<std::int64_t>(places.size());
  const Slice into = s.output("into", 32 * length);
  s.copy(A, a);
  s.copy(B, b);
  for (int i = 0; const auto& [at_a, at_b] : places)
    s.combine({{}, into.part(32 * i++, 32), 32}, {{}, A.part(at_a, 32), 32},
              {ones.part(0, 1), B.part(at_b, 32), 32});
  return s;
}

TEST(PeerProgram, ColumnsThatHangTogetherCannotBeMoved) {
  const std::vector<Schedule> tied{sums({{0, 0}, {4, 4}})}, torn{sums({{0, 0}, {0, 4}})};
  EXPECT_FALSE(has_barriers(compile_peer_programs(tied)[0]));
  EXPECT_TRUE(has_barriers(compile_peer_programs(torn)[0]));
}

TEST(PeerProgram, TwoBf16TravelAsOneWord) {
  Schedule zero(0, 2), one(1, 2);
  const Slice own = zero.input("own", 24, Dtype::bf16), into = one.output("into", 24, true, Dtype::bf16);
  zero.send(1, own.part(8, 16));
  one.recv(into.part(4, 16), 0);
  const std::vector<Schedule> schedules{zero, one};
  const PeerProgram program = compile_peer_programs(schedules)[0];
  EXPECT_EQ(program.instructions[0].from, (Slice{0, 4, 8}));
  EXPECT_EQ(program.inbox_packets, 2);
  EXPECT_THAT(unsupported_by_peer(schedules, true).reason(), HasSubstr("is of bf16 already"));
}

TEST(PeerProgram, AChainOfAffineMapsIsOneInstructionToo) {
  const Shape shape{.heads = 3, .d_k = 8, .d_v = 16, .map = MapKind::affine};
  for (int blocks : {1, 3, 7, 16})  // whole heads, and blocks that cut them
    for (Direction direction : {Direction::forward, Direction::reverse}) {
      const auto programs = compile_peer_programs(schedules_of("all_scan", 4, blocks, shape, direction));
      ASSERT_EQ(programs[1].instructions.size(), 1u) << blocks << " blocks";
      const PeerInstruction& only = programs[1].instructions[0];
      EXPECT_TRUE(only.multiplies());
      EXPECT_EQ(only.count, 3 * 16 * 8);
      EXPECT_EQ(only.fold->decay.count, 3 * 8 * 8);
      EXPECT_FALSE(only.barrier);
    }
}

TEST(PeerProgram, ProductsOfTheSameTilesNeedNoBarrier) {
  Schedule s(0, 1);
  const MapForm form{.kind = MapKind::affine, .share = 16};
  const std::int64_t states = 3 * 16 * 8, matrices = 3 * 8 * 8;
  const auto map = [&](const char* name) {
    const Slice all = s.input(name, matrices + states);
    return Map{all.part(0, matrices), all.part(matrices, states), 8, form};
  };
  const Map first = map("first"), second = map("second"), prefix{{}, s.output("prefix", states), 8, form};
  s.combine(prefix, first.only_state(), second);
  s.combine(prefix, prefix, first);
  const std::vector<Schedule> whole{s};
  EXPECT_FALSE(has_barriers(compile_peer_programs(whole)[0])) << "a block finds what it left";
  s.combine(prefix.part(32, 16), prefix.part(0, 16), second.part(0, 16));
  const std::vector<Schedule> shifted{s};
  EXPECT_TRUE(has_barriers(compile_peer_programs(shifted)[0]));
}

TEST(PeerProgram, AChainIsOneInstructionARankWhateverTheBlocks) {
  for (int blocks : {1, 4})
    for (int rank = 0; rank < 4; ++rank) {
      const PeerProgram program = program_of("all_scan", rank, 4, blocks);
      ASSERT_EQ(program.instructions.size(), 1u);
      const PeerInstruction& only = program.instructions[0];
      EXPECT_EQ(only.count, 256);
      EXPECT_EQ(only.arrival.has_value(), rank > 0);
      EXPECT_EQ(only.fold.has_value(), rank == 1 || rank == 2);
      EXPECT_EQ(only.sends.size(), rank < 3 ? 1u : 0u);
      EXPECT_EQ(only.keep.size(), rank > 0 ? 1u : 0u);
      EXPECT_TRUE(only.results.empty()) << "nobody reads the carry from memory";
      EXPECT_FALSE(only.barrier);
    }
}

TEST(PeerProgram, BlocksStayApartWhereAskedTo) {
  EXPECT_EQ(program_of("all_scan", 1, 4, 4, false).instructions.size(), 4u);
}

TEST(PeerProgram, BlocksThatShareAPacketStayApart) {
  const Shape shape{1, 4, 3, 1};  // blocks of 3 elements
  const auto schedules = schedules_of("all_scan", 2, 4, shape);
  EXPECT_EQ(compile_peer_programs(schedules)[1].instructions.size(), 4u);
}

TEST(PeerProgram, ARingForwardsWhatItReceivesInOneInstruction) {
  const PeerProgram program = program_of("ring_all_gather", 1, 4);
  ASSERT_EQ(program.instructions.size(), 4u);  // send and keep the own map; two forwards; one receive
  int forwards = 0;
  for (const PeerInstruction& in : program.instructions) forwards += in.arrival && in.sends.size() == 1;
  EXPECT_EQ(forwards, 2);
}

TEST(PeerProgram, OneLoadServesAllReceivers) {
  const PeerProgram program = program_of("direct_all_gather", 0, 4);
  EXPECT_EQ(program.instructions[0].sends.size(), 3u);
  EXPECT_EQ(program.instructions[0].keep.size(), 1u);
}

TEST(PeerProgram, DecaysAreReadWhereTheyArrive) {
  for (const char* name : {"two_shot", "all_gather_scan", "all_gather_scan_direct"})
    for (int rank = 0; rank < 4; ++rank) {
      const PeerProgram program = program_of(name, rank, 4);
      EXPECT_FALSE(has_barriers(program)) << name << ", rank " << rank;
    }
}

TEST(PeerProgram, SharedElementsOfLocalStepsMeetAtABarrier) {
  Schedule s(0, 1);
  const Slice own = s.input("own", 64), into = s.output("into", 64), half = s.scratch("half", 64);
  s.copy(half, own);
  s.copy(into.part(0, 62), half.part(2, 62));  // no thread owns the same elements in both
  s.copy(into.part(62, 2), half.part(0, 2));
  const std::vector<Schedule> schedules{s};
  const PeerProgram program = compile_peer_programs(schedules)[0];
  ASSERT_EQ(program.instructions.size(), 3u);
  EXPECT_FALSE(program.instructions[0].barrier);
  EXPECT_TRUE(program.instructions[1].barrier);
  EXPECT_FALSE(program.instructions[2].barrier) << "the one barrier is behind the first copy already";
}

TEST(PeerProgram, ColumnsFollowTheElements) {
  Schedule s(0, 1);
  const Slice own = s.input("own", 64), into = s.output("into", 32), half = s.scratch("half", 64);
  s.copy(half, own);
  s.copy(into, half.part(32, 32));
  const std::vector<Schedule> schedules{s};
  const PeerProgram program = compile_peer_programs(schedules)[0];
  ASSERT_EQ(program.instructions.size(), 2u);
  EXPECT_FALSE(program.instructions[1].barrier);
  EXPECT_EQ(program.instructions[1].column, 8);
}

TEST(PeerProgram, SaysWhichMessageNeverComes) {
  Schedule zero(0, 2), one(1, 2);
  const Slice a = zero.output("a", 4), b = one.output("b", 4);
  zero.recv(a, 1);
  zero.send(1, a);
  one.recv(b, 0);
  one.send(0, b);
  const std::vector<Schedule> schedules{zero, one};
  try {
    compile_peer_programs(schedules);
    FAIL() << "a deadlock passed";
  } catch (const ScheduleError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0, step 0 (recv, compile_test.cpp:"));
  }
}

TEST(PeerProgram, RefusesWhatItCannotRun) {
  Schedule s(0, 1);
  const Slice own = s.input("own", 8), into = s.scratch("into", 8);
  EXPECT_EQ(unsupported_by_peer(std::vector{s}).reason(), "");
  Schedule calls = s, halves = s;
  halves.copy(halves.scratch("b", 4, Dtype::bf16).part(1, 2), halves.scratch("c", 4, Dtype::bf16).part(0, 2));
  EXPECT_THAT(unsupported_by_peer(std::vector{halves}).reason(), HasSubstr("cuts a word in two"));
  calls.native("mpi_exscan", 1, {into}, {own});
  EXPECT_THAT(unsupported_by_peer(std::vector{calls}).reason(), HasSubstr("mpi_exscan is no native of peer"));
}

}  // namespace
