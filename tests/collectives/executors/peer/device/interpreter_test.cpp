// SPDX-License-Identifier: Apache-2.0
// The interpreter of peer programs, run on the host in every order of threads that a device might
// choose.
#include "collectives/executors/peer/device/interpreter.cuh"

#include <gtest/gtest.h>

#include <string>

#include "collectives/collective.hpp"
#include "harness/cases/verify.hpp"
#include "harness/layers/verify.hpp"
#include "sp_methods/layer_oracle.hpp"
#include "sp_methods/sp_method.hpp"
#include "tests/collectives/executors/peer/device/host_device.hpp"

namespace {

using namespace baton;

/// The first wrong element after two rounds, empty if there is none.
std::string first_wrong_of_two_rounds(HostDevice& device, const Subject& subject) {
  for (int round = 0; round < 2; ++round) {
    write_inputs(device, subject);
    device.run();
    const Comparison comparison = compare(device, subject);
    if (comparison.wrong != 0) return comparison.first;
  }
  return {};
}

TEST(PeerProgram, RightForEveryCollectiveInAnyOrderOfThreads) {
  int checked = 0;
  for (const Collective* collective : collectives())
    for (int ranks : {1, 2, 3, 4, 5, 8})
      for (const Shape& shape : {Shape{2, 5, 3, 4}, Shape{1, 8, 16, 3}, Shape{1, 4, 1, 2}, Shape{1, 1, 2, 1}})
        for (const HostDeviceOptions& options :
             {HostDeviceOptions{}, HostDeviceOptions{.merges = false, .blocks = 1},
              HostDeviceOptions{.format = ElementFormat::bf16, .blocks = 3, .threads = 8}}) {
          const Direction direction = checked % 2 == 0 || collective->kind != Kind::exclusive_scan
                                          ? Direction::forward
                                          : Direction::reverse;
          auto schedules =
              build_all(*collective, shape, {.ranks = ranks, .blocks = 3, .direction = direction});
          if (unsupported_by_peer(schedules)) continue;
          HostDevice device(std::move(schedules), options, ++checked);
          const Subject subject{collective->kind, shape, ranks, direction, 7};
          ASSERT_EQ(first_wrong_of_two_rounds(device, subject), "")
              << collective->name << ", " << ranks << " ranks";
        }
  EXPECT_GT(checked, 500);
}

TEST(PeerProgram, RightForMapsOfEveryKind) {
  int checked = 0;
  for (const Collective* collective : collectives())
    for (int ranks : {3, 6})
      for (MapKind map : {MapKind::scalar, MapKind::affine})
        for (const Shape& shape : {Shape{3, 5, 4, 1, map}, Shape{6, 6, 3, 1, map}})
          for (const Direction direction : {Direction::forward, Direction::reverse})
            for (const HostDeviceOptions& options :
                 {HostDeviceOptions{}, HostDeviceOptions{.merges = false, .blocks = 3},
                  HostDeviceOptions{.format = ElementFormat::bf16, .blocks = 3, .threads = 8}}) {
              if (collective->kind != Kind::exclusive_scan) continue;
              auto schedules =
                  build_all(*collective, shape, {.ranks = ranks, .blocks = 4, .direction = direction});
              if (unsupported_by_peer(schedules)) continue;
              HostDevice device(std::move(schedules), options, ++checked);
              const Subject subject{collective->kind, shape, ranks, direction, 7};
              ASSERT_EQ(first_wrong_of_two_rounds(device, subject), "")
                  << collective->name << ", " << ranks << " ranks";
            }
  EXPECT_GT(checked, 300);
}

/// Blocks that cut heads; tiles of several heads; rows of 64, of which GPUs make tiles for tensor
/// cores.
TEST(PeerProgram, RightForMatricesOfManyTiles) {
  for (const char* name : {"all_scan", "all_gather_scan_trimmed", "recursive_doubling"})
    for (const Shape& shape : {Shape{2, 64, 96, 1, MapKind::affine}, Shape{90, 6, 7, 1, MapKind::affine}})
      for (int blocks : {1, 5}) {
        const HostDeviceOptions options{.blocks = 3, .threads = 32};
        HostDevice device(build_all(find_collective(name), shape, {.ranks = 4, .blocks = blocks}), options,
                          1);
        const Subject subject{Kind::exclusive_scan, shape, 4, Direction::forward, 7};
        ASSERT_EQ(first_wrong_of_two_rounds(device, subject), "") << name;
      }
}

TEST(PeerProgram, RightForEveryMethodWhateverTheStreamsDo) {
  int checked = 0;
  for (const SpMethod* method : sp_methods())
    for (Pass pass : {Pass::forward, Pass::both})
      for (Mode mode : {Mode::overlapped, Mode::exposed})
        for (int ranks : {1, 3, 4}) {
          Layer layer{.share = {10, 4, 4, 8, 8, GateKind::vector}, .pass = pass, .mode = mode, .groups = 2};
          if (method->attention == Attention::softmax) layer.share.gate = GateKind::none;
          if (method->unsupported && method->unsupported(layer, ranks)) continue;
          const auto schedules = build_all(*method, layer, ranks);
          if (unsupported_by_peer(schedules)) continue;
          const bool is_alone = method->sequence == Sequence::own;
          const LayerOracle oracle({method->attention, layer.share, ranks, is_alone, GateDraw::mixed, 3});
          HostDevice device(schedules, {.blocks = 2, .threads = 8}, ++checked);
          write_layer(device, schedules, *method, oracle);
          device.run();
          const Comparison comparison = compare_layer(device, schedules, *method, oracle);
          EXPECT_EQ(comparison.wrong, 0) << method->name << ", " << ranks << " ranks: " << comparison.first;
        }
  EXPECT_GT(checked, 40);
}

TEST(PeerProgram, NothingIsReadBeforeItIsStored) {
  Schedule s(0, 1);
  const Slice ones = s.input("ones", 1), a = s.input("a", 8), b = s.output("b", 8), sum = s.output("sum", 8);
  s.copy(b, a);
  s.combine({{}, sum, 8}, {{}, a, 8}, {ones, b, 8});
  HostDevice device({s}, {}, 1);
  device.write(0, ones, std::vector<float>{1});
  device.write(0, a, std::vector<float>(8, 2));
  device.run();
  std::vector<float> got(8);
  device.read(got, 0, sum);
  EXPECT_EQ(got, std::vector<float>(8, 4));
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
  HostDevice device(schedules, {}, 1);
  device.write(1, own, std::vector<float>{1, 2, 3, 4});
  device.run();
  std::vector<float> got(4);
  device.read(got, 0, last);
  EXPECT_EQ(got, (std::vector<float>{1, 2, 3, 4}));
}

TEST(PeerInterpreter, RanksRunAheadOfOneAnotherByWholeRounds) {
  for (const char* name : {"all_scan", "two_shot", "ring_scan"})
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const Shape shape{1, 8, 16, 3};
      HostDevice device(build_all(find_collective(name), shape, {.ranks = 4, .blocks = 3}), {}, seed);
      const Subject subject{Kind::exclusive_scan, shape, 4, Direction::forward, seed};
      write_inputs(device, subject);
      device.run_rounds(20);
      const Comparison comparison = compare(device, subject);
      ASSERT_EQ(comparison.wrong, 0) << name << ": " << comparison.first;
    }
}

}  // namespace
