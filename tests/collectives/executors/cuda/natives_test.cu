// SPDX-License-Identifier: Apache-2.0
// The registries of natives. Needs no GPU.
#include <gtest/gtest.h>

#include "collectives/executors/nccl/round.cuh"
#include "collectives/executors/peer/rounds.cuh"
#include "collectives/schedule/errors.hpp"

namespace {

using namespace baton;

TEST(Natives, ASecondOneOfANameIsRefused) {
  EXPECT_THROW(RegisteredNcclNative("nccl_all_gather", {}), UsageError);
  EXPECT_THROW(RegisteredPeerNative("all_scan_fused", {}), UsageError);
}

TEST(Natives, AreFoundByName) {
  EXPECT_NE(nccl_natives().find("nccl_all_gather_scan_window"), nullptr);
  EXPECT_NE(peer_natives().find("auto_scan"), nullptr);
  EXPECT_EQ(peer_natives().find("nccl_all_gather"), nullptr);
}

}  // namespace
