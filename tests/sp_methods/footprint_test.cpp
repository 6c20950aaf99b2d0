// SPDX-License-Identifier: Apache-2.0
// The memory of methods, counted from the buffers of their schedules, against closed forms.
#include <gtest/gtest.h>

#include "collectives/schedule/check.hpp"
#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;

constexpr std::int64_t tokens = 4096, heads = 2, d_k = 64, d_v = 128, chunk = 64;
constexpr std::int64_t f32 = 4;

constexpr std::int64_t keys = tokens * heads * d_k, values = tokens * heads * d_v, rows = tokens * heads;
constexpr std::int64_t state = heads * d_k * d_v, decay = heads * d_k;

Layer layer_of(Attention attention, Pass pass, Dtype dtype = Dtype::f32) {
  const GateKind gate = attention == Attention::linear ? GateKind::vector : GateKind::none;
  return {.share = {tokens, heads, d_k, d_v, chunk, gate}, .pass = pass, .dtype = dtype};
}

Footprint footprint_of(const char* name, Pass pass, int ranks, Dtype dtype = Dtype::f32) {
  const SpMethod& method = find_method(name);
  return largest_footprint(build_all(method, layer_of(method.attention, pass, dtype), ranks));
}

TEST(Footprint, TensorsAreTheInputsAndOutputsOfThePass) {
  const std::int64_t qkv = 2 * keys + values, o = values;
  for (const int ranks : {1, 4}) {
    EXPECT_EQ(footprint_of("all_gather_kv", Pass::forward, ranks).tensors, f32 * (qkv + o));
    EXPECT_EQ(footprint_of("all_gather_kv", Pass::both, ranks).tensors, f32 * 2 * (qkv + o));
    EXPECT_EQ(footprint_of("zeco", Pass::forward, ranks).tensors, f32 * (qkv + o + keys)) << "and gates";
    EXPECT_EQ(footprint_of("chunkwise_local_softmax", Pass::forward, ranks).tensors, ranks * f32 * (qkv + o))
        << "one rank has the tokens of all";
  }
}

TEST(Footprint, ABackwardPassAloneIsGivenWhatIsKept) {
  const std::int64_t tensors = f32 * (4 * keys + 2 * values + values);
  EXPECT_EQ(footprint_of("all_gather_kv", Pass::backward, 4).tensors, tensors + f32 * (values + rows));
}

TEST(Footprint, OfNarrowTensorsIsHalfAsLarge) {
  const Footprint wide = footprint_of("ring_attention_softmax", Pass::forward, 4);
  const Footprint narrow = footprint_of("ring_attention_softmax", Pass::forward, 4, Dtype::bf16);
  EXPECT_EQ(2 * narrow.tensors, wide.tensors);
  EXPECT_GT(2 * narrow.scratch, wide.scratch) << "results are summed in f32";
}

TEST(Footprint, AGatherHoldsTheKeysOfAllRanks) {
  for (const int ranks : {2, 4, 8}) {
    const std::int64_t kept = rows;  // lse; out is o itself
    EXPECT_EQ(footprint_of("all_gather_kv", Pass::forward, ranks).scratch,
              f32 * (ranks * (keys + values) + kept));
  }
}

TEST(Footprint, ARingHoldsTwoVisitingBlocksWhateverTheRanks) {
  for (const int ranks : {2, 4, 8}) {
    const std::int64_t partial = values + rows, kept = rows;
    EXPECT_EQ(footprint_of("ring_attention_softmax", Pass::forward, ranks).scratch,
              f32 * (2 * (keys + values) + partial + kept));
  }
}

TEST(Footprint, ZecoHoldsStatesAlone) {
  for (const int ranks : {3, 8}) {
    const std::int64_t chunks = tokens / chunk * (state + decay), map = state + decay, prefix = state,
                       carry = state;
    EXPECT_EQ(footprint_of("zeco", Pass::forward, ranks).scratch, f32 * (chunks + map + prefix + carry));
  }
}

TEST(Footprint, ARankAloneKeepsOneStateAStretchAndTheWorkOfOne) {
  constexpr std::int64_t stretch = 2048;
  const std::int64_t chunks = stretch / chunk * (state + decay), map = state + decay;
  for (const int ranks : {1, 2, 8}) {
    const std::int64_t kept = (ranks * tokens / stretch - 1) * state;
    EXPECT_EQ(footprint_of("chunkwise_local", Pass::forward, ranks).scratch, f32 * (kept + chunks + map));
    // Backward: chunks of states and of their gradients, the map of each, and the carried gradient.
    EXPECT_EQ(footprint_of("chunkwise_local", Pass::both, ranks).scratch,
              f32 * (kept + chunks + map + 2 * chunks + 2 * map + state));
    EXPECT_EQ(footprint_of("chunkwise_local_softmax", Pass::forward, ranks).scratch, f32 * ranks * rows);
    EXPECT_EQ(footprint_of("chunkwise_local_softmax", Pass::both, ranks).scratch,
              f32 * (ranks * rows + stretch * heads));
  }
}

}  // namespace
