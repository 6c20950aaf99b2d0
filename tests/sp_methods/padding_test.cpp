// SPDX-License-Identifier: Apache-2.0
// Padded sequences: tokens behind the sequence change nothing before it, and their gradients are
// exactly zero under every method. All methods with padding are in every_method_test.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "sp_methods/layer_oracle.hpp"
#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;

constexpr std::int64_t sequence = 19;

struct Kind {
  Attention attention = Attention::linear;
  Rule rule = Rule::decay;
  GateKind gate = GateKind::vector;
  MaskKind mask = MaskKind::causal;
};

const Kind kinds[]{{},
                   {.gate = GateKind::scalar},
                   {.rule = Rule::delta},
                   {.rule = Rule::low_rank},
                   {.attention = Attention::softmax, .gate = GateKind::none},
                   {.attention = Attention::softmax, .gate = GateKind::none, .mask = MaskKind::full}};

LayerProblem problem_of(const Kind& kind, std::int64_t tokens, int ranks) {
  return {.attention = kind.attention,
          .share = {tokens, 4, 4, 6, 4, kind.gate},
          .ranks = ranks,
          .gates = GateDraw::mixed,
          .seed = 3,
          .rule = kind.rule,
          .mask = {kind.mask, sequence}};
}

std::vector<std::string> names_of(const Kind& kind, bool is_of_gradients) {
  std::vector<std::string> names;
  for (const TensorKind& one : tensor_kinds())
    if (one.is_in(kind.rule, Pass::both) && one.width({1, 1, 1, 1, 1, kind.gate}) > 0 &&
        (one.role == TensorKind::Role::gradient ||
         (!is_of_gradients && one.role == TensorKind::Role::output)))
      names.emplace_back(one.name);
  return names;
}

TEST(Padding, ChangesNothingBeforeIt) {
  for (const Kind& kind : kinds) {
    const LayerOracle padded(problem_of(kind, 8, 3)), exact(problem_of(kind, sequence, 1));
    const Positions all = Positions::run(0, sequence), behind = Positions::run(sequence, 24 - sequence);
    for (const std::string& name : names_of(kind, false)) {
      EXPECT_THAT(padded.expected(name, all, sequence),
                  testing::Pointwise(testing::DoubleNear(1e-12), exact.expected(name, all, sequence)))
          << name;
      if (name != "o") {
        EXPECT_THAT(padded.expected(name, behind, 24 - sequence), testing::Each(0.0)) << name;
      }
    }
    EXPECT_THAT(padded.input("v", Positions::run(sequence, 8)),
                testing::Contains(testing::Ne(0.0F)).Times(0));
  }
}

class EveryPadding : public testing::TestWithParam<const SpMethod*> {};

/// Runs both passes of a padded layer, and looks at the gradients behind its sequence.
void expect_zeros(const SpMethod& method, const Kind& kind, int ranks) {
  const LayerProblem problem = problem_of(kind, Cut::padded(method.layout, ranks, sequence).tokens, ranks);
  const Layer layer{.share = problem.share, .rule = kind.rule, .pass = Pass::both, .mask = problem.mask};
  if (method.unsupported(layer, ranks)) return;
  const auto schedules = build_all(method, layer, ranks);
  const auto executor = find_executor("local").make(ranks);
  executor->prepare(schedules);
  const LayerInputValues inputs(problem);
  for (int rank = 0; rank < ranks; ++rank)
    for (const Buffer& buffer : schedules[rank].buffers()) {
      if (buffer.role != Role::input || buffer.count == 0) continue;
      std::vector<float> rows(buffer.count);
      inputs.fill(buffer.name, positions_of(method, rank, ranks, problem.share.tokens), 0, rows);
      executor->write(rank, schedules[rank].buffer(buffer.name), rows);
    }
  executor->run();
  for (int rank = 0; rank < ranks; ++rank)
    for (const std::string& name : names_of(kind, true)) {
      std::vector<float> got(schedules[rank].buffer(name).count);
      executor->read(got, rank, schedules[rank].buffer(name));
      const Positions positions = positions_of(method, rank, ranks, problem.share.tokens);
      const std::int64_t row = problem.row(name);
      for (std::int64_t i = 0; i < std::ssize(got); ++i)
        ASSERT_TRUE(positions.at(i / row) < sequence || got[i] == 0.0F)
            << fmt::format("{} of token {} on rank {} of {} is {}", name, i / row, rank, ranks, got[i]);
    }
}

TEST_P(EveryPadding, HasGradientsOfExactlyZero) {
  for (const Kind& kind : kinds)
    for (int ranks = 1; ranks <= 4; ++ranks)
      if (kind.attention == GetParam()->attention) expect_zeros(*GetParam(), kind, ranks);
}

INSTANTIATE_TEST_SUITE_P(, EveryPadding, testing::ValuesIn(sp_methods()),
                         [](const auto& method) { return method.param->name; });

TEST(PaddedDocuments, EndAtMultiples) {
  const PaddedDocuments padded = padded_documents({0, 7, 8}, 20, 4);
  EXPECT_THAT(padded.starts, testing::ElementsAre(0, 8, 12));
  EXPECT_THAT(padded.ends, testing::ElementsAre(7, 9, 24));
  EXPECT_EQ(padded.tokens, 24);
  EXPECT_EQ(padded_documents({0, 4}, 8, 4).tokens, 8);
}

/// Each document of a padded stream has the results that it has in the stream without padding, and
/// the gradients of its padding are zero.
TEST(PaddedDocuments, AreAsWithoutPadding) {
  const std::vector<std::int64_t> starts{0, 7, 8};
  const PaddedDocuments padded = padded_documents(starts, sequence, 4);
  for (const Kind& kind : kinds) {
    if (kind.mask == MaskKind::full) continue;
    LayerProblem one = problem_of(kind, padded.tokens, 1);
    one.mask.end = padded.tokens;
    one.gates = GateDraw::layer;  // mixed ones follow from the number of tokens
    one.starts = padded.starts, one.ends = padded.ends;
    const LayerOracle oracle(one);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const std::int64_t first = padded.starts[i], length = padded.ends[i] - first;
      const std::int64_t behind =
          (i + 1 < starts.size() ? padded.starts[i + 1] : padded.tokens) - padded.ends[i];
      LayerProblem alone = one;
      alone.starts = {0}, alone.ends = {}, alone.mask.end = padded.ends[i];
      if (first > 0) alone.starts.push_back(first);
      const LayerOracle exact(alone);
      const Positions all = Positions::run(first, length), rest = Positions::run(padded.ends[i], behind);
      for (const std::string& name : names_of(kind, false))
        EXPECT_THAT(oracle.expected(name, all, length),
                    testing::Pointwise(testing::DoubleNear(1e-12), exact.expected(name, all, length)))
            << name;
      for (const std::string& name : names_of(kind, true))
        EXPECT_THAT(oracle.expected(name, rest, behind), testing::Each(0.0)) << name;
    }
  }
}

}  // namespace
