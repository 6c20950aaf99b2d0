// SPDX-License-Identifier: Apache-2.0
// Causality of every registered method, those of tomorrow included: where a token changes, outputs
// before it keep every bit. Its gate stays, since host kernels take the decays of a run of tokens
// relative to its middle one, and so round the outputs before a changed gate differently.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "sp_methods/layer_inputs.hpp"
#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;

constexpr int ranks = 4;

/// The outputs o of all positions, [positions, row], by the local executor.
class Outputs {
 public:
  Outputs(const SpMethod& method, const Layer& layer)
      : method_(method),
        layer_(layer),
        schedules_(build_all(method, layer, ranks)),
        executor_(find_executor("local").make(ranks)),
        inputs_({.attention = method.attention,
                 .share = layer.share,
                 .ranks = ranks,
                 .gates = GateDraw::mixed,
                 .rule = layer.rule}) {
    executor_->prepare(schedules_);
  }

  std::int64_t row() const { return inputs_.problem().row("o"); }

  /// Runs the layer with half of all inputs but the gate at position `changed`; as drawn if that is
  /// negative.
  std::vector<float> run(std::int64_t changed) {
    std::vector<float> all(ranks * layer_.share.tokens * row());
    for (int rank = 0; rank < ranks; ++rank)
      for (const Buffer& buffer : schedules_[rank].buffers())
        if (buffer.role == Role::input && buffer.count > 0) write(rank, buffer, changed);
    executor_->run();
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<float> own(tokens(rank) * row());
      executor_->read(own, rank, schedules_[rank].buffer("o"));
      for (std::int64_t t = 0; t < tokens(rank); ++t)
        std::copy_n(own.begin() + t * row(), row(), all.begin() + positions(rank).at(t) * row());
    }
    return all;
  }

 private:
  Positions positions(int rank) const { return positions_of(method_, rank, ranks, layer_.share.tokens); }
  std::int64_t tokens(int rank) const { return tokens_of(method_, rank, ranks, layer_.share.tokens); }

  void write(int rank, const Buffer& buffer, std::int64_t changed) {
    std::vector<float> rows(buffer.count);
    const std::int64_t width = inputs_.problem().row(buffer.name);
    inputs_.fill(buffer.name, positions(rank), 0, rows);
    for (std::int64_t t = 0; t < tokens(rank); ++t)
      if (positions(rank).at(t) == changed && buffer.name != "g")
        for (std::int64_t i = 0; i < width; ++i) rows[t * width + i] *= 0.5F;
    executor_->write(rank, schedules_[rank].buffer(buffer.name), rows);
  }

  const SpMethod& method_;
  Layer layer_;
  std::vector<Schedule> schedules_;
  std::unique_ptr<Executor> executor_;
  LayerInputValues inputs_;
};

std::vector<Layer> layers_of(const SpMethod& method) {
  const Layer layer{.share = {6, 4, 4, 4, 4, GateKind::none}};
  std::vector<Layer> all{layer};
  if (method.attention == Attention::softmax) return all;
  for (const Rule rule : {Rule::decay, Rule::delta, Rule::low_rank})
    for (const GateKind gate : {GateKind::vector, GateKind::scalar}) {
      all.push_back(layer);
      all.back().rule = rule;
      all.back().share.gate = gate;
    }
  return all;
}

class Causality : public testing::TestWithParam<const SpMethod*> {};

TEST_P(Causality, OutputsBeforeAChangedTokenKeepEveryBit) {
  const SpMethod& method = *GetParam();
  if (method.sequence == Sequence::own) GTEST_SKIP() << "each rank's tokens are a sequence of their own";
  for (const Layer& layer : layers_of(method)) {
    if (method.unsupported && method.unsupported(layer, ranks)) continue;
    Outputs outputs(method, layer);
    const std::vector<float> before = outputs.run(-1);
    for (const std::int64_t changed : {1, 5, 6, 11, 14, 18, 23}) {
      const std::vector<float> after = outputs.run(changed);
      const std::string text =
          fmt::format("{} {} token {}", to_string(layer.rule), to_string(layer.share.gate), changed);
      const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
      std::int64_t kept = 0;
      while (kept < std::ssize(before) && bits(before[kept]) == bits(after[kept])) ++kept;
      EXPECT_EQ(kept / outputs.row(), changed) << text << ": the first output that differs";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Causality, testing::ValuesIn(sp_methods()),
                         [](const auto& info) { return info.param->name; });

}  // namespace
