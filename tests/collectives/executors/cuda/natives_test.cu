// SPDX-License-Identifier: Apache-2.0
// The registries of natives. Needs no GPU.
#include <gtest/gtest.h>

#include "collectives/collective.hpp"
#include "collectives/executors/nccl/round.cuh"
#include "collectives/executors/peer/rounds.cuh"

namespace {

using namespace baton;

TEST(Natives, ASecondOneOfANameIsRefused) {
  EXPECT_EXIT(RegisteredNcclNative("nccl_all_gather", {}), testing::ExitedWithCode(2), "nccl_all_gather");
  EXPECT_EXIT(RegisteredPeerNative("all_scan_fused", {}), testing::ExitedWithCode(2), "all_scan_fused");
}

TEST(Natives, AreFoundByName) {
  EXPECT_NE(nccl_natives().find("nccl_all_gather_scan_window"), nullptr);
  EXPECT_NE(peer_natives().find("auto_scan"), nullptr);
  EXPECT_NE(peer_natives().find("two_shot_fused"), nullptr);
  EXPECT_EQ(peer_natives().find("nccl_all_gather"), nullptr);
}

TEST(Natives, AutoScanTriesWhatIsRegistered) {
  const Collective& collective = find_collective("auto_scan");
  const auto asked = build_all(collective, {2, 8, 8, 1}, {.ranks = 4, .direction = Direction::reverse});
  const auto candidates = peer_natives().at("auto_scan").candidates(asked);
  ASSERT_EQ(candidates.size(), 2u);
  for (const auto& schedules : candidates) {
    ASSERT_EQ(schedules.size(), 4u);
    EXPECT_NE(only_peer_native(schedules[0]), nullptr);
    EXPECT_TRUE(schedules[0].natives()[0].reversed);
  }
}

}  // namespace
