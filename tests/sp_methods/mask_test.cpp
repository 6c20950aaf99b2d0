// SPDX-License-Identifier: Apache-2.0
// Masks of softmax attention against attention by its definition, over a table that says for each
// query and key whether it is seen: the reference, and every method at 1 to 4 ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "sp_methods/kernels/reference/attention.hpp"
#include "sp_methods/layer_inputs.hpp"
#include "sp_methods/layer_oracle.hpp"
#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;

using Rows = std::vector<std::vector<double>>;  // [tokens][width] of one head
using Sees = std::function<bool(std::int64_t query, std::int64_t key)>;

struct Head {
  Rows q, k, v, d_o;
};

double dot(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

void add(std::vector<double>& into, double factor, const std::vector<double>& x) {
  for (std::size_t i = 0; i < x.size(); ++i) into[i] += factor * x[i];
}

/// o, dq, dk and dv by the definition, one row of the mask after the other.
std::map<std::string, Rows> dense(const Head& x, const Sees& sees) {
  const std::size_t n = x.q.size(), d_k = x.q[0].size(), d_v = x.v[0].size();
  const double scale = 1 / std::sqrt(static_cast<double>(d_k));
  const auto zeros = [n](std::size_t width) { return Rows(n, std::vector<double>(width)); };
  Rows o = zeros(d_v), dq = zeros(d_k), dk = zeros(d_k), dv = zeros(d_v);
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> p(n), dp(n);
    double sum = 0, mean = 0;
    for (std::size_t j = 0; j < n; ++j)
      if (sees(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j)))
        sum += p[j] = std::exp(scale * dot(x.q[i], x.k[j]));
    for (std::size_t j = 0; j < n; ++j) {
      p[j] /= sum;
      dp[j] = dot(x.d_o[i], x.v[j]);
      mean += p[j] * dp[j];
    }
    for (std::size_t j = 0; j < n; ++j) {
      const double dz = scale * p[j] * (dp[j] - mean);
      add(o[i], p[j], x.v[j]);
      add(dv[j], p[j], x.d_o[i]);
      add(dq[i], dz, x.k[j]);
      add(dk[j], dz, x.q[i]);
    }
  }
  return {{"o", o}, {"dq", dq}, {"dk", dk}, {"dv", dv}};
}

/// The table of a mask over documents that start at `starts`, or over one if there are none,
/// written without the mask's own functions.
Sees table_of(const Mask& mask, const std::vector<std::int64_t>& starts = {}) {
  const auto document_of = [starts](std::int64_t position) {
    return std::count_if(starts.begin(), starts.end(), [&](auto start) { return start <= position; });
  };
  return [mask, document_of](auto query, auto key) {
    if (document_of(query) != document_of(key)) return false;
    return mask.kind == MaskKind::causal ? key <= query && query - key < mask.window : key < mask.end;
  };
}

std::vector<double> flat(const Rows& rows) {
  std::vector<double> all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  return all;
}

/// The same results by the reference.
std::map<std::string, std::vector<double>> by_reference(const Head& x, const Mask& mask) {
  const LayerShape shape{std::ssize(x.q), 1, std::ssize(x.q[0]), std::ssize(x.v[0]), 4, GateKind::none};
  const std::vector<double> q = flat(x.q), k = flat(x.k), v = flat(x.v), d_o = flat(x.d_o);
  const ReferenceInputs in{q, k, v, {}, {}};
  ReferenceGradients gradients = softmax_reference_backward(in, d_o, shape, {}, mask);
  return {{"o", softmax_reference_forward(in, shape, {}, mask).o},
          {"dq", gradients.dq},
          {"dk", gradients.dk},
          {"dv", gradients.dv}};
}

/// Tokens with the values 0, 1, 2 and so on, whose scores are all equal.
Head counting(std::int64_t tokens) {
  Head x;
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (Rows* zero : {&x.q, &x.k}) zero->push_back({0});
    x.v.push_back({static_cast<double>(t)});
    x.d_o.push_back({1});
  }
  return x;
}

auto near(const std::vector<double>& values) {
  return testing::Pointwise(testing::DoubleNear(1e-12), values);
}

TEST(Mask, GivesFourTokensTheirRightValues) {
  const Head x = counting(4);
  auto causal = by_reference(x, {}), full = by_reference(x, {MaskKind::full});
  EXPECT_THAT(causal["o"], near({0, 0.5, 1, 1.5}));
  EXPECT_THAT(causal["dv"], near({25.0 / 12, 13.0 / 12, 7.0 / 12, 0.25}));
  EXPECT_THAT(full["o"], near({1.5, 1.5, 1.5, 1.5}));
  EXPECT_THAT(full["dv"], near({1, 1, 1, 1}));
  EXPECT_THAT((by_reference(x, {MaskKind::full, 3})["o"]), near({1, 1, 1, 1})) << "token 3 is padding";
}

TEST(Mask, GivesEightTokensInAWindowOfThreeTheirRightValues) {
  auto window = by_reference(counting(8), {.window = 3});
  EXPECT_THAT(window["o"], near({0, 0.5, 1, 2, 3, 4, 5, 6}));
  EXPECT_THAT(window["dv"], near({11.0 / 6, 7.0 / 6, 1, 1, 1, 1, 2.0 / 3, 1.0 / 3}));
}

TEST(Mask, ReferenceDoesWhatTheTableSays) {
  std::mt19937_64 random(5);
  std::normal_distribution<> normal;
  for (const std::int64_t tokens : {1, 24, 150})  // less than a block of queries, and three of them
    for (const Mask& mask :
         {Mask{}, Mask{MaskKind::full}, Mask{MaskKind::full, (tokens + 1) / 2}, Mask{.window = 1},
          Mask{.window = 5}, Mask{.window = 100}, Mask{.window = 1000}}) {
      Head x;
      const auto draw = [&](std::size_t width) {
        std::vector<double> row(width);
        for (double& value : row) value = normal(random);
        return row;
      };
      for (std::int64_t t = 0; t < tokens; ++t) {
        for (Rows* rows : {&x.q, &x.k}) rows->push_back(draw(5));
        for (Rows* rows : {&x.v, &x.d_o}) rows->push_back(draw(3));
      }
      auto got = by_reference(x, mask);
      for (const auto& [name, rows] : dense(x, table_of(mask)))
        EXPECT_THAT(got.at(name), testing::Pointwise(testing::DoubleNear(1e-12), flat(rows))) << name;
    }
}

TEST(Mask, EndsNeverFall) {
  const auto starts = std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{0, 3, 4});
  for (const Mask& mask :
       {Mask{}, Mask{MaskKind::full, 9}, Mask{.window = 1}, Mask{.window = 4}, Mask{.starts = starts},
        Mask{MaskKind::full, 9, Mask::unlimited, starts}, Mask{.window = 2, .starts = starts}})
    for (std::int64_t p = 0; p < 8; ++p) {
      EXPECT_LE(mask.upper(p), mask.upper(p + 1));
      EXPECT_LE(mask.lower(p), mask.lower(p + 1));
      EXPECT_LE(mask.lower(p), mask.upper(p));
      for (std::int64_t key = 0; key < 9; ++key)
        EXPECT_EQ(mask.first_query(key) <= p, key <= mask.upper(p)) << p << " and " << key;
    }
}

class EveryMask : public testing::TestWithParam<const SpMethod*> {};

/// The rows of one head in the tensor called `name`, over the whole sequence.
Rows rows_of(const LayerInputValues& inputs, const char* name, std::int64_t head, std::int64_t tokens) {
  const std::vector<double> values = inputs.of_head(name, head, 0, tokens);
  Rows rows(tokens);
  for (std::int64_t t = 0; t < tokens; ++t)
    rows[t] = {values.begin() + t * std::ssize(values) / tokens,
               values.begin() + (t + 1) * std::ssize(values) / tokens};
  return rows;
}

/// Compares each output of each rank with the rows of its positions in every head.
void expect_dense(const SpMethod& method, const Layer& layer, int ranks) {
  const LayerShape& s = layer.share;
  const std::int64_t all = ranks * s.tokens;
  const LayerProblem problem{.attention = Attention::softmax, .share = s, .ranks = ranks, .mask = layer.mask};
  const LayerInputValues inputs(problem);
  std::vector<std::map<std::string, Rows>> heads;
  for (std::int64_t head = 0; head < s.heads; ++head)
    heads.push_back(dense({rows_of(inputs, "q", head, all), rows_of(inputs, "k", head, all),
                           rows_of(inputs, "v", head, all), rows_of(inputs, "d_o", head, all)},
                          table_of(layer.mask, layer.starts)));
  const auto schedules = build_all(method, layer, ranks);
  const auto executor = find_executor("local").make(ranks);
  executor->prepare(schedules);
  const auto for_buffers = [&](Role role, const auto& body) {
    for (int rank = 0; rank < ranks; ++rank)
      for (const Buffer& buffer : schedules[rank].buffers())
        if (buffer.role == role && buffer.count > 0 && problem.row(buffer.name) > 0)
          body(rank, buffer, positions_of(method, rank, ranks, s.tokens));
  };
  for_buffers(Role::input, [&](int rank, const Buffer& buffer, const Positions& positions) {
    std::vector<float> rows(buffer.count);
    inputs.fill(buffer.name, positions, 0, rows);
    executor->write(rank, schedules[rank].buffer(buffer.name), rows);
  });
  executor->run();
  for_buffers(Role::output, [&](int rank, const Buffer& buffer, const Positions& positions) {
    std::vector<float> got(buffer.count);
    std::vector<double> expected;
    executor->read(got, rank, schedules[rank].buffer(buffer.name));
    for (std::int64_t t = 0; t < buffer.count / problem.row(buffer.name); ++t)
      for (auto& head : heads) {
        const std::vector<double>& row = head.at(buffer.name)[positions.at(t)];
        expected.insert(expected.end(), row.begin(), row.end());
      }
    EXPECT_LT(relative_error(got, expected), 1e-5)
        << buffer.name << " of rank " << rank << " of " << ranks << " under " << to_string(layer.mask);
  });
}

/// Windows of one key, within a share, over several shares, and longer than the sequence.
const Mask masks[]{{},
                   {MaskKind::full},
                   {.window = 1},
                   {.window = 3},
                   {.window = 7},
                   {.window = 13},
                   {.window = 24},
                   {.window = 1000}};

/// The reason why a method does not take a mask; empty if it does.
std::string why_not(const std::string& method, const Mask& mask) {
  if (method == "dist_flash_attention" && !(mask == Mask{}))
    return "it balances a causal mask without a window";
  if (method.starts_with("token_ring") && mask.has_window())
    return "its queries stop at the first rank whose keys they do not see, and a window may hide that rank's "
           "keys alone";
  if (method.starts_with("window_halo") && !mask.has_window())
    return "it needs a window, such as --mask window:1024";
  return {};
}

TEST_P(EveryMask, IsThatOfTheTableAtEveryNumberOfRanks) {
  for (int ranks = 1; ranks <= 4; ++ranks)
    for (const Mask& mask : masks) {
      const Layer layer{.share = {24 / ranks, 12, 4, 3, 4, GateKind::none}, .pass = Pass::both, .mask = mask};
      const Refusal refusal = GetParam()->unsupported(layer, ranks);
      ASSERT_EQ(refusal.reason(), why_not(GetParam()->name, mask));
      if (!refusal) expect_dense(*GetParam(), layer, ranks);
    }
}

/// Documents without tokens, of one token, within a rank, and over three ranks of four.
TEST_P(EveryMask, IsThatOfTheTableInEachDocument) {
  if (!GetParam()->packs) GTEST_SKIP() << "takes one document";
  for (int ranks = 1; ranks <= 4; ++ranks)
    for (const Mask& mask : masks) {
      Layer layer{.share = {24 / ranks, 12, 4, 3, 4, GateKind::none}, .pass = Pass::both, .mask = mask};
      layer.starts = starts_of(std::vector<std::int64_t>{5, 0, 1, 13, 2, 3});
      if (!GetParam()->unsupported(layer, ranks)) expect_dense(*GetParam(), layer, ranks);
    }
}

std::vector<const SpMethod*> softmax_methods() {
  std::vector<const SpMethod*> all = sp_methods();
  std::erase_if(all, [](const SpMethod* method) { return method->attention != Attention::softmax; });
  return all;
}

INSTANTIATE_TEST_SUITE_P(, EveryMask, testing::ValuesIn(softmax_methods()),
                         [](const auto& method) { return method.param->name; });

TEST(Mask, LinearAttentionRefusesAllButTheCausalOne) {
  for (const SpMethod* method : sp_methods()) {
    if (method->attention != Attention::linear) continue;
    Layer layer{.share = {8, 4, 4, 4, 4}, .rule = method->rules.front()};
    EXPECT_EQ(method->unsupported(layer, 4).reason(), "") << method->name;
    for (const Mask& mask : {Mask{MaskKind::full}, Mask{.window = 2}}) {
      layer.mask = mask;
      EXPECT_EQ(method->unsupported(layer, 4).reason(),
                "its state is causal, and cannot take the mask " + to_string(mask))
          << method->name;
    }
  }
}

}  // namespace
