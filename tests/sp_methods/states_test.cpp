// SPDX-License-Identifier: Apache-2.0
// States at the ends of a sequence: values known by hand, a sequence cut into two calls by a state,
// what they cost, and what refuses them. That every method computes them is in every_method_test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "collectives/schedule/check.hpp"
#include "sp_methods/layer_oracle.hpp"
#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;
using testing::FloatNear;
using testing::Pointwise;

using Values = std::map<std::string, std::vector<float>>;  // [tokens or 1, elements], by position

const std::vector<std::string> methods{"zeco",
                                       "zeco_corrected",
                                       "linear_doubling",
                                       "linear_two_shot",
                                       "lasp1",
                                       "lasp1_as_released",
                                       "lasp2",
                                       "lasp2_as_released",
                                       "zeco_zigzag",
                                       "lasp2_zigzag",
                                       "lasp2_zigzag_once",
                                       "lasp2_zigzag_once_direct",
                                       "lasp1_zigzag_as_released"};

/// The outputs of a whole sequence whose inputs are `inputs`.
Values run(const std::string& name, const Layer& layer, int ranks, const Values& inputs) {
  const SpMethod& method = find_method(name);
  const auto schedules = build_all(method, layer, ranks);
  check(name, schedules);
  const auto executor = find_executor("local").make(ranks);
  executor->prepare(schedules);
  const std::int64_t all = ranks * layer.share.tokens;
  Values outputs;
  const auto for_rows = [&](int rank, const Buffer& buffer, std::vector<float>& whole, const auto& move) {
    const bool is_state = LayerProblem::is_state(buffer.name);
    const std::int64_t row = buffer.count / (is_state ? 1 : layer.share.tokens);
    if (whole.empty()) whole.resize((is_state ? 1 : all) * row);
    const Positions at =
        is_state ? Positions::run(0, 1) : positions_of(method, rank, ranks, layer.share.tokens);
    for (std::int64_t t = 0; t < buffer.count / row; ++t)
      move(schedules[rank].buffer(buffer.name).part(t * row, row), whole.data() + at.at(t) * row);
  };
  for (const bool is_ahead : {true, false}) {
    for (int rank = 0; rank < ranks; ++rank)
      for (const Buffer& buffer : schedules[rank].buffers()) {
        if (buffer.count == 0 || buffer.role != (is_ahead ? Role::input : Role::output)) continue;
        std::vector<float> given = is_ahead ? inputs.at(buffer.name) : std::vector<float>{};
        for_rows(rank, buffer, is_ahead ? given : outputs[buffer.name], [&](const Slice& rows, float* at) {
          const auto count = static_cast<std::size_t>(rows.count);
          if (is_ahead)
            executor->write(rank, rows, std::span(at, count));
          else
            executor->read(std::span(at, count), rank, rows);
        });
      }
    if (is_ahead) executor->run();
  }
  return outputs;
}

void expect(const Values& got, const std::string& name, const std::vector<float>& values,
            const std::string& what) {
  EXPECT_THAT(got.at(name), Pointwise(FloatNear(1e-5F), values)) << name << " of " << what;
}

/// S = S / 2 + 1 from 8 on, with a gradient of 1 of each output and of 4 of the last state.
TEST(States, OfOneChannelThatDecaysAreKnown) {
  const Values inputs{{"q", std::vector<float>(4, 1)},
                      {"k", std::vector<float>(4, 1)},
                      {"v", std::vector<float>(4, 1)},
                      {"g", std::vector<float>(4, std::log(0.5F))},
                      {"d_o", std::vector<float>(4, 1)},
                      {"initial_state", {8}},
                      {"d_final_state", {4}}};
  for (const std::string& method : methods)
    for (const int ranks : {1, 2, 4}) {
      const Layer layer{
          .share = {4 / ranks, 1, 1, 1, 8, GateKind::scalar}, .pass = Pass::both, .states = States::both};
      if (find_method(method).unsupported(layer, ranks)) continue;  // its rule, or one token a rank
      const Values got = run(method, layer, ranks, inputs);
      const std::string what = method + " on " + std::to_string(ranks) + " ranks";
      expect(got, "o", {5, 3.5, 2.75, 2.375}, what);
      expect(got, "final_state", {2.375}, what);
      expect(got, "dv", {2.375, 2.75, 3.5, 5}, what);
      expect(got, "dg", {9.5, 6.875, 6.125, 6.875}, what);
      expect(got, "d_initial_state", {1.1875}, what);
    }
}

/// A delta rule that takes half of what the state returns for k and adds half of 4.
TEST(States, OfOneChannelOfADeltaRuleAreKnown) {
  const Values inputs{{"q", std::vector<float>(4, 1)},
                      {"k", std::vector<float>(4, 1)},
                      {"v", std::vector<float>(4, 4)},
                      {"beta", std::vector<float>(4, 0.5F)},
                      {"d_o", std::vector<float>(4, 1)},
                      {"g", {}},
                      {"initial_state", {8}},
                      {"d_final_state", {4}}};
  for (const std::string& method : methods)
    for (const int ranks : {1, 2, 4}) {
      const Layer layer{.share = {4 / ranks, 1, 1, 1, 8, GateKind::none},
                        .rule = Rule::delta,
                        .pass = Pass::both,
                        .states = States::both};
      if (find_method(method).unsupported(layer, ranks)) continue;
      const Values got = run(method, layer, ranks, inputs);
      const std::string what = method + " on " + std::to_string(ranks) + " ranks";
      expect(got, "o", {6, 5, 4.5, 4.25}, what);
      expect(got, "final_state", {4.25}, what);
      expect(got, "dv", {1.1875, 1.375, 1.75, 2.5}, what);
      expect(got, "dbeta", {-9.5, -5.5, -3.5, -2.5}, what);
      expect(got, "dk", {-14.25, -11, -10.5, -12.5}, what);
      expect(got, "d_initial_state", {1.1875}, what);
    }
}

/// The kinds of layers, of `tokens` tokens a rank.
std::vector<Layer> layers(std::int64_t tokens) {
  std::vector<Layer> all;
  for (const GateKind gate : {GateKind::vector, GateKind::scalar, GateKind::none})
    for (const Rule rule : {Rule::decay, Rule::delta})
      all.push_back({.share = {tokens, 2, 8, 12, 8, gate}, .rule = rule, .pass = Pass::both});
  all.push_back(
      {.share = {tokens, 2, 8, 12, 8, GateKind::vector}, .rule = Rule::low_rank, .pass = Pass::both});
  return all;
}

/// The rows of `values` from position `first` on, of half a sequence of `all` tokens.
Values half_of(const Values& values, std::int64_t first, std::int64_t all) {
  Values half;
  for (const auto& [name, rows] : values) {
    const std::int64_t row = static_cast<std::int64_t>(rows.size()) / all;
    if (!LayerProblem::is_state(name))
      half[name].assign(rows.begin() + first * row, rows.begin() + (first + all / 2) * row);
  }
  return half;
}

TEST(States, TwoHalvesThroughAStateAreOneWhole) {
  constexpr std::int64_t tokens = 22;
  constexpr int ranks = 3;
  for (const std::string& method : methods)
    for (Layer layer : layers(tokens)) {
      layer.states = States::both;
      if (find_method(method).unsupported(layer, ranks)) continue;
      const LayerInputValues drawn({.share = layer.share,
                                    .ranks = ranks,
                                    .gates = GateDraw::mixed,
                                    .rule = layer.rule,
                                    .states = layer.states});
      Values inputs;
      for (const char* name :
           {"q", "k", "v", "g", "beta", "a", "b", "d_o", "initial_state", "d_final_state"}) {
        const std::int64_t rows = LayerProblem::is_state(name) ? 1 : tokens * ranks;
        inputs[name].resize(rows * drawn.problem().row(name));
        drawn.fill(name, Positions::run(0, rows), 0, inputs[name]);
      }
      const Values whole = run(method, layer, ranks, inputs);
      layer.share.tokens = tokens / 2;
      Values first = half_of(inputs, 0, tokens * ranks),
             second = half_of(inputs, tokens * ranks / 2, tokens * ranks);
      first["initial_state"] = inputs["initial_state"];
      second["d_final_state"] = inputs["d_final_state"];
      first["d_final_state"] = std::vector<float>(inputs["d_final_state"].size());  // not known yet
      second["initial_state"] = run(method, layer, ranks, first).at("final_state");
      const Values after = run(method, layer, ranks, second);
      first["d_final_state"] = after.at("d_initial_state");
      const Values before = run(method, layer, ranks, first);
      for (const auto& [name, rows] : whole) {
        std::vector<float> both = name == "final_state" ? after.at(name) : before.at(name);
        if (!LayerProblem::is_state(name))
          both.insert(both.end(), after.at(name).begin(), after.at(name).end());
        EXPECT_LT(relative_error(both, {rows.begin(), rows.end()}), 1e-5)
            << name << " of " << method << ", "
            << attention_name(Attention::linear, layer.rule, layer.share.gate);
      }
    }
}

TEST(States, DoNotTravelBesideTheOthers) {
  for (const std::string& method : methods)
    for (Layer layer : layers(12)) {
      if (find_method(method).unsupported(layer, 4)) continue;
      const Counts without = check(method, build_all(find_method(method), layer, 4));
      layer.states = States::both;
      const Counts with = check(method, build_all(find_method(method), layer, 4));
      EXPECT_EQ(with.busiest_sent_bytes(), without.busiest_sent_bytes()) << method;
      EXPECT_EQ(with.hops, without.hops) << method;
    }
}

TEST(States, WhatCannotTakeThemSaysSo) {
  Layer layer = layers(12).front();
  layer.states = States::in;
  const auto reason = [&](const char* method, int ranks) {
    return find_method(method).unsupported(layer, ranks).reason();
  };
  for (const char* method : {"ring_attention", "ulysses", "chunkwise_local"})
    EXPECT_EQ(reason(method, 2), "it takes no state from before the sequence and gives none behind it");
  EXPECT_EQ(reason("local", 1), "");
  const std::string alone = "without an exchange each rank has a sequence of its own, and a state is of one";
  EXPECT_EQ(reason("local", 2), alone);
  layer.mode = Mode::compute_only;
  EXPECT_EQ(reason("zeco", 2), alone);
  EXPECT_EQ(reason("zeco", 1), "");
  layer.share.conv = 4;
  EXPECT_EQ(reason("zeco", 1), "a state would need the rows before it for the convolution");
}

TEST(States, WithAGradientHaveNoGateAHeadOnGpus) {
  Layer layer{.share = {64, 2, 64, 64, 64, GateKind::scalar}, .pass = Pass::both, .states = States::out};
  layer.dtype = Dtype::bf16;
  const auto reason = [&] { return find_method("zeco").unsupported(layer, 2).reason(); };
  EXPECT_THAT(reason(), testing::HasSubstr("dg of a gate a head is not exact"));
  layer.states = States::in;
  EXPECT_EQ(reason(), "");
  layer.states = States::out;
  layer.rule = Rule::delta;
  EXPECT_EQ(reason(), "");
}

}  // namespace
