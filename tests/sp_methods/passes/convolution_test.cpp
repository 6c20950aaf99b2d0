// SPDX-License-Identifier: Apache-2.0
// The convolution of sequences whose rows are known by hand, under a method that passes rows on.
#include "sp_methods/passes/convolution.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "collectives/schedule/check.hpp"

namespace {

using namespace baton;
using testing::ElementsAre;
using testing::ElementsAreArray;

using Values = std::vector<float>;

/// A layer of one channel each in q, k and v, of width 4, whose sums are so large that they are not
/// changed by the activation.
Layer layer_of(std::int64_t tokens, Pass pass, const std::vector<std::int64_t>& starts = {}) {
  Layer layer{.share = {.tokens = tokens, .heads = 1, .d_k = 1, .d_v = 1}, .pass = pass, .starts = starts};
  layer.share.conv = 4;
  return layer;
}

/// The schedules of ranks that output y of q as o, and have d_o as its gradient.
std::vector<Schedule> schedules_of(const Layer& layer, int ranks, Layout layout) {
  const std::int64_t tokens = layer.share.tokens;
  std::vector<Schedule> all;
  for (int rank = 0; rank < ranks; ++rank) {
    Schedule s(rank, ranks);
    LayerTensors x;
    for (const auto& [name, tensor] :
         {std::pair{"q", &x.q}, std::pair{"k", &x.k}, std::pair{"v", &x.v}, std::pair{"d_o", &x.d_o}})
      *tensor = s.input(name, tokens);
    x.conv_w = s.input("conv_w", 12);
    x.o = s.output("o", tokens);
    if (layer.pass != Pass::forward) {
      for (const auto& [name, tensor] :
           {std::pair{"dq", &x.dq}, std::pair{"dk", &x.dk}, std::pair{"dv", &x.dv}})
        *tensor = s.output(name, tokens);
      x.dconv_w = s.output("dconv_w", 12);
    }
    convolved(
        [](Schedule& schedule, const Layer& of, const LayerTensors& t) {
          schedule.copy(t.o, t.q);
          for (const Slice& into : {t.dq, t.dk, t.dv})
            if (of.pass != Pass::forward) schedule.copy(into, t.d_o);
        },
        layout)(s, layer, x);
    all.push_back(std::move(s));
  }
  return all;
}

struct Result {
  Values y, dx, dw;
};

/// y, dx and the sum of dw over the ranks, of x = 1, 2, .. and w = 1, 10, 100, 1000, with dy = 1.
Result run(const Layer& layer, int ranks, Layout layout) {
  const auto schedules = schedules_of(layer, ranks, layout);
  const auto executor = find_executor("local").make(ranks);
  executor->prepare(schedules);
  const Cut cut{layout, ranks, layer.share.tokens};
  Result all{Values(cut.sequence()), Values(cut.sequence()), Values(4)};
  for (int rank = 0; rank < ranks; ++rank) {
    Values own;
    for (std::int64_t t = 0; t < cut.tokens; ++t)
      own.push_back(static_cast<float>(cut.positions(rank).at(t) + 1));
    const Schedule& s = schedules[rank];
    for (const char* name : {"q", "k", "v"}) executor->write(rank, s.buffer(name), own);
    executor->write(rank, s.buffer("d_o"), Values(own.size(), 1));
    executor->write(rank, s.buffer("conv_w"), Values{1, 10, 100, 1000, 1, 10, 100, 1000, 1, 10, 100, 1000});
  }
  executor->run();
  for (int rank = 0; rank < ranks; ++rank) {
    const Schedule& s = schedules[rank];
    Values y(cut.tokens), dx(cut.tokens), dw(12);
    executor->read(y, rank, s.buffer("o"));
    executor->read(dx, rank, s.buffer("dv"));
    executor->read(dw, rank, s.buffer("dconv_w"));
    for (std::int64_t t = 0; t < cut.tokens; ++t) {
      all.y[cut.positions(rank).at(t)] = y[t];
      all.dx[cut.positions(rank).at(t)] = dx[t];
    }
    for (int i = 0; i < 4; ++i) all.dw[i] += dw[8 + i];
  }
  return all;
}

/// Shares of six tokens in all, those shorter than the halo too.
struct Shares {
  Layout layout;
  int ranks;
};
const std::vector<Shares> shares{{Layout::contiguous, 1}, {Layout::contiguous, 2}, {Layout::contiguous, 3},
                                 {Layout::contiguous, 6}, {Layout::zigzag, 1},     {Layout::zigzag, 2},
                                 {Layout::zigzag, 3}};

TEST(Convolution, OfCutTokensIsThatOfTheSequence) {
  for (const auto& [layout, ranks] : shares) {
    const Result got = run(layer_of(6 / ranks, Pass::both), ranks, layout);
    EXPECT_THAT(got.y, ElementsAre(1000, 2100, 3210, 4321, 5432, 6543)) << ranks << " ranks";
    EXPECT_THAT(got.dx, ElementsAre(1111, 1111, 1111, 1110, 1100, 1000)) << ranks << " ranks";
    EXPECT_THAT(got.dw, ElementsAre(6, 10, 15, 21)) << ranks << " ranks";
  }
}

TEST(Convolution, SeesNoRowOfAnotherDocument) {
  for (const auto& [layout, ranks] : shares) {
    const Result got = run(layer_of(6 / ranks, Pass::both, {0, 3}), ranks, layout);
    EXPECT_THAT(got.y, ElementsAre(1000, 2100, 3210, 4000, 5400, 6540)) << ranks << " ranks";
    EXPECT_THAT(got.dx, ElementsAre(1110, 1100, 1000, 1110, 1100, 1000)) << ranks << " ranks";
    EXPECT_THAT(got.dw, ElementsAre(0, 1 + 4, 1 + 2 + 4 + 5, 21)) << ranks << " ranks";
  }
}

/// Rows that ranks send, of three channels in f32.
std::vector<std::int64_t> rows_sent(std::int64_t tokens, int ranks, Layout layout, Pass pass) {
  std::vector<std::int64_t> rows;
  for (const Traffic& rank : check("convolution", schedules_of(layer_of(tokens, pass), ranks, layout)).ranks)
    rows.push_back(rank.sent_bytes / 12);
  return rows;
}

TEST(Convolution, SendsTheRowsThatRunsBehindNeed) {
  constexpr Layout contiguous = Layout::contiguous, zigzag = Layout::zigzag;
  EXPECT_THAT(rows_sent(3, 2, contiguous, Pass::forward), ElementsAre(3, 0));
  EXPECT_THAT(rows_sent(3, 2, contiguous, Pass::backward), ElementsAre(0, 3));
  EXPECT_THAT(rows_sent(2, 3, contiguous, Pass::forward), ElementsAre(3, 2, 0)) << "one row to the last rank";
  EXPECT_THAT(rows_sent(2, 3, contiguous, Pass::backward), ElementsAre(0, 2, 3));
  EXPECT_THAT(rows_sent(8, 2, zigzag, Pass::forward), ElementsAre(3, 3)) << "rank 1 has neighbouring pieces";
  EXPECT_THAT(rows_sent(8, 4, zigzag, Pass::forward), ElementsAre(3, 6, 6, 3));
}

TEST(Convolution, IsOneHopEachWay) {
  const auto hops = [](std::int64_t tokens, int ranks, Pass pass) {
    return check("convolution", schedules_of(layer_of(tokens, pass), ranks, Layout::contiguous)).hops;
  };
  EXPECT_EQ(hops(8, 4, Pass::forward), 1);
  EXPECT_EQ(hops(1, 6, Pass::forward), 1);
  EXPECT_EQ(hops(8, 4, Pass::backward), 1);
}

TEST(Convolution, BytesOfRanksAreThoseOfItsRows) {
  for (const auto& [layout, ranks] : shares)
    for (const Pass pass : {Pass::forward, Pass::backward, Pass::both}) {
      const Layer layer = layer_of(6 / ranks, pass);
      std::vector<std::int64_t> sent;
      for (const Traffic& rank : check("convolution", schedules_of(layer, ranks, layout)).ranks)
        sent.push_back(rank.sent_bytes);
      EXPECT_THAT(convolution_bytes(layer, ranks, layout), ElementsAreArray(sent)) << ranks << " ranks";
    }
}

}  // namespace
