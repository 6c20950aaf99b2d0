// SPDX-License-Identifier: Apache-2.0
// Zigzag linear attention on sequences whose states are known by hand, what it sends in units of a
// state, and what it refuses. That it computes any layer is in every_method_test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;
using testing::FloatNear;
using testing::Pointwise;

const std::vector<std::string> methods{"zeco_zigzag", "lasp2_zigzag", "lasp2_zigzag_once",
                                       "lasp2_zigzag_once_direct", "lasp1_zigzag_as_released"};

using Rows = std::map<std::string, std::vector<float>>;  // of the whole sequence, [tokens, elements]

/// The outputs of a sequence whose inputs are `inputs`.
Rows run(const std::string& name, const Layer& layer, int ranks, const Rows& inputs) {
  const SpMethod& method = find_method(name);
  const auto schedules = build_all(method, layer, ranks);
  const auto executor = find_executor("local").make(ranks);
  executor->prepare(schedules);
  const Cut cut{method.layout, ranks, layer.share.tokens};
  for (int rank = 0; rank < ranks; ++rank)
    for (const auto& [input, rows] : inputs) {
      const std::int64_t row = static_cast<std::int64_t>(rows.size()) / cut.sequence();
      std::vector<float> own;
      for (std::int64_t t = 0; t < cut.tokens; ++t) {
        const auto at = rows.begin() + cut.positions(rank).at(t) * row;
        own.insert(own.end(), at, at + row);
      }
      executor->write(rank, schedules[rank].buffer(input), own);
    }
  executor->run();
  Rows outputs;
  for (int rank = 0; rank < ranks; ++rank)
    for (const Buffer& buffer : schedules[rank].buffers()) {
      if (buffer.role != Role::output || buffer.count == 0) continue;
      std::vector<float> own(buffer.count);
      executor->read(own, rank, schedules[rank].buffer(buffer.name));
      const std::int64_t row = buffer.count / cut.tokens;
      outputs[buffer.name].resize(cut.sequence() * row);
      for (std::int64_t t = 0; t < cut.tokens; ++t)
        std::copy_n(own.begin() + t * row, row,
                    outputs[buffer.name].begin() + cut.positions(rank).at(t) * row);
    }
  return outputs;
}

/// One channel, S = S / 2 + v with v = 1, 2, 3, 4, and a gradient of 1 before each of four tokens.
TEST(LinearZigzag, HandsNumbersFromPieceToPiece) {
  const float half = std::log(0.5F);
  const Layer layer{.share = {2, 1, 1, 1, 8, GateKind::scalar}, .pass = Pass::both};
  const std::vector<float> ones(4, 1);
  for (const std::string& method : methods) {
    const Rows got = run(method, layer, 2,
                         {{"q", ones},
                          {"k", ones},
                          {"v", {1, 2, 3, 4}},
                          {"g", std::vector<float>(4, half)},
                          {"d_o", std::vector<float>(4, 2)}});
    EXPECT_THAT(got.at("o"), Pointwise(FloatNear(1e-6F), std::vector<float>{1, 2.5, 4.25, 6.125})) << method;
    EXPECT_THAT(got.at("dv"), Pointwise(FloatNear(1e-6F), std::vector<float>{3.75, 3.5, 3, 2})) << method;
  }
}

/// Four pieces with the matrices [0 1; 1 0], [1 0; 0 -1], [1 1; 0 1] and [0 -1; 1 0], which do not
/// commute, and the states (1, 0), (0, 1), (1, 1) and (2, 0). The first token of a piece has the
/// gradient (1, 0) and leaves the state; the last two make the piece's matrix. The heads have the
/// same states and read one channel each.
class Matrices {
 public:
  static constexpr int pieces = 4, tokens = 3, heads = 2, d_k = 2;

  Matrices() {
    for (const char* name : {"q", "k", "g", "a", "b"}) rows_[name].assign(pieces * tokens * heads * d_k, 0);
    for (const char* name : {"v", "d_o"}) rows_[name].assign(pieces * tokens * heads, 0);
    constexpr float swap[]{1, -1, -1, 1}, negate[]{0, 1, 0, -2}, shear[]{1, 0, 0, 1};
    set_rule(0, 2, swap), set_rule(1, 2, negate), set_rule(2, 2, shear), set_rule(3, 1, negate);
    set_rule(3, 2, swap);
    constexpr float states[pieces][d_k]{{1, 0}, {0, 1}, {1, 1}, {2, 0}};
    for (int piece = 0; piece < pieces; ++piece)
      for (int head = 0; head < heads; ++head) {
        rows_["v"][(piece * tokens + 2) * heads + head] = 1;
        rows_["d_o"][piece * tokens * heads + head] = head == 0 ? 1 : 0;
        for (int token = 0; token < tokens; ++token)
          row("q", piece, token, head)[head] = std::sqrt(2.0F);  // the scores' factor is its inverse
        std::copy_n(states[piece], d_k, row("k", piece, 2, head));
      }
  }

  const Rows& rows() const { return rows_; }

 private:
  float* row(const char* name, int piece, int token, int head) {
    return rows_[name].data() + ((piece * tokens + token) * heads + head) * d_k;
  }
  /// Gives a token the matrix 1 + b a^T, with both rows in `of`, b first.
  void set_rule(int piece, int token, const float* of) {
    for (int head = 0; head < heads; ++head) {
      std::copy_n(of, d_k, row("b", piece, token, head));
      std::copy_n(of + d_k, d_k, row("a", piece, token, head));
    }
  }

  Rows rows_;
};

TEST(LinearZigzag, AppliesMatricesInTheOrderOfThePieces) {
  const Layer layer{.share = {2 * Matrices::tokens, Matrices::heads, Matrices::d_k, 1, 8, GateKind::vector},
                    .rule = Rule::low_rank,
                    .pass = Pass::both};
  for (const std::string& method : methods) {
    const Rows got = run(method, layer, 2, Matrices().rows());
    const auto state_behind = [&](int piece) {
      const auto at = got.at("o").begin() + (piece * Matrices::tokens + 2) * Matrices::heads;
      return std::vector(at, at + 2);
    };
    // The gradient of the state behind a token, which the gradient of its key is.
    const auto gradient_behind = [&](int piece, int token) {
      const auto at =
          got.at("dk").begin() + (piece * Matrices::tokens + token) * Matrices::heads * Matrices::d_k;
      return std::vector(at, at + 2);
    };
    const std::vector<std::vector<float>> states{{1, 0}, {1, 1}, {3, 2}, {0, 3}},
        gradients{{3, -1}, {2, 1}, {1, 0}, {0, 0}};
    for (int piece = 0; piece < Matrices::pieces; ++piece) {
      EXPECT_THAT(state_behind(piece), Pointwise(FloatNear(1e-5F), states[piece])) << method << piece;
      EXPECT_THAT(gradient_behind(piece, 2), Pointwise(FloatNear(1e-5F), gradients[piece]))
          << method << piece;
    }
  }
}

/// One state and one matrix a head have as many bytes here.
TEST(LinearZigzag, SendsTwiceTheStatesOfItsScanAndHasTwiceItsHops) {
  const auto cost = [](const std::string& method, int ranks, const char* scan = "") {
    const Layer layer{.share = {64, 16, 8, 8, 8}, .rule = Rule::delta, .scan = scan};
    const Cost claim = *find_method(method).claim(layer, {.ranks = ranks});
    return std::pair{static_cast<double>(claim.sent_bytes) / (16 * 8 * 8 * 4), claim.hops};
  };
  const std::map<std::string, std::vector<double>> states{{"zeco_zigzag", {1, 2, 2, 2}},
                                                          {"lasp1_zigzag_as_released", {1, 2, 2, 2}},
                                                          {"lasp2_zigzag", {4, 12, 28, 60}},
                                                          {"lasp2_zigzag_once", {4, 12, 28, 60}},
                                                          {"lasp2_zigzag_once_direct", {4, 12, 28, 60}}};
  for (const auto& [method, expected] : states)
    for (int i = 0; i < 4; ++i) EXPECT_EQ(cost(method, 2 << i).first, expected[i]) << method;
  const std::map<std::string, int> hops{{"zeco_zigzag", 14},
                                        {"lasp1_zigzag_as_released", 14},
                                        {"lasp2_zigzag", 14},
                                        {"lasp2_zigzag_once", 7},
                                        {"lasp2_zigzag_once_direct", 1}};
  for (const auto& [method, expected] : hops) EXPECT_EQ(cost(method, 8).second, expected) << method;
  EXPECT_EQ(cost("zeco_zigzag", 8, "recursive_doubling").second, 6);
  EXPECT_EQ(cost("zeco_zigzag", 8, "two_shot").second, 4);
}

TEST(LinearZigzag, SaysWhatItCannotDo) {
  Layer layer{.share = {3, 2, 8, 8, 8}, .rule = Rule::delta};
  const auto reason = [&](const std::string& method) {
    return find_method(method).unsupported(layer, 2).reason();
  };
  for (const std::string& method : methods) {
    layer.share.tokens = 3;
    EXPECT_EQ(reason(method), "") << method << ", pieces of 2 and 1 tokens";
    layer.share.tokens = 1;
    EXPECT_EQ(reason(method), "zigzag gives each rank two pieces, and 1 token a rank is one");
    layer.share.tokens = 4;
    layer.groups = 2;
    EXPECT_EQ(reason(method), "zigzag linear layers exchange all heads at once: use --groups 1");
    layer.groups = 1;
    layer.mode = Mode::compute_only;
    EXPECT_EQ(reason(method),
              "mode compute_only: a rank's two pieces of zigzag tokens do not follow one another");
    layer.mode = Mode::overlapped;
  }
}

}  // namespace
