// SPDX-License-Identifier: Apache-2.0
// Every device body that a method records, over all parameters of its contract, writes what it says
// that it writes, and nothing else, or refuses the parameters by name.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "collectives/executors/cuda/ranks.cuh"
#include "sp_methods/kernels/softmax.hpp"
#include "tests/sp_methods/kernels/device/guards.cuh"

namespace baton::test {
namespace {

class DeviceGuards : public testing::Test {
 protected:
  void SetUp() override {
    if (const Refusal refusal = lacks_gpus(1)) GTEST_SKIP() << refusal.reason();
  }
};

/// Below, at and above chunks of 64 tokens, with d_k != d_v, widths that no body has, and heads
/// that share keys.
std::vector<LayerShape> shapes(Attention attention) {
  std::vector<LayerShape> all{
      {200, 4, 64, 128, 64}, {128, 2, 128, 64, 64}, {32, 2, 128, 128, 64}, {64, 2, 16, 64, 64}};
  if (attention == Attention::softmax) {
    all.push_back({200, 8, 128, 128, 64, GateKind::none, 2});
    all.push_back({66, 8, 128, 64, 64, GateKind::none, 1, true});
    return all;
  }
  for (const std::int64_t chunk : {16, 32, 63, 65, 128, 256}) all.push_back({300, 2, 128, 128, chunk});
  return all;
}

std::vector<SoftmaxBody> bodies(Attention attention) {
  if (attention == Attention::linear || cudnn_library().lacking()) return {SoftmaxBody::own};
  return {SoftmaxBody::own, SoftmaxBody::cudnn};
}

RecordedSteps all_steps() {
  RecordedSteps steps;
  for (const SpMethod* method : sp_methods())
    for (const LayerShape& shape : shapes(method->attention))
      for (const SoftmaxBody body : bodies(method->attention))
        for (Layer& layer : variants(*method, {.share = shape, .dtype = Dtype::bf16, .segmented = true})) {
          layer.kernels.softmax = body;
          for (const int ranks : {1, 2, 3, 4}) steps.add(*method, layer, ranks);
        }
  return steps;
}

TEST_F(DeviceGuards, EveryBodyWritesNothingBesideItsOperandsOrRefuses) {
  const RecordedSteps steps = all_steps();
  int refused = 0;
  for (const RecordedStep& step : steps.all()) {
    if (const Refusal refusal = unsupported_on_device(step.kernel)) {
      ++refused;
      continue;
    }
    for (const int value : {0x00, 0xbf, 0xc1})
      ASSERT_EQ(misdeed_on_device(step, static_cast<unsigned char>(value)), "");
  }
  const int all = static_cast<int>(steps.all().size());
  std::printf("%d kinds of calls, %d of them refused\n", all, refused);
  EXPECT_GT(all - refused, 200);
  EXPECT_GT(refused, 200);
}

/// The steps of a layer in chunks of `chunk` tokens.
RecordedSteps steps_of(const std::string& method, Rule rule, std::int64_t chunk) {
  RecordedSteps steps;
  Layer layer{.share = {256, 2, 128, 128, chunk},
              .rule = rule,
              .pass = Pass::both,
              .dtype = Dtype::bf16,
              .segmented = true};
  steps.add(find_method(method), layer, 2);
  return steps;
}

TEST_F(DeviceGuards, NoLayerRunsInChunksThatItDoesNotName) {
  for (const Rule rule : {Rule::decay, Rule::delta, Rule::low_rank})
    for (const std::int64_t chunk : {16, 32, 64, 128, 256}) {
      std::string reason;
      const RecordedSteps steps = steps_of("local", rule, chunk);
      for (const RecordedStep& step : steps.all())
        if (const Refusal refusal = unsupported_on_device(step.kernel)) reason = refusal.reason();
      const std::string named =
          "works in chunks of 64 tokens, not in those of --chunk " + std::to_string(chunk);
      if (chunk == 64)
        EXPECT_EQ(reason, "");
      else
        EXPECT_NE(reason.find(named), std::string::npos) << to_string(rule) << ": " << reason;
    }
}

TEST_F(DeviceGuards, FindWhatIsWrittenBesideAnOperand) {
  const RecordedStep step{"fill of a test", kernel_of<Fill>({.count = 8}), {{8}}, {}};
  RecordedStep short_of_one = step;
  short_of_one.writes[0].count = 7;
  EXPECT_EQ(misdeed_on_device(step, 0xbf), "");
  EXPECT_NE(misdeed_on_device(short_of_one, 0xbf).find("is overwritten"), std::string::npos);
}

}  // namespace
}  // namespace baton::test
