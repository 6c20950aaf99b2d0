// SPDX-License-Identifier: Apache-2.0
// What Ulysses sends, keeps and refuses. That it computes the layer is in every_method_test.
#include <gtest/gtest.h>

#include <string>

#include "collectives/schedule/check.hpp"
#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;

constexpr std::int64_t tokens = 16, heads = 8, d_k = 64, d_v = 128;

Layer layer(Pass pass, std::int64_t kv_heads = heads, Dtype dtype = Dtype::bf16) {
  return {.share = {tokens, heads, d_k, d_v, 8, GateKind::none, kv_heads}, .pass = pass, .dtype = dtype};
}

Counts counts_of(const Layer& layer, int ranks, const char* method = "ulysses_softmax") {
  return check(method, build_all(find_method(method), layer, ranks));
}

/// Three quarters of q, k, v and o, and of their gradients, leave a rank of four.
TEST(Ulysses, SendsItsTensorsOnceAPassButForTheOwnPart) {
  const std::int64_t all = tokens * heads * (2 * d_k + 2 * d_v);
  for (const Dtype dtype : {Dtype::bf16, Dtype::f32})
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      const Counts counts = counts_of(layer(pass, heads, dtype), 4);
      for (const Traffic& rank : counts.ranks) EXPECT_EQ(rank.sent_bytes, all * 3 / 4 * bytes_of(dtype));
      EXPECT_EQ(counts.hops, 2);
    }
}

TEST(Ulysses, SendsGatesAlongWithKeys) {
  Layer gated = layer(Pass::forward);
  gated.share.gate = GateKind::vector;
  EXPECT_EQ(counts_of(gated, 4, "ulysses").busiest_sent_bytes(),
            tokens * heads * (3 * d_k + 2 * d_v) * 3 / 4 * 2);
}

TEST(Ulysses, SendsFewerHeadsOfKeysOnceAndRepeatsThoseThatRanksShare) {
  const std::int64_t queries = tokens * heads * (d_k + d_v), key_head = tokens * (d_k + d_v);
  EXPECT_EQ(counts_of(layer(Pass::forward, 4), 4).busiest_sent_bytes(), (queries + 4 * key_head) * 3 / 4 * 2);
  EXPECT_EQ(counts_of(layer(Pass::forward, 2), 4).busiest_sent_bytes(), (queries + 4 * key_head) * 3 / 4 * 2)
      << "two heads are sent as if they were four";
}

/// The busiest rank of softmax computes as many pairs as any other.
TEST(Ulysses, BalancesACausalMask) {
  const Counts counts = counts_of(layer(Pass::both), 4);
  for (const Traffic& rank : counts.ranks) EXPECT_EQ(rank.flops, counts.ranks[0].flops);
}

TEST(Ulysses, KeepsWhatItsBackwardPassNeedsAndGathersItOnce) {
  const Schedule s = build(find_method("ulysses_softmax"), layer(Pass::backward, 2), 0, 4);
  const std::int64_t whole = 4 * tokens;
  EXPECT_EQ(s.buffer("kept_q").count, whole * 2 * d_k);
  EXPECT_EQ(s.buffer("kept_k").count, whole * 1 * d_k);
  EXPECT_EQ(s.buffer("kept_v").dtype, Dtype::bf16);
  EXPECT_EQ(s.buffer("out").dtype, Dtype::f32);
  EXPECT_EQ(s.buffer("lse").count, whole * 2);
}

TEST(Ulysses, OnOneRankMovesAndPacksNothing) {
  for (const char* method : {"ulysses", "ulysses_softmax"})
    for (const Schedule& s : build_all(find_method(method), layer(Pass::both), 1))
      for (const Kernel& kernel : s.kernels()) {
        EXPECT_NE(kernel.name, "pack_heads");
        EXPECT_NE(kernel.name, "unpack_heads");
      }
}

TEST(Ulysses, RefusesHeadsThatRanksCannotShare) {
  const auto reason = [](const Layer& layer, int ranks) {
    return find_method("ulysses_softmax").unsupported(layer, ranks).reason();
  };
  EXPECT_EQ(reason(layer(Pass::forward), 3), "8 heads cannot be shared by 3 ranks");
  EXPECT_EQ(reason(layer(Pass::forward, 4), 8), "");
  Layer odd = layer(Pass::forward, 6);
  odd.share.heads = 12;
  EXPECT_EQ(reason(odd, 4), "6 heads of keys can neither be cut for nor repeated on 4 ranks");
  Layer batch = layer(Pass::forward);
  batch.share.batch = 4;
  EXPECT_EQ(reason(batch, 4), "2 heads cannot be shared by 4 ranks") << "each sequence has two";
}

}  // namespace
