// SPDX-License-Identifier: Apache-2.0
// The kernel of two_shot_fused, run on the host for any number of ranks, with threads in every
// order that devices might choose.
#include "collectives/executors/peer/device/slices.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "collectives/slice_owners.hpp"
#include "tests/collectives/executors/peer/device/host_machine.hpp"

namespace {

using namespace baton;

using Kernel = void (*)(const PeerContext&, const Slices&, const KernelRole&);

struct Scan {
  int ranks;
  unsigned rows, row;
  bool reversed;
  /// Elements in a packet.
  int elements;
};

/// Contributions that bf16 holds too, and whose order matters.
float state_of(int place, unsigned i) { return static_cast<float>((place * 7 + i * 5) % 3) - 1; }
float decay_of(int place, unsigned row) { return static_cast<float>((place * 5 + row * 3) % 4 % 3) - 1; }

/// All ranks of a scan, in memory of one process.
class Ranks {
 public:
  Ranks(const Scan& scan, Kernel kernel) : scan_(scan), kernel_(kernel), all_(scan.ranks) {
    for (int at = 0; at < scan.ranks; ++at) heaps_.push_back(lay_out(at));
    for (int at = 0; at < scan.ranks; ++at) {
      Rank& rank = all_[at];
      rank.context.heaps = heaps_.data();
      const auto inbox = [&](int other) {
        return heaps_[home(other)] + inbox_offset(all_[home(other)].context);
      };
      rank.slices = cut(home(at), inbox);
      rank.slices.decay = rank.decay.data(), rank.slices.state = rank.state.data();
      rank.slices.into = rank.into.data();
      rank.role = role_of(rank.slices);
    }
  }

  /// Runs rounds back to back. Throws ScheduleError when no thread can go on.
  void run(int rounds) {
    for (Rank& rank : all_) rank.rounds_left = rounds;
    for (int idle = 0; !ended(); ++idle) {
      const std::uint64_t before = Fibers::progress();
      sweep();
      if (Fibers::progress() != before) idle = 0;
      if (idle > 100) throw ScheduleError("deadlock");
    }
  }

  /// Elements of all results that differ from a serial fold.
  int wrong() const {
    int count = 0;
    std::vector<float> prefix(std::size_t{scan_.rows} * scan_.row, untouched);
    for (int place = 0; place < scan_.ranks; ++place) {
      for (unsigned i = 0; i < prefix.size(); ++i) {
        count += all_[home(place)].into[i] != prefix[i];
        const float before = place == 0 ? 0 : prefix[i];
        prefix[i] = decay_of(place, i / scan_.row) * before + state_of(place, i);
      }
    }
    return count;
  }

 private:
  static constexpr float untouched = 77;
  static constexpr unsigned blocks = 2, threads = 16;

  struct Rank {
    std::vector<float> decay, state, into;
    std::vector<Packet> heap;
    std::vector<unsigned> counted_rounds;
    unsigned gave_up = 0;
    unsigned long long arrivals = 0;
    PeerFault fault;
    PeerContext context;
    Slices slices{};
    KernelRole role;
    int rounds_left = 0;
    std::vector<HostBlock> blocks;
    std::vector<std::unique_ptr<Fiber>> fibers;
  };

  /// The rank at a place in scan order, and the place of a rank.
  int home(int at) const { return scan_.reversed ? scan_.ranks - 1 - at : at; }

  template <class Inbox>
  Slices cut(int place, const Inbox& inbox) const {
    const auto owners = SliceOwners::of_all(scan_.rows, scan_.ranks, 1);
    return cut_slices(
        scan_.row, scan_.ranks, place, scan_.reversed, scan_.elements,
        [&](int at) { return owners.first_row(scan_.rows, at); }, inbox);
  }

  std::byte* lay_out(int index) {
    Rank& rank = all_[index];
    const unsigned count = scan_.rows * scan_.row;
    for (unsigned i = 0; i < scan_.rows; ++i) rank.decay.push_back(decay_of(home(index), i));
    for (unsigned i = 0; i < count; ++i) rank.state.push_back(state_of(home(index), i));
    rank.into.assign(count, untouched);
    rank.counted_rounds.assign(blocks, 0);
    PeerContext& context = rank.context;
    context.rank = index, context.ranks = scan_.ranks, context.ctas = blocks;
    context.generation_bytes = generation_bytes(inbox_packets(cut(0, [](int) { return nullptr; })));
    context.rounds = rank.counted_rounds.data();
    context.gave_up = &rank.gave_up, context.arrivals = &rank.arrivals, context.fault = &rank.fault;
    context.limit = 1;
    const std::size_t inbox = inbox_offset(context) / sizeof(Packet);
    rank.heap.assign(heap_bytes(context) / sizeof(Packet), Packet{});
    std::fill(rank.heap.begin() + static_cast<std::ptrdiff_t>(inbox), rank.heap.end(),
              Packet{empty_word, empty_word, empty_word, empty_word});
    context.heap = reinterpret_cast<std::byte*>(rank.heap.data());
    return context.heap;
  }

  bool ended() const {
    return std::all_of(all_.begin(), all_.end(),
                       [](const Rank& rank) { return rank.rounds_left == 0 && rank.fibers.empty(); });
  }

  /// Lets every thread go on, in random order; a rank begins its next round when all of its have
  /// ended.
  void sweep() {
    std::vector<Fiber*> ready;
    for (Rank& rank : all_) {
      if (std::all_of(rank.fibers.begin(), rank.fibers.end(), [](const auto& fiber) { return fiber->ended; }))
        rank.fibers.clear();
      if (rank.fibers.empty() && rank.rounds_left > 0) {
        --rank.rounds_left;
        ++Fibers::progress();
        rank.fibers = Fibers::launch(blocks, threads, rank.blocks,
                                     [this, &rank] { kernel_(rank.context, rank.slices, rank.role); });
      }
      for (const auto& fiber : rank.fibers)
        if (!fiber->ended) ready.push_back(fiber.get());
    }
    std::shuffle(ready.begin(), ready.end(), Fibers::random());
    for (Fiber* fiber : ready) Fibers::resume(*fiber);
  }

  Scan scan_;
  Kernel kernel_;
  std::vector<Rank> all_;
  std::vector<std::byte*> heaps_;
};

template <template <class> class Format, bool aligned>
Kernel kernel_of(int batch) {
  if (batch == 1) return run_slices<Host, Format<Host>, aligned, 1>;
  return batch == 3 ? run_slices<Host, Format<Host>, aligned, 3> : run_slices<Host, Format<Host>, aligned, 7>;
}

void expect_right(const Scan& scan, Kernel kernel) {
  Fibers::random().seed(scan.ranks * 100 + scan.rows);
  Ranks all(scan, kernel);
  all.run(4);  // more than an inbox has generations
  EXPECT_EQ(all.wrong(), 0) << scan.ranks << " ranks, " << scan.rows << " rows of " << scan.row
                            << (scan.reversed ? ", reverse" : "");
}

TEST(Slices, RightForAnyNumberOfRanksAndRows) {
  for (int ranks : {1, 2, 3, 4, 5, 8, 9})
    for (unsigned rows : {1u, 5u, 43u})
      for (bool reversed : {false, true})
        for (int batch : {1, 3, 7}) {
          expect_right({ranks, rows, 4, reversed, 4}, kernel_of<F32Format, true>(batch));
          expect_right({ranks, rows, 16, reversed, 8}, kernel_of<Bf16Format, true>(batch));
          expect_right({ranks, rows, 3, reversed, 4}, kernel_of<F32Format, false>(batch));
          expect_right({ranks, rows, 1, reversed, 8}, kernel_of<Bf16Format, false>(batch));
        }
}

TEST(Slices, ThreadsHaveManyPackets) {
  for (int ranks : {2, 3, 4, 8}) expect_right({ranks, 97, 32, false, 4}, kernel_of<F32Format, true>(3));
}

}  // namespace
