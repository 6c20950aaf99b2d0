// SPDX-License-Identifier: Apache-2.0
// What textbooks say of a uniform network, against the simulator: a message holds its two ports for
// o + n/B seconds and is there L later, local steps take no time. Drawn at random; BATON_SEED
// repeats a draw.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>

#include "tests/collectives/simulator/uniform_machine.hpp"

namespace {

using namespace baton;

std::uint64_t seed() {
  static const char* fixed = std::getenv("BATON_SEED");
  static const std::uint64_t drawn = fixed ? std::strtoull(fixed, nullptr, 10) : std::random_device{}();
  return drawn;
}

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
        {.latency_seconds = draw.latency, .overhead_seconds = draw.o, .bytes_a_second = draw.rate});
    machine.streams = streams;
    const Simulation simulation = simulate(source_of(find_collective(name), draw.shape, split), machine);
    EXPECT_NEAR(simulation.seconds, seconds, 1e-9 * seconds)
        << name
        << fmt::format(": P {} K {} L {} o {} B {} rows {} d_v {}; BATON_SEED={}", split.ranks, split.blocks,
                       draw.latency, draw.o, draw.rate, draw.shape.rows(), draw.shape.d_v, seed());
  }

 private:
  std::mt19937_64 random_{seed()};
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

/// Seconds that a slice's state and its decay hold a port.
struct SliceTimes {
  SliceTimes(const Draw& d, int P)
      : state(d.busy(static_cast<double>(d.shape.state_elements()) / P)),
        decay(d.busy(static_cast<double>(d.shape.rows()) / P)) {}
  double state, decay;
};

TEST_F(ClosedForms, TwoShotOfTwoAndThree) {
  for (int trial = 0; trial < trials; ++trial) {
    const Draw two = draw(2), three = draw(3);
    // Rank 0 owns a slice whose prefix it has from the start, and sends it behind the other one.
    expect("two_shot", two, {.ranks = 2}, two.latency + 2 * SliceTimes(two, 2).state);
    // Rank 1 sends two slices. Rank 0 can hand its slice out to rank 2 when the second of them is
    // there, rank 1 when rank 0's state is there and its own slices are gone. Rank 2 takes the one
    // behind the other.
    const SliceTimes t(three, 3);
    expect("two_shot", three, {.ranks = 3},
           three.latency + std::max(three.latency, t.state) + 3 * t.state + 2 * t.decay);
  }
}

/// Owner j has the maps before its own, a state and j-1 maps, after j states and j-1 decays, and
/// hands out what j ranks can have of them. What needs the map of rank j+1 waits for the P-1 slices
/// that this one sends: from then on, or when its port is free, owner j reaches the ranks behind,
/// the last rank after P-3-j others. The first to reach that one is the owner in the middle, and
/// then its port is never idle until all P-1 slices are in.
///
/// Stands on wires so long that all slices have left before one comes back, and on decays so short
/// that P-1 of them take less than a state.
double two_shot_seconds(const Draw& d, int P) {
  const SliceTimes t(d, P);
  const double first = P % 2 == 0 ? (1.5 * P - 3) * t.state + (0.5 * P - 1) * t.decay
                                  : (1.5 * P - 3.5) * t.state + (P - 1) * t.decay;
  return 2 * d.latency + first + (P - 1) * t.state;
}

TEST_F(ClosedForms, TwoShotWhereWiresAreLongAndDecaysAreShort) {
  for (int trial = 0; trial < trials; ++trial) {
    const int P = pick(4, 30);
    Draw d = draw(P);
    d.shape.d_v = 4 * P * pick(1, 4);
    d.o = 2 * static_cast<double>(d.shape.rows() / P * element_bytes) / d.rate * pick(0, 10) / 10;
    d.latency = 2 * P * (SliceTimes(d, P).state + SliceTimes(d, P).decay) * magnitude(1, 100);
    expect("two_shot", d, {.ranks = P}, two_shot_seconds(d, P));
  }
}

}  // namespace
