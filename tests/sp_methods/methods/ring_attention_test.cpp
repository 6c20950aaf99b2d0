// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

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
  for (const char* method : {"ring_attention_softmax", "ring_attention_zigzag", "ring_attention_striped"}) {
    EXPECT_EQ(sent_bytes(method, narrow, 4), keys_and_values * (3 * 2 + 4 * 4));
    EXPECT_EQ(sent_bytes(method, wide, 4), keys_and_values * (3 * 4 + 4 * 4));
  }
  EXPECT_EQ(sent_bytes("ring_attention", narrow, 4), keys_and_values * (3 * 2 + 3 * 4));
}

TEST(RingAttention, OnlyTheHeadsOfKeysTravel) {
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    Layer grouped = layer(pass, Dtype::bf16, GateKind::none);
    grouped.share.heads *= 4;
    grouped.share.kv_heads = heads;
    for (const char* method : {"ring_attention_softmax", "ring_attention_zigzag"})
      EXPECT_EQ(sent_bytes(method, grouped, 4),
                sent_bytes(method, layer(pass, Dtype::bf16, GateKind::none), 4));
  }
}

/// Bytes of the backward pass of a layer with 12 heads of 64, of which some number are of keys.
std::int64_t backward_bytes(const char* method, std::int64_t kv_heads, Dtype dtype, int ranks) {
  const Layer counted{
      .share = {tokens, 12, 64, 64, 64, GateKind::none, kv_heads}, .pass = Pass::backward, .dtype = dtype};
  return sent_bytes(method, counted, ranks);
}

/// What travels with the keys is proportional to their heads; what travels with the queries does
/// not depend on them. Both are as many bytes at 3/4 of the heads where all elements have one size,
/// as in f32 or in the paper's 16 bits, and at 2/3 where tensors are bf16 and sums are f32. Beside
/// that a row of queries has two numbers, lse and delta, and gradients make a hop more.
/// Heads that keys cannot divide are counted only: no layer with them runs.
TEST(RingAttention, QueriesAndKeysAreAsManyBytesAtThreeQuartersOfTheHeads) {
  for (const int ranks : {2, 4, 8}) {
    const auto more = [&](std::int64_t kv_heads, Dtype dtype) {
      return backward_bytes("ring_attention_burst", kv_heads, dtype, ranks) -
             backward_bytes("ring_attention_zigzag", kv_heads, dtype, ranks);
    };
    const std::int64_t rows = tokens * 12, numbers = rows * 2 * 4 * (ranks - 1);
    EXPECT_EQ(more(9, Dtype::f32), numbers - rows * 64 * 2);
    EXPECT_EQ(more(8, Dtype::bf16), numbers - rows * 64 * 4 / 3);
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
      EXPECT_LT(more(12, dtype), 0) << "as many heads of keys: queries pay";
      EXPECT_GT(more(6, dtype), 0) << "grouped heads: they do not";
    }
  }
}

TEST(RingAttention, DecaysTravelWithTheKeysInF32) {
  for (Dtype dtype : {Dtype::f32, Dtype::bf16})
    EXPECT_EQ(sent_bytes("ring_attention", layer(Pass::forward, dtype, GateKind::vector), 3),
              2 * (keys_and_values * bytes_of(dtype) + decays * 4));
}

/// Bytes of all slices of a step. A slice that is read and written counts twice.
double named_bytes(const Step& step) {
  std::int64_t bytes = 0;
  for (const Slice& slice : step.reads) bytes += slice.bytes();
  for (const Slice& slice : step.writes) bytes += slice.bytes();
  return static_cast<double>(bytes);
}

/// Without gates the slices of these steps are exactly the memory that the kernels move.
TEST(RingAttention, KernelsCountTheBytesOfTheirOperandsOnce) {
  const std::set<std::string> exact = {
      "softmax_block", "merge_softmax",           "softmax_delta",
      "add",           "softmax_block_gradients", "narrow",
      "fill",          "left_product_own_block",  "left_product_own_gradients"};
  std::set<std::string> seen;
  for (const char* method : {"ring_attention", "ring_attention_zigzag", "ring_attention_burst"})
    for (Dtype dtype : {Dtype::f32, Dtype::bf16})
      for (const Schedule& s : build_all(find_method(method), layer(Pass::both, dtype, GateKind::none), 3))
        for (const Step& step : s.steps()) {
          if (step.verb != Verb::compute || !exact.contains(s.kernels()[step.body].name)) continue;
          const Kernel& kernel = s.kernels()[step.body];
          seen.insert(kernel.name);
          EXPECT_EQ(kernel.bytes, named_bytes(step)) << kernel.name << ", " << to_string(dtype);
        }
  EXPECT_EQ(seen, exact);
}

/// On one rank no gradients return: only the accumulators are added.
TEST(RingAttention, OfOneRankHasRestsToAddAtMost) {
  for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const auto schedules =
        build_all(find_method("ring_attention"), layer(Pass::backward, dtype, GateKind::none), 1);
    std::vector<Kernel> added;
    for (const Kernel& kernel : schedules[0].kernels())
      if (kernel.name == "left_product_home_gradients") added.push_back(kernel);
    ASSERT_EQ(added.size(), dtype == Dtype::bf16 ? 1u : 0u);
    if (added.empty()) continue;
    const double into = tokens * heads * (2 * d_k + d_v);  // dq, dk and dv
    EXPECT_EQ(added[0].flops, into) << "an addition an element of an accumulator";
    EXPECT_EQ(added[0].bytes, into * (2 + 2 + 4)) << "read, written, and the accumulator";
  }
}

/// Sums over ranks are f32 until they are written to a tensor.
TEST(RingAttention, SumsAreOfF32) {
  for (const char* method : {"ring_attention", "ring_attention_softmax", "ring_attention_burst"})
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
  for (const char* method : {"ring_attention", "ring_attention_softmax", "ring_attention_zigzag",
                             "ring_attention_striped", "ring_attention_burst"}) {
    EXPECT_EQ(find_method(method).unsupported(odd, 2),
              "kernels of bf16 are for d_k and d_v of 64 and 128, not 32");
    odd.dtype = Dtype::f32;
    EXPECT_EQ(find_method(method).unsupported(odd, 2).reason(), "");
    odd.dtype = Dtype::bf16;
  }
}

}  // namespace
