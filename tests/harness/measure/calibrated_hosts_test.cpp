// SPDX-License-Identifier: Apache-2.0
// Several hosts whose links are known, since they are simulated: two classes of links are found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "harness/cases/collective_workload.hpp"
#include "harness/machine/placement.hpp"
#include "harness/measure/alpha_beta.hpp"
#include "harness/measure/calibration.hpp"
#include "harness/measure/prediction.hpp"
#include "harness/process/world.hpp"
#include "tests/collectives/simulator/uniform_machine.hpp"
#include "tests/harness/measure/known_machine.hpp"

namespace {

using namespace baton;
using testing::DoubleNear;
using testing::IsEmpty;

/// Three hosts of two: shared memory within, and one card of 10 Gbit/s for both ranks of a host.
Topology three_hosts() {
  Topology topology = uniform_machine(2,
                                      {.latency_seconds = 2e-7,
                                       .overhead_seconds = 4e-7,
                                       .bytes_per_second = 5e9,
                                       .moved_by = Transport::engine},
                                      3);
  topology.inter_node = {.latency_seconds = 5e-5,
                         .overhead_seconds = 4e-6,
                         .bytes_per_second = 1.2e9,
                         .node_bytes_per_second = 1.2e9};
  topology.device.copy = {.bytes_per_second = 20e9};
  topology.device.combine = {.flops_per_second = 1e15, .bytes_per_second = 20e9};
  return topology;
}

const Placement filled({0, 0, 1, 1, 2, 2});

class CalibratedHosts : public testing::Test {
 protected:
  const World world_{nullptr, nullptr};
  const Topology known_ = three_hosts();
  KnownMachine machine_{known_};
  Topology found_ = calibrate(machine_, world_.all(), filled, "a test");
};

TEST_F(CalibratedHosts, HaveALinkWithinAndALinkBetween) {
  EXPECT_EQ(found_.nodes, 3);
  EXPECT_EQ(found_.ranks_per_node, 2);
  EXPECT_EQ(found_.calibration.most_nodes, 3);
  for (const double bytes : {8.0, 5000.0, 1e6, 16e6}) {
    const double within = known_.intra_node.message_seconds(bytes);
    EXPECT_NEAR(found_.intra_node.message_seconds(bytes), within, 0.03 * within) << bytes;
    const double between = known_.inter_node.message_seconds(bytes);
    EXPECT_NEAR(found_.inter_node.message_seconds(bytes), between, 0.03 * between) << bytes;
  }
}

/// In a row of messages that wait for one another the latency would be taken for the port's time.
TEST_F(CalibratedHosts, TheLatencyBetweenHostsHoldsNoPort) {
  for (const double bytes : {8.0, 5000.0, 1e6, 16e6}) {
    const double busy = known_.inter_node.busy_seconds(bytes);
    EXPECT_NEAR(found_.inter_node.busy_seconds(bytes), busy, 0.1 * busy) << bytes;
  }
}

TEST_F(CalibratedHosts, RanksOfAHostShareItsCard) {
  for (const double bytes : {1e6, 16e6}) {
    const double card = known_.inter_node.node_seconds(bytes);
    EXPECT_NEAR(found_.inter_node.node_seconds(bytes), card, 0.1 * card) << bytes;
  }
}

TEST_F(CalibratedHosts, PredictsEveryCollective) {
  const Shape shape{.heads = 8, .d_k = 64, .d_v = 128, .tokens = 128};
  for (const Collective* collective : collectives())
    for (const int P : {4, 6}) {
      const ScheduleSource source =
          source_of(*collective, shape, {.ranks = P, .blocks = 4, .ranks_per_node = 2});
      if (!source.build(0).natives().empty()) continue;
      const double known = simulate(source, known_).seconds, found = simulate(source, found_).seconds;
      EXPECT_NEAR(found, known, 0.15 * known) << collective->name << " on " << P;
    }
}

TEST_F(CalibratedHosts, CanBeWrittenAndPredictWithinTheirNodes) {
  const Topology again = parse_topology(write_topology(found_), "itself");
  EXPECT_EQ(again.calibration.most_nodes, 3);
  const Shape shape{.heads = 2, .d_k = 32, .d_v = 64};
  const ScheduleSource source =
      source_of(find_collective("ring_scan"), shape, {.ranks = 6, .ranks_per_node = 2});
  EXPECT_THAT(extrapolates(source, simulate(source, again), again), IsEmpty());
  Topology unmeasured = again;
  unmeasured.calibration.most_nodes = 1;
  EXPECT_EQ(extrapolates(source, simulate(source, unmeasured), unmeasured),
            "between nodes, where nothing was measured");
}

TEST_F(CalibratedHosts, RanksThatAreDealtOutAreOneNode) {
  EXPECT_EQ(calibrate(machine_, world_.all(), Placement({0, 1, 2, 0, 1, 2}), "a test").nodes, 1);
}

TEST_F(CalibratedHosts, AlphaAndBetaAreMeasuredWithinAndBetween) {
  const AlphaBeta model = measure_alpha_beta(machine_, world_.all(), filled);
  EXPECT_NEAR(model.alpha_seconds, 6e-7, 1e-8);
  EXPECT_NEAR(model.beta, 5e9, 1e8);
  EXPECT_NEAR(model.between_alpha_seconds, 5.4e-5, 1e-6);
  EXPECT_NEAR(model.between_beta, 1.2e9, 1e7);
  const AlphaBeta alone = measure_alpha_beta(machine_, world_.all(), Placement({0, 1}));
  EXPECT_EQ(alone.alpha_seconds, alone.between_alpha_seconds) << "the only link that there is";
  EXPECT_EQ(measure_alpha_beta(machine_, world_.all(), Placement({0, 0})).between_beta, 0);
}

/// As three_hosts, with a rank on each.
Topology hosts_of_one() {
  Topology topology = three_hosts();
  topology.ranks_per_node = 1;
  return topology;
}

/// All rounds of every 11th schedule take as long as 5000 of the others.
class DisturbedMachine : public KnownMachine {
 public:
  using KnownMachine::KnownMachine;
  void prepare(std::vector<Schedule> schedules) override {
    ++prepared_;
    KnownMachine::prepare(std::move(schedules));
  }
  double run() override { return KnownMachine::run() * (prepared_ % 11 == 7 ? 5000 : 1); }

 private:
  int prepared_ = 0;
};

TEST(CalibratedHostsOfOne, HaveNoCardThatRanksShare) {
  const World world{nullptr, nullptr};
  DisturbedMachine machine{hosts_of_one()};
  const Topology found = calibrate(machine, world.all(), Placement({0, 1, 2}), "a test");
  EXPECT_TRUE(found.inter_node.node_measured.empty());
}

/// The core of a rank moves what it sends and what it receives, so that both take twice as long.
TEST(CalibratedHostsOfOne, OneWayIsNotChargedForBoth) {
  const World world{nullptr, nullptr};
  Topology known = hosts_of_one();
  known.inter_node.moved_by = Transport::engine;
  known.inter_node.node_bytes_per_second = 0;
  KnownMachine machine(known);
  const Topology found = calibrate(machine, world.all(), Placement({0, 1, 2}), "a test");
  for (const double bytes : {8.0, 5000.0, 1e6, 16e6}) {
    const double alone = known.inter_node.message_seconds(bytes);
    EXPECT_NEAR(found.inter_node.message_seconds(bytes), alone, 0.03 * alone) << bytes;
  }
}

Case case_of(const char* name, int ranks) {
  return {.workload = collective_workload(find_collective(name), {.heads = 2, .d_k = 32, .d_v = 64},
                                          Direction::forward),
          .backend = &find_backend("mpi"),
          .ranks = ranks,
          .ranks_per_node = 2};
}

/// 6 ranks in a chain on 3 hosts: 3 hops within hosts and 2 between, and a state through each port.
TEST(BoundOverHosts, CountsEachMessageWithItsLink) {
  const AlphaBeta model{
      .alpha_seconds = 1e-6, .beta = 1e10, .between_alpha_seconds = 5e-5, .between_beta = 1e9};
  const double state = 2 * 32 * 64 * 4;
  const auto bound = bound_over_hosts(case_of("ring_scan", 6), 1, model, filled);
  ASSERT_TRUE(bound.has_value());
  EXPECT_THAT(*bound, DoubleNear(3 * 1e-6 + 2 * 5e-5 + state / 1e9, 1e-9));
}

TEST(BoundOverHosts, IsThatOfAnyHostsLinkWherePlacesAreUneven) {
  EXPECT_EQ(bound_over_hosts(case_of("ring_scan", 6), 1, {}, Placement({0, 1, 0, 1, 0, 1})), std::nullopt);
  EXPECT_EQ(bound_over_hosts(case_of("ring_scan", 3), 1, {}, Placement({0, 0, 0})), std::nullopt);
}

}  // namespace
