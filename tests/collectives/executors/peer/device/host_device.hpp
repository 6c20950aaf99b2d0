// SPDX-License-Identifier: Apache-2.0
// The peer executor without GPUs: all ranks' programs in one process, by the interpreter of the
// GPUs, in every order that devices might choose.
#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "collectives/executors/host/memory.hpp"
#include "collectives/executors/peer/compiler/compile.hpp"
#include "collectives/executors/peer/device/instruction.hpp"
#include "collectives/executors/peer/device/interpreter.cuh"
#include "collectives/schedule/errors.hpp"
#include "tests/collectives/executors/peer/device/host_machine.hpp"

namespace baton {

struct HostDeviceOptions {
  ElementFormat format = ElementFormat::f32;
  bool merges = true;
  /// Of a kernel that has the device to itself; those that overlap compute steps have one block.
  unsigned blocks = 2;
  unsigned threads = 9;
};

class HostDevice : public Executor {
 public:
  HostDevice(std::vector<Schedule> schedules, const HostDeviceOptions& options, std::uint64_t seed)
      : schedules_(std::move(schedules)),
        options_(options),
        programs_(compile_peer_programs(schedules_, {packet_elements(options.format), options.merges})),
        ranks_(schedules_.size()) {
    Fibers::random().seed(seed);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) lay_out(static_cast<int>(rank));
  }

  std::vector<int> local_ranks() const override {
    std::vector<int> all(ranks_.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  Refusal unsupported(std::span<const Schedule>) const override { return {}; }
  void prepare(std::vector<Schedule>) override {}
  void write(int rank, const Slice& into, std::span<const float> from) override {
    std::copy(from.begin(), from.end(), ranks_[rank].memory->view(into).begin());
  }
  void read(std::span<float> into, int rank, const Slice& from) const override {
    const auto view = std::as_const(*ranks_[rank].memory).view(from);
    std::copy(view.begin(), view.end(), into.begin());
  }
  void synchronise() override {}
  double one_way_seconds(std::int64_t, int, int) override { return 0; }
  Dtype wire_dtype() const override {
    return options_.format == ElementFormat::bf16 ? Dtype::bf16 : Dtype::f32;
  }

  double run() override {
    run_rounds(1);
    return 0;
  }

  /// Runs rounds back to back: no rank waits for the end of another one's round. Throws
  /// ScheduleError when no thread can go on.
  void run_rounds(int rounds) {
    for (Rank& rank : ranks_) rank.rounds_left = rounds;
    for (int idle = 0; !all_done();) {
      const std::uint64_t before = Fibers::progress();
      sweep();
      idle = Fibers::progress() == before ? idle + 1 : 0;
      if (idle > 100) throw ScheduleError("deadlock");
    }
  }

  const PeerProgram& program(int rank) const { return programs_[rank]; }

 private:
  /// A rank's memory, and the progress of its two streams.
  struct Rank {
    std::unique_ptr<HostMemory> memory;
    std::vector<Packet> heap;
    std::vector<unsigned> counted_rounds;
    unsigned gave_up = 0;
    unsigned long long arrivals = 0;
    PeerFault fault;
    PeerContext context;
    int rounds_left = 0;
    std::vector<bool> done;  // by operation, of the round under way
    int exchange = -1;       // the operation of the kernel under way, -1 for none
    std::vector<PeerDeviceInstruction> instructions;
    KernelRole role;
    std::vector<HostBlock> blocks;
    std::vector<std::unique_ptr<Fiber>> fibers;
  };

  void lay_out(int index) {
    Rank& rank = ranks_[index];
    const PeerProgram& program = programs_[index];
    rank.memory = std::make_unique<HostMemory>(schedules_[index]);
    rank.counted_rounds.assign(options_.blocks, 0);
    rank.done.assign(program.operations.size(), true);
    PeerContext& context = rank.context;
    context.rank = index;
    context.ranks = static_cast<int>(ranks_.size());
    context.ctas = options_.blocks;
    context.generation_bytes = generation_bytes(program.inbox_packets);
    const std::size_t inbox = inbox_offset(context), bytes = heap_bytes(context);
    rank.heap.assign(bytes / sizeof(Packet), Packet{});
    std::fill(rank.heap.begin() + static_cast<std::ptrdiff_t>(inbox / sizeof(Packet)), rank.heap.end(),
              Packet{empty_word, empty_word, empty_word, empty_word});
    heaps_.push_back(reinterpret_cast<std::byte*>(rank.heap.data()));
    if (heaps_.size() < ranks_.size()) return;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      PeerContext& each = ranks_[i].context;
      each.heaps = heaps_.data();
      each.heap = heaps_[i];
      each.rounds = ranks_[i].counted_rounds.data();
      each.gave_up = &ranks_[i].gave_up;
      each.arrivals = &ranks_[i].arrivals;
      each.fault = &ranks_[i].fault;
      each.limit = 1;
    }
  }

  bool all_done() const {
    return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
      return rank.rounds_left == 0 && std::find(rank.done.begin(), rank.done.end(), false) == rank.done.end();
    });
  }

  /// Lets every stream and every thread go on, in random order.
  void sweep() {
    std::vector<Fiber*> ready;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      go_on(static_cast<int>(rank));
      for (const auto& fiber : ranks_[rank].fibers)
        if (!fiber->ended) ready.push_back(fiber.get());
    }
    std::shuffle(ready.begin(), ready.end(), Fibers::random());
    for (Fiber* fiber : ready) Fibers::resume(*fiber);
  }

  /// Ends the operations and rounds of a rank that have ended, and launches the next ones, each
  /// stream in order.
  void go_on(int index) {
    Rank& rank = ranks_[index];
    if (rank.exchange >= 0 &&
        std::all_of(rank.fibers.begin(), rank.fibers.end(), [](const auto& fiber) { return fiber->ended; })) {
      rank.fibers.clear();
      rank.done[rank.exchange] = true;
      rank.exchange = -1;
      ++Fibers::progress();
    }
    if (rank.rounds_left > 0 && std::find(rank.done.begin(), rank.done.end(), false) == rank.done.end()) {
      --rank.rounds_left;
      rank.done.assign(rank.done.size(), false);
      ++Fibers::progress();
    }
    launch_next(index, false);
    launch_next(index, true);
  }

  void launch_next(int index, bool computes) {
    Rank& rank = ranks_[index];
    const auto& operations = programs_[index].operations;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      if (rank.done[i] || operations[i].computes != computes) continue;
      const bool waits = operations[i].waits_for >= 0 && !rank.done[operations[i].waits_for];
      if (waits || (!computes && rank.exchange >= 0)) return;
      ++Fibers::progress();
      if (!computes) return launch_exchange(index, i);
      if (Fibers::random()() % 4 != 0) return;  // a compute step takes its time
      const Step& step = schedules_[index].steps()[operations[i].steps[0]];
      run_on_host(schedules_[index], step, rank.memory->operands(step));
      rank.done[i] = true;
      return;
    }
  }

  void launch_exchange(int index, std::size_t operation) {
    Rank& rank = ranks_[index];
    const PeerProgram& program = programs_[index];
    const unsigned blocks = PeerBlocks{.alone = options_.blocks}.of(program.operations[operation]);
    rank.exchange = static_cast<int>(operation);
    rank.role = role_of(program, operation);
    rank.instructions = resolve(
        program, program.operations[operation], rank.context, heaps_, std::int64_t{blocks} * options_.threads,
        [&](const Slice& slice) { return slice.empty() ? nullptr : rank.memory->view(slice).data(); });
    rank.fibers = Fibers::launch(blocks, options_.threads, rank.blocks, [this, &rank] {
      if (options_.format == ElementFormat::bf16)
        interpret<Bf16Format<Host>>(rank);
      else
        interpret<F32Format<Host>>(rank);
    });
  }

  template <class Format>
  static void interpret(const Rank& rank) {
    Interpreter<Host, Format, true> interpreter(rank.context, rank.role);
    for (std::size_t i = 0; i < rank.instructions.size(); ++i) interpreter.run(rank.instructions[i], i == 0);
  }

  std::vector<Schedule> schedules_;
  HostDeviceOptions options_;
  std::vector<PeerProgram> programs_;
  std::vector<Rank> ranks_;
  std::vector<std::byte*> heaps_;
};

}  // namespace baton
