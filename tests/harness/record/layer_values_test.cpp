// SPDX-License-Identifier: Apache-2.0
// What a record says of a layer beside what every record says.
#include <gtest/gtest.h>

#include "tests/harness/record/made_case.hpp"

namespace {

using namespace baton;

Result::Json json_of(const char* method, const LayerShape& share, const Packing& packing = {}) {
  MadeCase made;
  made.bench_case.workload =
      operator_workload(find_method(method), Layer{.share = share}, {GateDraw::layer, packing});
  return made.json();
}

TEST(RecordOfALayer, HasTheHeadsOfKeysWhereTheyAreFewer) {
  const auto of_heads = [](std::int64_t kv_heads) {
    return json_of("ring_attention_softmax", {20, 4, 4, 6, 8, GateKind::none, kv_heads});
  };
  EXPECT_EQ(of_heads(2)["kv_heads"], 2);
  EXPECT_FALSE(of_heads(4).contains("kv_heads"));
  EXPECT_FALSE(of_heads(0).contains("kv_heads"));
}

TEST(RecordOfALayer, SaysThatKeysAreLatentWhereTheyAre) {
  for (const bool latent : {false, true})
    EXPECT_EQ(json_of("all_gather_kv", {20, 4, 6, 4, 8, GateKind::none, 1, latent}).contains("latent"),
              latent);
}

TEST(RecordOfALayer, SaysHowLongPackedDocumentsAreWhereThereAreSome) {
  const LayerShape share{20, 4, 6, 4, 8, GateKind::none};
  EXPECT_EQ(json_of("zeco", share, {.mean = 7})["packed"], 7);
  EXPECT_FALSE(json_of("zeco", share).contains("packed"));
}

TEST(RecordOfALayer, SaysHowTheSequenceLiesOnTheRanks) {
  for (const auto& [name, layout] : {std::pair{"zeco", "contiguous"},
                                     {"ring_attention_softmax", "contiguous"},
                                     {"usp", "contiguous"},
                                     {"ring_attention_zigzag", "zigzag"},
                                     {"zeco_zigzag", "zigzag"},
                                     {"ring_attention_striped", "other"},
                                     {"usp_zigzag", "other"},
                                     {"chunkwise_local", "other"}})
    EXPECT_EQ(json_of(name, {20, 4, 4, 6, 8, GateKind::none})["layout"], layout) << name;
}

TEST(RecordOfALayer, WithoutAnExchangeItHasTheModeOfItsWork) {
  const LayerShape share{20, 4, 4, 6, 8, GateKind::none};
  EXPECT_EQ(json_of("local", share)["mode"], "compute_only") << "the tokens of a rank alone";
  EXPECT_EQ(json_of("chunkwise_local", share)["mode"], "overlapped") << "the layer of all ranks";
}

}  // namespace
