// SPDX-License-Identifier: Apache-2.0
// Every parameter that a device body would ignore is refused by name.
#include "sp_methods/kernels/device_limits.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "sp_methods/kernels/delta.hpp"
#include "sp_methods/kernels/gla_segments.hpp"
#include "sp_methods/kernels/low_rank.hpp"

namespace {

using namespace baton;

const LayerShape shape{.tokens = 256, .heads = 4, .d_k = 128, .d_v = 64, .chunk = 64};

template <class Contract>
std::string refused(const typename Contract::Parameters& p) {
  const std::string at_all = beyond_devices_at_all(p);
  return refusal_of_body<Contract>(at_all.empty() ? beyond_own_bodies<Contract>(p) : at_all).reason();
}

/// The reason against a contract's parameters `p` after a change.
template <class Contract>
std::string refused(typename Contract::Parameters p,
                    const std::function<void(typename Contract::Parameters&)>& change) {
  change(p);
  return refused<Contract>(p);
}

template <class Contract>
void expect_limits_of_layers(const typename Contract::Parameters& p) {
  using Parameters = typename Contract::Parameters;
  const auto with = [&](auto change) {
    return refused<Contract>(p, [&](Parameters& x) { change(x.shape); });
  };
  const std::string body = std::string("the device body of ") + Contract::name;
  EXPECT_EQ(refused<Contract>(p), "");
  for (const std::int64_t chunk : {1, 16, 32, 63, 65, 128, 256})
    EXPECT_EQ(with([&](LayerShape& s) { s.chunk = chunk; }),
              body + " works in chunks of 64 tokens, not in those of --chunk " + std::to_string(chunk));
  EXPECT_EQ(with([](LayerShape& s) { cut_at_starts(s, {7}, 0); }),
            body + " has no chunks of packed documents");
  EXPECT_EQ(with([](LayerShape& s) { s.latent = true; }), body + " is not for latent keys");
  EXPECT_EQ(with([](LayerShape& s) { s.kv_heads = 2; }),
            body + " is for as many heads of keys as of queries");
  EXPECT_EQ(with([](LayerShape& s) { s.qk_heads = 2; }),
            body + " is for as many heads of q and k as of values");
  for (const std::int64_t width : {16, 96, 256})
    EXPECT_EQ(with([&](LayerShape& s) { s.d_v = width; }),
              body + " is for bf16 tensors, d_k and d_v of 64 and 128");
  EXPECT_EQ(refused<Contract>(p, [](Parameters& x) { x.dtype = Dtype::f32; }),
            body + " is for bf16 tensors, d_k and d_v of 64 and 128");
}

TEST(DeviceLimits, NameWhatBodiesOfLayersDoNotCompute) {
  const Chunks chunks{shape, {}, Dtype::bf16};
  const Segments segments{shape, {}, 2, Dtype::bf16};
  expect_limits_of_layers<DeltaGradients>(chunks);
  expect_limits_of_layers<DeltaCorrect>(chunks);
  expect_limits_of_layers<LowRankOutput>(chunks);
  expect_limits_of_layers<ChunkStarts>(segments);
  expect_limits_of_layers<ScanSegments>(segments);
}

TEST(DeviceLimits, NameWhatBodiesOfLeftProductsDoNotCompute) {
  const LeftProductEdgeGradients::Parameters p{
      {.shape = shape, .block_tokens = 256, .dtype = Dtype::bf16, .has_accumulators = true}};
  expect_limits_of_layers<LeftProductEdgeGradients>(p);
  using Parameters = LeftProductEdgeGradients::Parameters;
  const std::string body = "the device body of left_product_edge_gradients ";
  EXPECT_EQ(refused<LeftProductEdgeGradients>(p, [](Parameters& x) { x.block_tokens = 128; }),
            body + "is for blocks of as many tokens as a rank has");
  EXPECT_EQ(refused<LeftProductEdgeGradients>(p, [](Parameters& x) { x.has_accumulators = false; }),
            body + "adds to f32 accumulators, and this call has none");
  EXPECT_EQ(refused<LeftProductEdgeGradients>(p, [](Parameters& x) { x.kernels.tile = 32; }),
            body + "has tiles of 64 tokens, not of 32");
}

TEST(DeviceLimits, NameWhatOurSoftmaxBodiesDoNotCompute) {
  const SoftmaxGradientsShape p{{.heads = 4, .d_k = 128, .d_v = 128, .dtype = Dtype::bf16}, {}, {}};
  using Parameters = SoftmaxGradientsShape;
  const std::string body = "the device body of softmax_block_gradients ";
  const auto with = [&](const std::function<void(Parameters&)>& change) {
    return refused<SoftmaxBlockGradients>(p, change);
  };
  EXPECT_EQ(with([](Parameters&) {}), "");
  EXPECT_EQ(with([](Parameters& x) { x.latent = true; }), body + "is not for latent keys");
  EXPECT_EQ(with([](Parameters& x) { x.kv_heads = 2; }), body + "is for as many heads of keys as of queries");
  EXPECT_EQ(with([](Parameters& x) { x.dq.dtype = Dtype::bf16; }),
            body + "adds its gradients to f32 memory alone");
  EXPECT_EQ(with([](Parameters& x) { x.keys.sets = true; }), body + "adds its gradients to f32 memory alone");
  EXPECT_EQ(refused<SoftmaxBlock>(p, [](SoftmaxShape& x) { x.out_dtype = Dtype::bf16; }),
            "the device body of softmax_block writes its output in f32 alone");
  EXPECT_EQ(refused<MergeSoftmax>(p, [](SoftmaxShape& x) { x.out_dtype = Dtype::bf16; }), "");
}

TEST(DeviceLimits, AreThoseOfCudnnWhereItIsTheBody) {
  const auto reason = [](std::int64_t width, SoftmaxBody body) {
    SoftmaxGradientsShape p{{.heads = 4, .d_k = width, .d_v = width, .dtype = Dtype::bf16}, {}, {}};
    p.body = body;
    return refused<SoftmaxBlockGradients>(p);
  };
  const std::string is_for = "the device body of softmax_block_gradients is for bf16 tensors, d_k and d_v ";
  for (const std::int64_t width : {8, 80, 96, 256}) {
    EXPECT_EQ(reason(width, SoftmaxBody::cudnn), "");
    EXPECT_EQ(reason(width, SoftmaxBody::own), is_for + "of 64 and 128");
  }
  for (const std::int64_t width : {4, 100, 264})
    EXPECT_EQ(reason(width, SoftmaxBody::cudnn), is_for + "of up to 256, multiples of 8");
}

TEST(DeviceLimits, NameWhatBodiesOfConvolutionsDoNotCompute) {
  const auto reason = [](std::int64_t width, std::int64_t taps) {
    return refused<Conv>({.tokens = 8, .width = width, .taps = taps, .dtype = Dtype::bf16, .count = 8});
  };
  for (const std::int64_t width : {8, 64, 128, 256})
    for (const std::int64_t taps : {1, 2, 3, 4}) EXPECT_EQ(reason(width, taps), "");
  EXPECT_EQ(reason(128, 5), "the device body of conv has up to 4 weights a channel, not 5");
  for (const std::int64_t width : {4, 96, 512})
    EXPECT_EQ(reason(width, 4),
              "the device body of conv is for heads of 8 to 256 channels, a power of two, not " +
                  std::to_string(width));
}

TEST(DeviceLimits, NameTypesThatElementwiseBodiesDoNotWrite) {
  EXPECT_EQ(refused<Narrow>({.count = 8}), "");
  EXPECT_EQ(refused<Narrow>({.count = 8, .dtype = Dtype::f32}),
            "the device body of narrow rounds to bf16 alone");
  EXPECT_EQ(refused<Add>({.count = 8}), "");
}

}  // namespace
