// SPDX-License-Identifier: Apache-2.0
// What textbooks say of a uniform network, against the simulator: a message holds its two ports for
// o + n/B seconds and is there L later, local steps take no time. Drawn at random; BATON_SEED
// repeats a draw.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string>

#include "tests/collectives/simulator/uniform_machine.hpp"
#include "tests/held_out_seed.hpp"

namespace {

using namespace baton;

/// A link and a shape, and the seconds of messages on it.
struct Draw {
  double latency = 0, o = 0, rate = 1;
  Shape shape{.heads = 1};

  /// Seconds that `elements` hold a port.
  double busy(double elements) const { return o + elements * element_bytes / rate; }
  double state() const { return busy(static_cast<double>(shape.state_elements())); }
  double map() const { return busy(static_cast<double>(shape.map_elements())); }
};

class ClosedForms : public testing::Test {
 protected:
  static constexpr int trials = 200;

  int pick(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
  double magnitude(double low, double high) {
    return std::exp(std::uniform_real_distribution(std::log(low), std::log(high))(random_));
  }

  /// From shared memory to a slow network; every fourth without latency or overhead.
  Draw draw(std::int64_t rows_are_multiple_of = 1) {
    Draw drawn;
    drawn.latency = pick(0, 3) == 0 ? 0 : magnitude(1e-8, 1e-2);
    drawn.o = pick(0, 3) == 0 ? 0 : magnitude(1e-9, 1e-4);
    drawn.rate = magnitude(1e6, 1e12);
    drawn.shape.d_k = rows_are_multiple_of * pick(1, 40);
    drawn.shape.d_v = pick(1, 200);
    drawn.shape.tokens = pick(1, 50);
    return drawn;
  }

  void expect(const std::string& name, const Draw& draw, const Split& split, double seconds,
              bool streams = false) {
    Topology machine = uniform_machine(
        split.ranks,
        {.latency_seconds = draw.latency, .overhead_seconds = draw.o, .bytes_per_second = draw.rate});
    machine.streams = streams;
    const Simulation simulation = simulate(source_of(find_collective(name), draw.shape, split), machine);
    EXPECT_NEAR(simulation.seconds, seconds, 1e-9 * seconds)
        << name
        << fmt::format(": P {} K {} L {} o {} B {} rows {} d_v {}; BATON_SEED={}", split.ranks, split.blocks,
                       draw.latency, draw.o, draw.rate, draw.shape.rows(), draw.shape.d_v, held_out_seed());
  }

 private:
  std::mt19937_64 random_{held_out_seed()};
};

TEST_F(ClosedForms, AllScanIsAPipelineOfItsBlocks) {
  for (int trial = 0; trial < trials; ++trial) {
    const int P = pick(2, 40), K = pick(1, 32);
    const Draw d = draw(K);
    const double block = d.busy(static_cast<double>(d.shape.state_elements()) / K);
    for (Direction direction : {Direction::forward, Direction::reverse})
      expect("all_scan", d, {.ranks = P, .blocks = K, .direction = direction},
             (P - 1) * (d.latency + block) + (K - 1) * block);
  }
}

TEST_F(ClosedForms, RingScanHandsTheWholeStateOn) {
  for (int trial = 0; trial < trials; ++trial) {
    const int P = pick(2, 60);
    const Draw d = draw();
    expect("ring_scan", d, {.ranks = P}, (P - 1) * (d.latency + d.state()));
  }
}

TEST_F(ClosedForms, RingsMoveOneBlockAHop) {
  for (int trial = 0; trial < trials; ++trial) {
    const int P = pick(2, 40);
    const Draw d = draw();
    expect("ring_all_gather", d, {.ranks = P}, (P - 1) * (d.latency + d.map()));
    expect("ring_reduce_scatter", d, {.ranks = P}, (P - 1) * (d.latency + d.map()));
    const double key_values = d.busy(static_cast<double>(d.shape.key_value_elements()));
    expect("ring_exchange", d, {.ranks = P}, (P - 1) * (d.latency + key_values));
  }
}

TEST_F(ClosedForms, AllToAllsSendAllBlocksAtOnceOrInTurn) {
  for (int trial = 0; trial < trials; ++trial) {
    const int P = pick(2, 40);
    const Draw d = draw();
    const double block = d.busy(static_cast<double>(d.shape.block_elements(P)));
    expect("direct_all_to_all", d, {.ranks = P}, d.latency + (P - 1) * block);
    expect("pairwise_all_to_all", d, {.ranks = P}, (P - 1) * (d.latency + block));
    const double piece = d.busy(static_cast<double>(d.shape.piece_elements()));
    expect("direct_to_zigzag", d, {.ranks = P}, d.latency + std::min(P - 1, 2) * piece);
  }
}

TEST_F(ClosedForms, AStreamedChainSendsTheStateOnceWhateverItsBlocks) {
  for (int trial = 0; trial < trials; ++trial) {
    const int P = pick(2, 40), K = pick(1, 32);
    const Draw d = draw(K);
    const double bytes = static_cast<double>(d.shape.state_bytes()) / d.rate;
    expect("ring_scan", d, {.ranks = P}, (P - 1) * (d.latency + d.o) + bytes, true);
    expect("all_scan", d, {.ranks = P, .blocks = K}, (P - 1) * (d.latency + d.o) + (K - 1) * d.o + bytes,
           true);
  }
}

/// A port is held by one block after the other, or waits for the next one's first element.
TEST_F(ClosedForms, AStreamedRingForwardsWhileItReceives) {
  for (int trial = 0; trial < trials; ++trial) {
    const int P = pick(2, 40);
    const Draw d = draw();
    const double bytes = d.map() - d.o;
    expect("ring_all_gather", d, {.ranks = P},
           (P - 1) * (d.o + std::max(d.latency, bytes)) + std::min(d.latency, bytes), true);
    expect("direct_all_gather", d, {.ranks = P}, d.latency + (P - 1) * d.map(), true);
  }
}

TEST_F(ClosedForms, DirectMessagesEmptyOnePort) {
  for (int trial = 0; trial < trials; ++trial) {
    const int P = pick(2, 40);
    const Draw d = draw();
    for (const char* name : {"direct_all_gather", "direct_reduce_scatter"})
      expect(name, d, {.ranks = P}, d.latency + (P - 1) * d.map());
  }
}

/// Rounds of 1, 2, 4, ... blocks follow one another. Where P is no power of two, the last one sends
/// n = P - 2^q blocks, which are together after ceil(log2 n) rounds: it goes out behind the round
/// that is ready then, and holds up the next one by what it takes longer than that one's wait for
/// the wire.
double bruck_seconds(const Draw& d, int P) {
  const auto busy = [&](int blocks) { return d.busy(static_cast<double>(blocks * d.shape.map_elements())); };
  const int q = static_cast<int>(std::bit_width(static_cast<unsigned>(P))) - 1, n = P - (1 << q);
  double rounds = 0;
  for (int j = 0; j < q; ++j) rounds += d.latency + busy(1 << j);
  if (n == 0) return rounds;
  const int ready_after = static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1)));
  if (ready_after == q) return rounds + d.latency + busy(n);
  if (ready_after == q - 1) return rounds + busy(n);
  return rounds + std::max(0.0, busy(n) - d.latency);
}

TEST_F(ClosedForms, BruckIsASumOverRounds) {
  for (int trial = 0; trial < trials; ++trial) {
    const int P = pick(2, 70);
    const Draw d = draw();
    expect("bruck_all_gather", d, {.ranks = P}, bruck_seconds(d, P));
  }
  const Draw d = draw();
  for (int P : {2, 4, 8, 16, 32, 64})  // what is usually written of it
    expect("bruck_all_gather", d, {.ranks = P},
           std::log2(P) * (d.latency + d.o) + (P - 1) * d.map() - (P - 1) * d.o);
}

TEST_F(ClosedForms, RecursiveDoublingOfTwoAndFour) {
  for (int trial = 0; trial < trials; ++trial) {
    const Draw d = draw();
    expect("recursive_doubling", d, {.ranks = 2}, d.latency + d.state());
    // Rank 2 has a map and a state coming in at its port; rank 3 has what rank 1 sends on, behind
    // its own map.
    expect("recursive_doubling", d, {.ranks = 4},
           d.latency + d.state() + std::max(d.map(), d.latency + d.state()));
  }
}

/// Only the last rank waits for q messages one after the other, and these are states: they come by
/// ranks 0, 1, 3, 7, ..., which know the first rank's after j of them. Any other rank waits for at
/// most q-1, and at the ports of each for at most the 2q others that pass there. So the last is
/// last where a wire takes longer than all that.
TEST_F(ClosedForms, RecursiveDoublingIsItsRoundsWhereWiresAreLong) {
  for (int trial = 0; trial < trials; ++trial) {
    const int q = pick(1, 7);
    Draw d = draw();
    d.latency = q * (2 * q + 1) * d.map() * magnitude(1, 100);
    expect("recursive_doubling", d, {.ranks = 1 << q}, q * (d.latency + d.state()));
  }
}

TEST_F(ClosedForms, TwoShotOfTwoIsOneMessageAndOfThreeAChain) {
  for (int trial = 0; trial < trials; ++trial) {
    const int K = pick(1, 32);
    const Draw d = draw(K);
    const double block = d.busy(static_cast<double>(d.shape.state_elements()) / K);
    for (Direction direction : {Direction::forward, Direction::reverse}) {
      expect("two_shot", d, {.ranks = 2, .blocks = K, .direction = direction}, d.latency + d.state());
      expect("two_shot", d, {.ranks = 3, .blocks = K, .direction = direction},
             2 * (d.latency + block) + (K - 1) * block);
    }
  }
}

/// Where a message costs nothing but its bytes, no port can end before its own bytes have passed.
/// With many blocks none waits much longer.
TEST_F(ClosedForms, TwoShotInManyBlocksKeepsItsPortsBusy) {
  for (int P : {4, 5, 6, 8, 12}) {
    const Shape shape{.heads = 1, .d_k = 4 * (P * P - 2 * P - 2) * 16, .d_v = 64, .tokens = 1};
    const Split split{.ranks = P, .blocks = 16 * P};
    const Collective& two_shot = find_collective("two_shot");
    const Topology machine = uniform_machine(P, {.bytes_per_second = 1e9});
    const double seconds = simulate(source_of(two_shot, shape, split), machine).seconds;
    const double bytes = static_cast<double>(two_shot.claim(shape, split)->sent_bytes) / 1e9;
    EXPECT_GE(seconds, bytes * (1 - 1e-9)) << P;
    EXPECT_LE(seconds, 1.2 * bytes) << P;
  }
}

}  // namespace
