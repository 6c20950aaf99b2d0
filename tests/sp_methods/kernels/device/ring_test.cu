// SPDX-License-Identifier: Apache-2.0
// The device bodies of the ring methods and of Ulysses against the double-precision oracle, all
// ranks on one GPU.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "collectives/executors/cuda/ranks.cuh"
#include "collectives/schedule/check.hpp"
#include "harness/layers/verify.hpp"
#include "sp_methods/layer_oracle.hpp"
#include "sp_methods/sp_method.hpp"
#include "tests/collectives/executors/cuda/ranks_on_one_gpu.cuh"
#include "tests/held_out_seed.hpp"

namespace {

using namespace baton;

struct Problem {
  std::string method;
  LayerShape share;
  int ranks;
  GateDraw gates = GateDraw::layer;
  Pass pass = Pass::both;
  std::uint64_t seed = 1;
  SoftmaxBody kernel = SoftmaxBody::own;
  Mask mask = {};
  std::vector<std::int64_t> starts = {};

  std::string text() const {
    std::ostringstream text;
    text << method << ", " << ranks << " ranks, " << to_string(pass) << ", gates " << to_string(share.gate)
         << ' ' << to_string(gates) << ", " << share.tokens << " tokens, " << share.heads << " heads, d_k "
         << share.d_k << ", d_v " << share.d_v << ", seed " << seed << ", " << to_string(kernel) << ", mask "
         << to_string(mask) << ", " << starts.size() << " documents";
    return text.str();
  }
};

class RingDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (const Refusal refusal = lacks_gpus(1)) GTEST_SKIP() << refusal.reason();
  }

  static void expect_solved(const Problem& problem) {
    const SpMethod& method = find_method(problem.method);
    Layer layer{.share = problem.share, .pass = problem.pass, .dtype = Dtype::bf16};
    layer.kernels.softmax = problem.kernel;
    layer.mask = problem.mask;
    layer.starts = problem.starts;
    ASSERT_EQ(method.unsupported(layer, problem.ranks).reason(), "");
    const auto all = build_all(method, layer, problem.ranks);
    const std::span<const Schedule> schedules(all.data(), all.size());
    check(problem.method, schedules);
    RanksOnOneGpu gpu(problem.ranks);
    ASSERT_EQ(gpu.unsupported(schedules).reason(), "");
    gpu.prepare(build_all(method, layer, problem.ranks));
    const LayerOracle oracle({.attention = method.attention,
                              .share = problem.share,
                              .ranks = problem.ranks,
                              .gates = problem.gates,
                              .seed = problem.seed,
                              .dtype = Dtype::bf16,
                              .starts = problem.starts,
                              .mask = problem.mask});
    // The second round runs on memory that the first one has used.
    for (int round = 0; round < 2; ++round) {
      write_layer(gpu, schedules, method, oracle);
      gpu.run();
      const Comparison comparison = compare_layer(gpu, schedules, method, oracle);
      EXPECT_EQ(comparison.wrong, 0) << problem.text() << ": " << comparison.first;
      std::printf("%.2e  %s\n", comparison.relative_error, problem.text().c_str());
    }
  }
};

struct Size {
  LayerShape share;
  int ranks;
};

/// Tokens below, at and above the tiles of 64, 128 and 256, and d_k != d_v. The number of ranks is
/// bounded by the oracle, whose work is quadratic in the tokens. There are several heads because
/// the gradient of a scalar gate has one number a token and head, and the norm of few numbers may
/// be small by chance.
std::vector<Size> sizes() {
  std::vector<Size> all;
  for (const LayerShape& shape :
       {LayerShape{40, 8, 64, 64}, LayerShape{128, 6, 128, 128}, LayerShape{200, 4, 64, 128},
        LayerShape{330, 3, 128, 64}, LayerShape{520, 2, 128, 128}})
    for (int ranks : {1, 2, 3, 4})
      if (shape.tokens * ranks <= 1100) all.push_back({shape, ranks});
  return all;
}

TEST_F(RingDevice, SolvesSoftmax) {
  for (const char* method :
       {"ring_attention_softmax", "ring_attention_zigzag", "ring_attention_striped", "ring_attention_burst"})
    for (auto [share, ranks] : sizes()) {
      share.gate = GateKind::none;
      expect_solved({method, share, ranks});
    }
}

/// Every method of softmax attention that takes so many ranks, with blocks by cuDNN.
TEST_F(RingDevice, SolvesSoftmaxByCudnn) {
  if (const Refusal lacking = cudnn_library().lacking()) GTEST_SKIP() << lacking.reason();
  for (const SpMethod* method : sp_methods())
    for (const int ranks : {1, 2, 4})
      for (const Pass pass : {Pass::both, Pass::backward})
        for (const LayerShape& share : {LayerShape{200, 4, 64, 128, 64, GateKind::none},
                                        LayerShape{200, 4, 128, 128, 64, GateKind::none, 2},
                                        LayerShape{72, 4, 256, 256, 64, GateKind::none, 2},
                                        LayerShape{72, 4, 96, 80, 64, GateKind::none}}) {
          const Layer layer{.share = share, .pass = pass, .dtype = Dtype::bf16};
          if (method->attention != Attention::softmax || method->unsupported(layer, ranks)) continue;
          expect_solved({method->name, share, ranks, GateDraw::layer, pass, 1, SoftmaxBody::cudnn});
        }
}

/// Windows of one key, about a tile, over ranks and beyond the sequence, with and without documents
/// of no and one token, over ranks, and of whole tiles.
TEST_F(RingDevice, SolvesWindowsAndDocuments) {
  const std::vector<std::int64_t> lengths{5, 0, 1, 122, 64, 64, 300, 3}, none;
  for (const char* name :
       {"window_halo", "window_halo_zigzag", "ring_attention_softmax", "ring_attention_zigzag",
        "ring_attention_striped", "ring_attention_burst", "ulysses_softmax", "all_gather_kv"})
    for (const int ranks : {1, 3})
      for (const Mask& mask : {Mask{}, Mask{MaskKind::full}, Mask{.window = 1}, Mask{.window = 65},
                               Mask{.window = 250}, Mask{.window = 2000}})
        for (const auto& documents : {none, lengths}) {
          Problem problem{name, {200, 3, 128, 64, 64, GateKind::none}, ranks};
          problem.mask = mask;
          if (mask.kind == MaskKind::full) problem.mask.end = 200 * ranks;
          for (const std::int64_t start : starts_of(documents))
            if (start < 200 * ranks) problem.starts.push_back(start);
          const SpMethod& method = find_method(name);
          Layer layer{.share = problem.share, .pass = Pass::both, .dtype = Dtype::bf16};
          layer.mask = problem.mask;
          layer.starts = problem.starts;
          if (!method.unsupported(layer, ranks)) expect_solved(problem);
        }
}

TEST_F(RingDevice, AsksCudnnForNoWindow) {
  if (const Refusal lacking = cudnn_library().lacking()) GTEST_SKIP() << lacking.reason();
  Layer layer{.share = {128, 4, 64, 64, 64, GateKind::none}, .dtype = Dtype::bf16};
  layer.mask.window = 16;
  layer.kernels.softmax = SoftmaxBody::cudnn;
  EXPECT_EQ(RanksOnOneGpu(2).unsupported(build_all(find_method("window_halo"), layer, 2)).reason(),
            "cuDNN is asked for no window and no packed documents");
}

/// Until the kernels can, no executor on a device takes them.
TEST_F(RingDevice, RefusesFewerHeadsOfKeys) {
  Layer grouped{.share = {128, 4, 64, 64, 64, GateKind::none, 2}, .dtype = Dtype::bf16};
  const auto all = build_all(find_method("ring_attention_softmax"), grouped, 2);
  RanksOnOneGpu gpu(2);
  EXPECT_EQ(gpu.unsupported(all).reason(),
            "the device body of softmax_block is for as many heads of keys as of queries");
}

TEST_F(RingDevice, RefusesLatentKeys) {
  Layer latent{.share = {128, 4, 128, 64, 64, GateKind::none, 1, true}, .dtype = Dtype::bf16};
  const auto all = build_all(find_method("ring_attention_softmax"), latent, 2);
  RanksOnOneGpu gpu(2);
  EXPECT_EQ(gpu.unsupported(all).reason(), "the device body of softmax_block is not for latent keys");
}

TEST_F(RingDevice, SolvesLinearAttention) {
  for (auto [share, ranks] : sizes())
    for (GateKind gate : {GateKind::vector, GateKind::scalar, GateKind::none})
      for (GateDraw draw : {GateDraw::layer, GateDraw::strong}) {
        if (gate == GateKind::none && draw == GateDraw::strong) continue;
        share.gate = gate;
        expect_solved({"ring_attention", share, ranks, draw});
      }
}

/// Its exchange packs heads; its kernels are those of one rank.
TEST_F(RingDevice, SolvesUlysses) {
  for (auto [share, ranks] : sizes()) {
    share.heads = 2 * ranks;
    share.gate = GateKind::none;
    expect_solved({"ulysses_softmax", share, ranks});
    expect_solved({"ulysses_softmax", share, ranks, GateDraw::layer, Pass::backward});
  }
}

/// Over many tiles the terms of distant pairs must cancel in the gradients of gates.
TEST_F(RingDevice, SolvesLongSequences) {
  for (GateKind gate : {GateKind::vector, GateKind::scalar})
    expect_solved({"ring_attention", {3000, 1, 64, 64, 64, gate}, 2});
  expect_solved({"ring_attention_zigzag", {1000, 1, 64, 64, 64, GateKind::none}, 2});
}

TEST_F(RingDevice, SolvesEachPassAlone) {
  for (const char* method : {"ring_attention", "ring_attention_softmax", "ring_attention_zigzag",
                             "ring_attention_striped", "ring_attention_burst"})
    for (Pass pass : {Pass::forward, Pass::backward})
      expect_solved({method, {200, 2, 128, 128, 64, GateKind::none}, 3, GateDraw::layer, pass});
}

TEST_F(RingDevice, SolvesHeldOutProblems) {
  std::mt19937_64 random(held_out_seed());
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  for (const char* method : {"ring_attention", "ring_attention_softmax", "ring_attention_zigzag",
                             "ring_attention_striped", "ring_attention_burst"})
    for (int i = 0; i < 4; ++i) {
      const bool linear = find_method(method).attention == Attention::linear;
      const GateKind gate = linear ? GateKind{pick(0, 2)} : GateKind::none;
      const LayerShape share{2 * pick(10, 100), pick(4, 6), 64 * pick(1, 2), 64 * pick(1, 2), 64, gate};
      const GateDraw draw = pick(0, 1) == 0 ? GateDraw::layer : GateDraw::strong;
      expect_solved({method, share, pick(1, 5), draw, Pass::both, random()});
    }
}

}  // namespace
