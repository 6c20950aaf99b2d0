// SPDX-License-Identifier: Apache-2.0
// Every host body that a method records writes what it says that it writes, and nothing else:
// operands lie between guard words, and what is read alone stays as it was.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "tests/sp_methods/kernels/recorded_steps.hpp"

namespace baton::test {
namespace {

constexpr std::size_t zone = 512;  // guard words before and behind an operand
constexpr float guard = 1234.5F;

/// An operand between guard words, every number of it `value`.
class Guarded {
 public:
  Guarded(const RecordedOperand& x, float value)
      : count_(static_cast<std::size_t>(x.count)), value_(value), memory_(count_ + 2 * zone, guard) {
    std::fill_n(memory_.begin() + zone, count_, value);
  }
  std::span<float> span() { return {memory_.data() + zone, count_}; }
  bool is_guarded() const {
    const auto is_guard = [](float x) { return x == guard; };
    return std::all_of(memory_.begin(), memory_.begin() + zone, is_guard) &&
           std::all_of(memory_.end() - zone, memory_.end(), is_guard);
  }
  bool is_unchanged() const {
    return std::all_of(memory_.begin() + zone, memory_.end() - zone, [&](float x) { return x == value_; });
  }

 private:
  std::size_t count_;
  float value_;
  std::vector<float> memory_;
};

/// Runs a step on numbers that are all `value`, and says what it did beside its work.
std::string misdeed(const RecordedStep& step, float value) {
  std::vector<Guarded> writes, reads;
  for (const RecordedOperand& x : step.writes) writes.emplace_back(x, value);
  for (const RecordedOperand& x : step.reads) reads.emplace_back(x, value);
  HostOperands operands;
  for (Guarded& x : writes) operands.writes.push_back(x.span());
  for (std::size_t i = 0; i < reads.size(); ++i)
    operands.reads.push_back((step.reads[i].written >= 0 ? writes[step.reads[i].written] : reads[i]).span());
  step.kernel.body(operands);
  for (std::size_t i = 0; i < writes.size(); ++i)
    if (!writes[i].is_guarded()) return step.name + ": it writes beside its operand " + std::to_string(i);
  for (std::size_t i = 0; i < reads.size(); ++i)
    if (!reads[i].is_guarded() || !reads[i].is_unchanged())
      return step.name + ": it writes what it should only read, operand " + std::to_string(i);
  return {};
}

/// Layers whose sizes are powers of nothing; softmax heads share keys, and these may be latent.
std::vector<LayerShape> shapes(Attention attention, std::int64_t chunk) {
  std::vector<LayerShape> all{{22, 4, 5, 3, chunk}, {34, 2, 4, 8, chunk}};
  if (attention == Attention::linear) return all;
  all.push_back({20, 8, 4, 6, chunk, GateKind::none, 4});
  all.push_back({18, 8, 7, 5, chunk, GateKind::none, 1, true});
  return all;
}

RecordedSteps all_steps() {
  RecordedSteps steps;
  for (const SpMethod* method : sp_methods())
    for (const std::int64_t chunk : {1, 4, 16, 64})
      for (const LayerShape& shape : shapes(method->attention, chunk))
        for (const bool segmented : {false, true})
          for (const std::vector<std::int64_t>& starts : {std::vector<std::int64_t>{}, {3, 21, 22}})
            for (Layer& layer : variants(*method, {.share = shape, .segmented = segmented})) {
              layer.starts = starts;
              steps.add(*method, layer, 2);
            }
  return steps;
}

TEST(HostBodies, WriteNothingBesideTheirOperands) {
  const RecordedSteps steps = all_steps();
  EXPECT_GT(steps.all().size(), 1000);
  for (const RecordedStep& step : steps.all())
    for (const float value : {0.0F, -1.5F}) ASSERT_EQ(misdeed(step, value), "");
}

TEST(HostBodies, ThatWriteBesideTheirOperandsAreFound) {
  Kernel kernel{.name = "greedy", .body = [](const HostOperands& x) { x.writes[0].data()[4] = 1; }};
  EXPECT_EQ(misdeed({"greedy", kernel, {{4}}, {}}, 0), "greedy: it writes beside its operand 0");
  kernel.body = [](const HostOperands& x) { const_cast<float*>(x.reads[0].data())[1] = 1; };
  EXPECT_EQ(misdeed({"greedy", kernel, {{4}}, {{2}}}, 0),
            "greedy: it writes what it should only read, operand 0");
  kernel.body = [](const HostOperands& x) { x.writes[0].data()[3] = 1; };
  EXPECT_EQ(misdeed({"greedy", kernel, {{4}}, {{4, Dtype::f32, 0}}}, 0), "");
}

}  // namespace
}  // namespace baton::test
