// SPDX-License-Identifier: Apache-2.0
// Packed documents: where they start, that each is as if it ran alone, and that a start which is
// ignored is seen. All methods with packed documents are in every_method_test.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "collectives/schedule/check.hpp"
#include "sp_methods/layer_oracle.hpp"
#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;

constexpr std::int64_t tokens = 24;
constexpr int ranks = 3;
/// Within chunks and at their borders, at the border of rank 2, and none among the first of rank 1.
const std::vector<std::int64_t> starts{0, 5, 8, 37, 48, 51};

/// The kinds of layers that take packed documents: gated, of delta rules, of a low-rank rule.
std::vector<Layer> layers(Pass pass) {
  std::vector<Layer> all;
  for (const GateKind gate : {GateKind::vector, GateKind::scalar, GateKind::none})
    for (const Rule rule : {Rule::decay, Rule::delta})
      all.push_back({.share = {tokens, 4, 8, 12, 8, gate}, .rule = rule, .pass = pass});
  all.push_back({.share = {tokens, 4, 8, 12, 8, GateKind::vector}, .rule = Rule::low_rank, .pass = pass});
  for (Layer& layer : all) layer.starts = starts;
  return all;
}

std::string name_of(const Layer& layer) {
  return std::string(attention_name(Attention::linear, layer.rule, layer.share.gate)) + ", " +
         to_string(layer.share.gate) + " gates, " + to_string(layer.pass);
}

LayerProblem problem_of(const Layer& layer) {
  return {.share = layer.share,
          .ranks = ranks,
          .gates = GateDraw::mixed,
          .seed = 7,
          .rule = layer.rule,
          .starts = layer.starts};
}

/// The outputs of `count` ranks that run zeco, by name, those of a rank behind those of the one
/// before. `input` gives the values of an input of a rank.
template <class Input>
std::map<std::string, std::vector<float>> run(const Layer& layer, int count, const Input& input) {
  const auto schedules = build_all(find_method("zeco"), layer, count);
  const auto executor = find_executor("local").make(count);
  executor->prepare(schedules);
  for (int rank = 0; rank < count; ++rank)
    for (const Buffer& buffer : schedules[rank].buffers())
      if (buffer.role == Role::input && buffer.count > 0)
        executor->write(rank, schedules[rank].buffer(buffer.name), input(buffer, rank));
  executor->run();
  std::map<std::string, std::vector<float>> outputs;
  for (int rank = 0; rank < count; ++rank)
    for (const Buffer& buffer : schedules[rank].buffers()) {
      if (buffer.role != Role::output) continue;
      std::vector<float> values(buffer.count);
      executor->read(values, rank, schedules[rank].buffer(buffer.name));
      auto& all = outputs[buffer.name];
      all.insert(all.end(), values.begin(), values.end());
    }
  return outputs;
}

/// The greatest relative error of an output of three ranks, with documents where `layer` has them
/// in place of where the oracle has them.
double greatest_error(const Layer& layer, const LayerOracle& oracle) {
  const auto got = run(layer, ranks, [&](const Buffer& buffer, int rank) {
    return oracle.input(buffer.name, Positions::run(rank * tokens, tokens));
  });
  double greatest = 0;
  for (const auto& [name, values] : got)
    if (!values.empty())
      greatest = std::max(
          greatest,
          relative_error(values, oracle.expected(name, Positions::run(0, ranks * tokens), ranks * tokens)));
  return greatest;
}

TEST(Packed, ABatchIsItsDocumentsOneByOne) {
  for (const Layer& layer : layers(Pass::both)) {
    const LayerInputValues inputs(problem_of(layer));
    const auto run_from = [&](const Layer& one, int count, std::int64_t first) {
      return run(one, count, [&](const Buffer& buffer, int rank) {
        std::vector<float> rows(buffer.count);
        const std::int64_t all = one.share.tokens;
        inputs.fill(buffer.name, {first + rank * all, 0, all}, 0, rows);
        return rows;
      });
    };
    const auto packed = run_from(layer, ranks, 0);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const std::int64_t end = i + 1 < starts.size() ? starts[i + 1] : ranks * tokens;
      Layer alone = layer;
      alone.starts.clear();
      alone.share.tokens = end - starts[i];
      for (const auto& [name, values] : run_from(alone, 1, starts[i])) {
        const std::int64_t row = inputs.problem().row(name);
        const auto& all = packed.at(name);
        EXPECT_LT(relative_error({all.begin() + starts[i] * row, all.begin() + end * row},
                                 {values.begin(), values.end()}),
                  2e-5)
            << name << " of document " << i << ", " << name_of(layer);
      }
    }
  }
}

TEST(Packed, AStartThatIsIgnoredIsSeen) {
  for (const Pass pass : {Pass::forward, Pass::backward, Pass::both})
    for (const Layer& layer : layers(pass)) {
      const LayerOracle oracle(problem_of(layer));
      EXPECT_LT(greatest_error(layer, oracle), 1e-5) << name_of(layer);
      for (std::size_t i = 1; i < starts.size(); ++i) {
        Layer faulty = layer;
        faulty.starts.erase(faulty.starts.begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_GT(greatest_error(faulty, oracle), 1e-3) << name_of(layer) << ", start " << starts[i];
      }
    }
}

TEST(Packed, ClosedGatesSeparateDocumentsOfSegmentedWork) {
  for (const Pass pass : {Pass::forward, Pass::backward, Pass::both})
    for (Layer layer : layers(pass)) {
      if (layer.share.gate == GateKind::none || layer.rule == Rule::low_rank) continue;
      layer.segmented = true;
      LayerProblem problem = problem_of(layer);
      EXPECT_GT(greatest_error(layer, LayerOracle(problem)), 1e-3) << "open gates, " << name_of(layer);
      problem.has_closed_gates = true;
      EXPECT_LT(greatest_error(layer, LayerOracle(problem)), 1e-5) << name_of(layer);
    }
}

TEST(Packed, ExchangesAreWhatTheyAreWithoutDocuments) {
  for (Layer layer : layers(Pass::both)) {
    const Counts packed = check("zeco", build_all(find_method("zeco"), layer, ranks));
    layer.starts.clear();
    const Counts whole = check("zeco", build_all(find_method("zeco"), layer, ranks));
    EXPECT_EQ(packed.busiest_sent_bytes(), whole.busiest_sent_bytes());
    EXPECT_EQ(packed.hops, whole.hops);
  }
}

TEST(Packed, ChunksHaveTokensOfOneDocument) {
  LayerShape share{tokens, 1, 8, 8, 8, GateKind::none};
  cut_at_starts(share, starts, tokens);
  ASSERT_EQ(share.chunks(), 4);
  const std::vector<std::int64_t> firsts{0, 8, 13, 21}, counts{8, 5, 8, 3};
  for (std::int64_t n = 0; n < share.chunks(); ++n) {
    EXPECT_EQ((*share.packed)[n].first, firsts[n]);
    EXPECT_EQ((*share.packed)[n].count, counts[n]);
    EXPECT_EQ(share.starts_document(n), n == 2) << "37 is token 13 of rank 1";
  }
  EXPECT_EQ(share.chunk_pairs(), 64 + 25 + 64 + 9);
  cut_at_starts(share, {}, 0);
  EXPECT_EQ(share.chunks(), 3);
}

TEST(Packed, StartsLieAtARanksBorderAndWithinChunks) {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5})
    for (const int count : {3, 4, 8}) {
      const auto all = drawn_starts(100, 1000, count, seed);
      EXPECT_EQ(all, drawn_starts(100, 1000, count, seed));
      EXPECT_NE(all, drawn_starts(100, 1000, count, seed + 1));
      EXPECT_EQ(all.front(), 0);
      EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), std::less_equal<>())) << "and differ";
      EXPECT_LT(all.back(), count * 1000);
      EXPECT_NEAR(static_cast<double>(all.size()), 10 * count, 4 * count);
      EXPECT_TRUE(std::any_of(all.begin() + 1, all.end(), [](auto at) { return at % 1000 == 0; }));
      EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](auto at) { return at % 64 > 0; }));
    }
  EXPECT_EQ(drawn_starts(1, 4, 2, 1), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

/// Shares of short documents as in a corpus whose mean is 1090 tokens.
TEST(Packed, LognormalLengthsAreOftenShortAndSometimesLong) {
  std::vector<std::int64_t> starts = drawn_starts(1090, 1 << 23, 1, 1, LengthDraw::lognormal);
  starts.push_back(1 << 23);
  const auto documents = static_cast<double>(starts.size() - 1);
  EXPECT_NEAR(documents, 7696, 500);
  for (const auto& [most, share] : {std::pair{500, 0.468}, {1024, 0.702}, {2048, 0.869}, {8192, 0.990}}) {
    int shorter = 0;
    for (std::size_t i = 1; i < starts.size(); ++i) shorter += starts[i] - starts[i - 1] <= most;
    EXPECT_NEAR(shorter / documents, share, 0.015) << most;
  }
}

TEST(Packed, GivenLengthsWithoutTokensStartNothing) {
  EXPECT_EQ(starts_of(std::vector<std::int64_t>{3, 0, 1, 4, 0}), (std::vector<std::int64_t>{0, 3, 4}));
}

TEST(Packed, RanksAloneStartAtTheirBordersToo) {
  LayerProblem problem = problem_of(layers(Pass::both).front());
  EXPECT_EQ(problem.edges(), (std::vector<std::int64_t>{0, 5, 8, 37, 48, 51, 72}));
  problem.alone = true;
  EXPECT_EQ(problem.edges(), (std::vector<std::int64_t>{0, 5, 8, 24, 37, 48, 51, 72}));
}

TEST(Packed, WhatCannotTakeDocumentsSaysSo) {
  const auto reason = [](const char* method, const Layer& layer) {
    return find_method(method).unsupported(layer, ranks).reason();
  };
  Layer layer = layers(Pass::both).front();
  for (const char* method : {"ring_attention", "token_ring", "chunkwise_local"})
    EXPECT_EQ(reason(method, layer), "it takes one document, not packed ones") << method;
  for (const char* method : {"zeco", "lasp1_as_released", "zeco_zigzag", "local"})
    EXPECT_EQ(reason(method, layer), "") << method;
  layer.dtype = Dtype::bf16;
  layer.share.d_k = layer.share.d_v = 64;
  layer.segmented = true;
  EXPECT_EQ(reason("zeco", layer), "");
  layer.share.gate = GateKind::none;
  const std::string separated =
      "on GPUs the gate of a document's first token separates it from the one before";
  EXPECT_EQ(reason("zeco", layer), separated + ", and this layer has no gates");
  layer.share.gate = GateKind::vector;
  layer.rule = Rule::low_rank;
  EXPECT_EQ(reason("zeco", layer),
            separated + ", but a token of the low-rank rule reads the state before its own gate");
}

}  // namespace
