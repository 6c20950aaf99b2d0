// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/kept_maps.hpp"

#include <gtest/gtest.h>

#include "sp_methods/kernels/delta.hpp"
#include "sp_methods/kernels/low_rank.hpp"

namespace {

using namespace baton;

TEST(KeptMaps, HaveMatricesStatesAndWhatIsMadeOfEachChunk) {
  const Chunks p{{16384, 16, 128, 128, 64, GateKind::scalar}, {}, Dtype::bf16};
  EXPECT_EQ(map_segments(p), 8);
  const KeptMaps parts = DeltaMap::kept(p);
  EXPECT_EQ(parts.added, 16 * 8 * 128 * 128);
  EXPECT_EQ(parts.chunks, 2 * parts.added);
  EXPECT_EQ(parts.end - parts.chunks, 16 * 256 * 64 * 64 / 2);
  EXPECT_EQ(kept_gradients(p), 16 * 8 * 128 * 128);
  const Chunks by_channel{{16384, 16, 128, 128, 64, GateKind::vector}, {}, Dtype::bf16};
  EXPECT_EQ(DeltaMap::kept(by_channel).chunks, parts.chunks);
  EXPECT_EQ(DeltaMap::kept(by_channel).end - parts.chunks, 16 * 256 * (131 * 512 / 4)) << "65.5 KiB a chunk";
  EXPECT_EQ(LowRankMap::kept(by_channel).end - parts.chunks, 16 * 256 * (99856 / 4)) << "97.5 KiB a chunk";
}

TEST(KeptMaps, AreOfNoMoreSegmentsThanChunks) {
  EXPECT_EQ(map_segments({{65, 1, 64, 64, 64, GateKind::none}, {}, Dtype::bf16}), 2);
  EXPECT_EQ(map_segments({{1, 1, 64, 64, 64, GateKind::none}, {}, Dtype::bf16}), 1);
  EXPECT_EQ(map_segments({{16384, 1, 64, 64, 64, GateKind::none}, {}, Dtype::bf16}), 32);
  EXPECT_EQ(map_segments({{16384, 256, 64, 64, 64, GateKind::none}, {}, Dtype::bf16}), 1);
}

}  // namespace
