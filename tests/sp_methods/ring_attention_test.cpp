// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collectives/schedule/check.hpp"
#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;

constexpr std::int64_t tokens = 128, heads = 2, d_k = 64, d_v = 128;
constexpr std::int64_t keys_and_values = tokens * heads * (d_k + d_v), decays = heads * d_k;

Layer layer(Pass pass, Dtype dtype, GateKind gate) {
  return {.share = {tokens, heads, d_k, d_v, 64, gate}, .pass = pass, .dtype = dtype};
}

std::int64_t sent_bytes(const char* method, const Layer& layer, int ranks) {
  return check(method, build_all(find_method(method), layer, ranks)).busiest_sent_bytes();
}

TEST(RingAttention, KeysAndValuesTravelInTheTensorsTypeAndTheirGradientsInF32) {
  const Layer narrow = layer(Pass::backward, Dtype::bf16, GateKind::none);
  const Layer wide = layer(Pass::backward, Dtype::f32, GateKind::none);
  for (const char* method : {"ring_attention_softmax", "ring_attention_zigzag"}) {
    EXPECT_EQ(sent_bytes(method, narrow, 4), keys_and_values * (3 * 2 + 4 * 4));
    EXPECT_EQ(sent_bytes(method, wide, 4), keys_and_values * (3 * 4 + 4 * 4));
  }
  EXPECT_EQ(sent_bytes("ring_attention", narrow, 4), keys_and_values * (3 * 2 + 3 * 4));
}

TEST(RingAttention, DecaysTravelWithTheKeysInF32) {
  for (Dtype dtype : {Dtype::f32, Dtype::bf16})
    EXPECT_EQ(sent_bytes("ring_attention", layer(Pass::forward, dtype, GateKind::vector), 3),
              2 * (keys_and_values * bytes_of(dtype) + decays * 4));
}

/// What is summed up over ranks is of f32 until it is written.
TEST(RingAttention, SumsAreOfF32) {
  for (const char* method : {"ring_attention", "ring_attention_softmax"})
    for (const Schedule& s :
         build_all(find_method(method), layer(Pass::both, Dtype::bf16, GateKind::none), 3)) {
      int narrowed = 0;
      for (const Step& step : s.steps()) {
        if (step.verb != Verb::compute) continue;
        const std::string& name = s.kernels()[step.body].name;
        if (name == "add" || name == "narrow") narrowed += step.writes[0].dtype == Dtype::bf16;
        if (name == "merge_softmax" || name == "left_product_block") {
          EXPECT_EQ(step.writes[0].dtype, Dtype::f32);
        }
      }
      EXPECT_GE(narrowed, 1);
    }
}

TEST(RingAttention, OfBf16RefusesWidthsThatHaveNoKernel) {
  Layer odd = layer(Pass::forward, Dtype::bf16, GateKind::none);
  odd.share.d_k = 32;
  for (const char* method : {"ring_attention", "ring_attention_softmax", "ring_attention_zigzag"}) {
    EXPECT_EQ(find_method(method).refuses(odd, 2),
              "kernels of bf16 are for d_k and d_v of 64 and 128, not 32");
    odd.dtype = Dtype::f32;
    EXPECT_EQ(find_method(method).refuses(odd, 2), "");
    odd.dtype = Dtype::bf16;
  }
}

}  // namespace
