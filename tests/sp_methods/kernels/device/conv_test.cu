// SPDX-License-Identifier: Apache-2.0
// The device bodies of the convolution against its host bodies: all widths and numbers of weights,
// runs shorter and longer than a strip, with and without a halo, and rows of it alone.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "collectives/executors/cuda/ranks.cuh"
#include "sp_methods/kernels/conv.hpp"
#include "tests/sp_methods/kernels/device/step.cuh"

namespace {

using namespace baton;

constexpr double tolerance = 3e-3;  // of results in bf16

class ConvDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (const Refusal refusal = lacks_gpus(1)) GTEST_SKIP() << refusal.reason();
  }
};

void expect_right(const DeviceStep& step) {
  ASSERT_EQ(step.unsupported().reason(), "");
  const auto expected = step.on_host(), got = step.on_device();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].empty()) continue;
    EXPECT_LE(error_of(got[i], expected[i]), tolerance) << step.kernel().name << ", result " << i;
  }
  EXPECT_EQ(step.on_device(), got) << step.kernel().name;
}

/// Compares the four kernels on the rows of `p` of a run.
void expect_all_right(const ConvShape& p, bool has_halo) {
  const std::int64_t run = p.tokens * p.row(), rows = p.count * p.row(), w = p.channels() * p.weights();
  const std::int64_t halo = has_halo ? p.before() * p.row() : 0;
  const auto of_f32 = [](std::int64_t count) { return StepOperand{count, Dtype::f32}; };
  if (p.first >= 0) {
    expect_right({kernel_of<Conv>(p), {{rows}}, {{run}, {halo}, {w}}});
    expect_right({kernel_of<ConvActivationGradients>(p), {of_f32(rows)}, {{run}, {halo}, {w}, {rows}}});
  }
  const bool is_halo = p.first < 0;
  expect_right({kernel_of<ConvInputGradients>(p),
                {{is_halo ? 0 : rows}, of_f32(is_halo ? rows : 0)},
                {of_f32(run), {w}, of_f32(is_halo ? 0 : rows)}});
  if (is_halo) return;
  StepOperand dw = of_f32(w);
  dw.written = 0;
  expect_right({kernel_of<ConvWeightGradients>(p), {of_f32(w)}, {{run}, {halo}, of_f32(run), dw}});
}

std::vector<ConvShape> shapes() {
  std::vector<ConvShape> all;
  for (const std::int64_t tokens : {1, 3, 16, 47, 1000})
    for (const std::int64_t width : {8, 64, 128, 256})
      for (const std::int64_t taps : {1, 2, 3, 4})
        all.push_back({.tokens = tokens,
                       .heads = width == 8 ? 6 : 2,
                       .width = width,
                       .taps = taps,
                       .batch = 2,
                       .has_unit_rows = taps % 2 == 0,
                       .has_bias = taps > 2,
                       .dtype = Dtype::bf16});
  all.push_back({.tokens = 300, .heads = 17, .width = 128, .taps = 4, .batch = 1, .dtype = Dtype::bf16});
  return all;
}

TEST_F(ConvDevice, DoesWhatTheHostDoes) {
  for (const ConvShape& p : shapes())
    for (const bool has_halo : {false, true}) {
      SCOPED_TRACE(std::to_string(p.tokens) + " tokens, width " + std::to_string(p.width) + ", " +
                   std::to_string(p.taps) + " weights" + (has_halo ? ", halo" : ""));
      expect_all_right(p.rows(0, p.tokens), has_halo);
    }
}

TEST_F(ConvDevice, MakesRowsAlone) {
  const ConvShape run{
      .tokens = 90, .heads = 3, .width = 128, .taps = 4, .has_unit_rows = true, .dtype = Dtype::bf16};
  for (const ConvShape& p : {run.rows(0, 3), run.rows(3, 87), run.rows(-3, 3), run.rows(40, 1)}) {
    SCOPED_TRACE("from row " + std::to_string(p.first));
    expect_all_right(p, true);
  }
}

}  // namespace
