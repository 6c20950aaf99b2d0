// SPDX-License-Identifier: Apache-2.0
// Programs of the peer executor, run on the host by many threads in thought: what the device would do, with its packets,
// its columns and its barriers, in every order that a device might choose.
#include "collectives/executors/peer/compiler/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>

#include "collectives/collective.hpp"
#include "collectives/executors/host/memory.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/cases/verify.hpp"
#include "sp_methods/layer_oracle.hpp"
#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;

/// A word that no packet brings.
constexpr float empty = -0.123456f;

/// All ranks' programs on the host. Each rank has `threads` threads, each of them as far as it got.
class ThoughtDevice : public Executor {
 public:
  ThoughtDevice(std::vector<Schedule> schedules, PeerProgramOptions options, int threads, std::uint64_t seed)
      : schedules_(std::move(schedules)), threads_(threads), random_(seed) {
    for (const Schedule& schedule : schedules_) {
      memories_.push_back(std::make_unique<HostMemory>(schedule));
      programs_.push_back(compile_peer_program(schedules_, schedule.home_rank(), options));
      inboxes_.emplace_back(programs_.back().inbox_packets * options.packet_elements, empty);
    }
  }

  std::vector<int> local_ranks() const override {
    std::vector<int> all(schedules_.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  Refusal unsupported(std::span<const Schedule>) const override { return {}; }
  void prepare(std::vector<Schedule>) override {}
  void write(int rank, const Slice& into, std::span<const float> from) override {
    std::copy(from.begin(), from.end(), memories_[rank]->view(into).begin());
  }
  void read(std::span<float> into, int rank, const Slice& from) const override {
    const auto view = std::as_const(*memories_[rank]).view(from);
    std::copy(view.begin(), view.end(), into.begin());
  }
  void synchronise() override {}
  double one_way_seconds(std::int64_t, int, int) override { return 0; }

  /// Lets threads run a packet each, and streams a launch, in random order until all are done; throws ScheduleError when
  /// none can.
  double run() override {
    for (auto& inbox : inboxes_) std::fill(inbox.begin(), inbox.end(), empty);
    progress_.clear();
    threads_of_all_.clear();
    for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
      progress_.push_back({std::vector<bool>(programs_[rank].operations.size(), false)});
      for (int i = 0; i < threads_; ++i) threads_of_all_.push_back({static_cast<int>(rank), i});
    }
    while (!all_done()) {
      bool moved = false;
      for (int rank = 0; rank < static_cast<int>(programs_.size()); ++rank) moved = launch(rank) || moved;
      std::shuffle(threads_of_all_.begin(), threads_of_all_.end(), random_);
      for (Thread& thread : threads_of_all_) moved = advance(thread) || moved;
      if (!moved) throw ScheduleError("deadlock");
    }
    return 0;
  }

  const PeerProgram& program(int rank) const { return programs_[rank]; }

 private:
  struct Thread {
    int rank = 0;
    int number = 0;
    int instruction = 0;
    std::int64_t packet = -1;  // -1 before the first one
  };

  /// How far a rank's two streams are.
  struct Progress {
    std::vector<bool> done;  // by operation
    int launched = 0;        // instructions that threads may run
    int exchange = -1;       // the operation that they belong to, -1 for none under way
  };

  bool all_done() const {
    return std::all_of(progress_.begin(), progress_.end(), [](const Progress& rank) {
      return std::find(rank.done.begin(), rank.done.end(), false) == rank.done.end();
    });
  }

  /// Ends what has ended on a rank and launches what may start, each stream in order; false where nothing happens.
  bool launch(int rank) {
    Progress& progress = progress_[rank];
    bool moved = false;
    if (progress.exchange >= 0 && all_have_reached(rank, progress.launched)) {
      progress.done[progress.exchange] = moved = true;
      progress.exchange = -1;
    }
    return launch_next(rank, false) || launch_next(rank, true) || moved;
  }

  bool launch_next(int rank, bool computes) {
    Progress& progress = progress_[rank];
    const auto& operations = programs_[rank].operations;
    for (int i = 0; i < static_cast<int>(operations.size()); ++i) {
      const PeerOperation& operation = operations[i];
      if (progress.done[i] || (operation.compute >= 0) != computes) continue;
      const bool waits = operation.waits_for >= 0 && !progress.done[operation.waits_for];
      if (waits || (!computes && progress.exchange >= 0)) return false;
      if (computes && random_() % 4 != 0) return true;  // it takes its time
      if (!computes) {
        progress.exchange = i;
        progress.launched = operation.last;
      } else {
        const Step& step = schedules_[rank].steps()[operation.compute];
        run_on_host(schedules_[rank], step, memories_[rank]->operands(step));
        progress.done[i] = true;
      }
      return true;
    }
    return false;
  }

  /// Runs one packet, or enters or leaves an instruction; false where it must wait.
  bool advance(Thread& thread) {
    if (thread.instruction >= progress_[thread.rank].launched) return false;
    const PeerProgram& program = programs_[thread.rank];
    const PeerInstruction& instruction = program.instructions[thread.instruction];
    if (thread.packet < 0) {
      if (instruction.barrier && !all_have_reached(thread.rank, thread.instruction)) return false;
      const std::int64_t first = (thread.number - instruction.column) % threads_;
      thread.packet = first < 0 ? first + threads_ : first;
    }
    if (thread.packet < instruction.packets(program.packet_elements)) {
      if (!run_packet(thread, instruction)) return false;
      thread.packet += threads_;
    } else {
      ++thread.instruction;
      thread.packet = -1;
    }
    return true;
  }

  bool all_have_reached(int rank, int instruction) const {
    return std::all_of(threads_of_all_.begin(), threads_of_all_.end(), [&](const Thread& thread) {
      return thread.rank != rank || thread.instruction >= instruction;
    });
  }

  bool run_packet(const Thread& thread, const PeerInstruction& in) {
    const int E = programs_[thread.rank].packet_elements;
    const std::int64_t from = thread.packet * E, n = std::min<std::int64_t>(E, in.count - from);
    std::vector<float> x(E), y(E);
    if (in.arrival) {
      const auto packet = inboxes_[thread.rank].begin() + in.arrival->packet * E + from;
      if (packet[E - 1] == empty) return false;
      std::copy_n(packet, E, x.begin());
    } else {
      load(thread.rank, in.from.part(from, n), x);
    }
    if (in.fold && !fold(thread.rank, *in.fold, from, n, x, y)) return false;
    for (const Slice& slice : in.keep) store(thread.rank, slice.part(from, n), x);
    for (const Slice& slice : in.results) store(thread.rank, slice.part(from, n), y);
    for (const PeerSend& send : in.sends) {
      const auto packet = inboxes_[send.to.peer].begin() + send.to.packet * E + from;
      EXPECT_EQ(packet[E - 1], empty) << "a packet is sent twice";
      std::copy_n((send.folded ? y : x).begin(), E, packet);
    }
    return true;
  }

  bool fold(int rank, const PeerFold& fold, std::int64_t from, std::int64_t n, const std::vector<float>& x,
            std::vector<float>& y) {
    std::vector<float> other(x.size());
    if (!fold.other.empty()) load(rank, fold.other.part(from, n), other);
    const auto& earlier = fold.x_is_later ? other : x;
    const auto& later = fold.x_is_later ? x : other;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t row = (from + i) / fold.row;
      const float decay =
          fold.arrived ? arrived_decay(rank, *fold.arrived, row) : memories_[rank]->view(fold.decay)[row];
      if (decay == empty) return false;
      y[i] = decay * earlier[i] + later[i];
    }
    return true;
  }

  float arrived_decay(int rank, const PeerDecays& arrived, std::int64_t row) const {
    const int E = programs_[rank].packet_elements;
    const std::int64_t element = arrived.first + row;
    const auto packet = inboxes_[rank].begin() + (arrived.from.packet + element / E) * E;
    return packet[E - 1] == empty ? empty : packet[element % E];
  }

  void load(int rank, const Slice& slice, std::vector<float>& into) {
    const auto view = memories_[rank]->view(slice);
    std::copy(view.begin(), view.end(), into.begin());
  }
  void store(int rank, const Slice& slice, const std::vector<float>& from) {
    std::copy_n(from.begin(), slice.count, memories_[rank]->view(slice).begin());
  }

  std::vector<Schedule> schedules_;
  int threads_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<HostMemory>> memories_;
  std::vector<PeerProgram> programs_;
  std::vector<std::vector<float>> inboxes_;
  std::vector<Thread> threads_of_all_;
  std::vector<Progress> progress_;
};

std::vector<Schedule> schedules_of(const char* name, int ranks, int blocks = 1,
                                   const Shape& shape = {2, 8, 16, 4},
                                   Direction direction = Direction::forward) {
  return build_all(find_collective(name), shape, {.ranks = ranks, .blocks = blocks, .direction = direction});
}

PeerProgram program_of(const char* name, int rank, int ranks, int blocks = 1, bool merges = true) {
  const auto schedules = schedules_of(name, ranks, blocks);
  return compile_peer_program(schedules, rank, {.merges = merges});
}

TEST(PeerProgram, RightForEveryCollectiveInAnyOrderOfThreads) {
  int checked = 0;
  for (const Collective* collective : collectives())
    for (int ranks : {1, 2, 3, 4, 5, 8})
      for (const Shape& shape : {Shape{2, 5, 3, 4}, Shape{1, 8, 16, 3}, Shape{1, 4, 1, 2}, Shape{1, 1, 2, 1}})
        for (const PeerProgramOptions& options :
             {PeerProgramOptions{4, true}, PeerProgramOptions{4, false}, PeerProgramOptions{8, true}}) {
          const Direction direction = checked % 2 == 0 || collective->kind != Kind::exclusive_scan
                                          ? Direction::forward
                                          : Direction::reverse;
          auto schedules =
              build_all(*collective, shape, {.ranks = ranks, .blocks = 3, .direction = direction});
          if (!unsupported_by_peer(schedules).empty()) continue;
          const Subject subject{collective->kind, shape, ranks, direction, 7};
          ThoughtDevice device(std::move(schedules), options, 7, ++checked);
          for (int round = 0; round < 2; ++round) {
            write_inputs(device, subject);
            device.run();
            const Comparison comparison = compare(device, subject);
            ASSERT_EQ(comparison.wrong, 0)
                << collective->name << ", " << ranks << " ranks: " << comparison.first;
          }
        }
  EXPECT_GT(checked, 500);
}

TEST(PeerProgram, RightForEveryMethodWhateverTheStreamsDo) {
  int checked = 0;
  for (const SpMethod* method : sp_methods())
    for (Pass pass : {Pass::forward, Pass::both})
      for (Mode mode : {Mode::overlapped, Mode::exposed})
        for (int ranks : {1, 3, 4}) {
          Layer layer{.share = {10, 4, 4, 8, 8, GateKind::vector}, .pass = pass, .mode = mode, .groups = 2};
          if (method->attention == Attention::softmax) layer.share.gate = GateKind::none;
          if (method->unsupported && !method->unsupported(layer, ranks).empty()) continue;
          const auto schedules = build_all(*method, layer, ranks);
          if (!unsupported_by_peer(schedules).empty()) continue;
          const bool is_alone = method->name == "local";
          const LayerOracle oracle(method->attention, layer.share, ranks, is_alone, GateDraw::layer, 3);
          ThoughtDevice device(schedules, {}, 5, ++checked);
          write_layer(device, schedules, *method, oracle, layer.share.tokens);
          device.run();
          const Comparison comparison = compare_layer(device, schedules, *method, oracle, layer.share.tokens);
          EXPECT_EQ(comparison.wrong, 0) << method->name << ", " << ranks << " ranks: " << comparison.first;
        }
  EXPECT_GT(checked, 40);
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
  EXPECT_FALSE(compile_peer_program(tied, 0).has_barriers());
  EXPECT_TRUE(compile_peer_program(torn, 0).has_barriers());
}

TEST(PeerProgram, NothingIsReadBeforeItIsStored) {
  Schedule s(0, 1);
  const Slice ones = s.input("ones", 1), a = s.input("a", 8), b = s.output("b", 8), sum = s.output("sum", 8);
  s.copy(b, a);
  s.combine({{}, sum, 8}, {{}, a, 8}, {ones, b, 8});
  ThoughtDevice device({s}, {}, 3, 1);
  device.write(0, ones, std::vector<float>{1});
  device.write(0, a, std::vector<float>(8, 2));
  device.run();
  std::vector<float> got(8);
  device.read(got, 0, sum);
  EXPECT_EQ(got, std::vector<float>(8, 4));
}

TEST(PeerProgram, TwoBf16TravelAsOneWord) {
  Schedule zero(0, 2), one(1, 2);
  const Slice own = zero.input("own", 24, Dtype::bf16), into = one.output("into", 24, true, Dtype::bf16);
  zero.send(1, own.part(8, 16));
  one.recv(into.part(4, 16), 0);
  const std::vector<Schedule> schedules{zero, one};
  const PeerProgram program = compile_peer_program(schedules, 0);
  EXPECT_EQ(program.instructions[0].from, (Slice{0, 4, 8}));
  EXPECT_EQ(program.inbox_packets, 2);
  EXPECT_THAT(unsupported_by_peer(schedules, true).reason(), HasSubstr("is of bf16 already"));
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
  EXPECT_EQ(compile_peer_program(schedules, 1).instructions.size(), 4u);
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
      EXPECT_FALSE(program.has_barriers()) << name << ", rank " << rank;
    }
}

TEST(PeerProgram, SharedElementsOfLocalStepsMeetAtABarrier) {
  Schedule s(0, 1);
  const Slice own = s.input("own", 64), into = s.output("into", 64), half = s.scratch("half", 64);
  s.copy(half, own);
  s.copy(into.part(0, 62), half.part(2, 62));  // no thread owns the same elements in both
  s.copy(into.part(62, 2), half.part(0, 2));
  const std::vector<Schedule> schedules{s};
  const PeerProgram program = compile_peer_program(schedules, 0);
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
  const PeerProgram program = compile_peer_program(schedules, 0);
  ASSERT_EQ(program.instructions.size(), 2u);
  EXPECT_FALSE(program.instructions[1].barrier);
  EXPECT_EQ(program.instructions[1].column, 8);
}

TEST(PeerProgram, ReceivesComeInTheOrderInWhichOthersCanSend) {
  // Rank 0 records the later message first; waiting in the order of recording would never end.
  Schedule zero(0, 2), one(1, 2);
  const Slice last = zero.output("last", 4), first = zero.scratch("first", 4);
  const Slice own = one.input("own", 4), answer = one.scratch("answer", 4),
              question = one.scratch("question", 4);
  zero.recv(last, 1);
  zero.recv(first, 1);
  zero.send(1, first);
  one.recv(answer, 0);
  one.copy(question, answer);
  one.send(0, question);
  one.send(0, own);
  const std::vector<Schedule> schedules{zero, one};
  ThoughtDevice device(schedules, {}, 3, 1);
  device.write(1, own, std::vector<float>{1, 2, 3, 4});
  device.run();
  std::vector<float> got(4);
  device.read(got, 0, last);
  EXPECT_EQ(got, (std::vector<float>{1, 2, 3, 4}));
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
    compile_peer_program(schedules, 0);
    FAIL() << "a deadlock passed";
  } catch (const ScheduleError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0, step 0 (recv, program_test.cpp:"));
  }
}

TEST(PeerProgram, RefusesWhatItCannotRun) {
  Schedule s(0, 1);
  const Slice own = s.input("own", 8), into = s.scratch("into", 8);
  EXPECT_EQ(unsupported_by_peer(std::vector{s}).reason(), "");
  Schedule shifts = s, calls = s, halves = s;
  halves.copy(halves.scratch("b", 4, Dtype::bf16).part(1, 2), halves.scratch("c", 4, Dtype::bf16).part(0, 2));
  EXPECT_THAT(unsupported_by_peer(std::vector{halves}).reason(), HasSubstr("cuts a word in two"));
  shifts.copy(into.part(1, 7), into.part(0, 7));
  EXPECT_THAT(unsupported_by_peer(std::vector{shifts}).reason(), HasSubstr("shifts a slice within itself"));
  calls.native("mpi_exscan", 1, {into}, {own});
  EXPECT_THAT(unsupported_by_peer(std::vector{calls}).reason(), HasSubstr("mpi_exscan is no native of peer"));
}

}  // namespace
