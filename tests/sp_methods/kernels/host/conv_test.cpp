// SPDX-License-Identifier: Apache-2.0
// The kernels of the convolution against the reference, of runs with halos and documents.
#include "sp_methods/kernels/conv.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "sp_methods/kernels/reference/convolution.hpp"

namespace {

using namespace baton;

using Values = std::vector<float>;

/// A run of two sequences with three rows before it, and all that its kernels make.
class ConvRun {
 public:
  explicit ConvRun(const ConvShape& shape)
      : p(shape),
        random(7),
        x(drawn(p.tokens * p.row())),
        halo(drawn(p.before() * p.row())),
        dy(drawn(p.tokens * p.row())),
        w(drawn(p.channels() * p.weights())),
        y(x.size()),
        dz(x.size()),
        dx(x.size()),
        back(halo.size()),
        dw(w.size()) {
    const ConvInputs<OnHost> in{x.data(), halo.data(), w.data()};
    const ConvShape all = p.rows(0, p.tokens);
    Conv::on_host({in, y.data()}, all);
    ConvActivationGradients::on_host({in, dy.data(), dz.data()}, all);
    ConvInputGradients::on_host({dz.data(), w.data(), nullptr, dx.data(), nullptr}, all);
    ConvInputGradients::on_host({dz.data(), w.data(), nullptr, nullptr, back.data()},
                                p.rows(-p.before(), p.before()));
    ConvWeightGradients::on_host({x.data(), halo.data(), dz.data(), dw.data()}, all);
  }

  /// The place of the weights of a head.
  std::int64_t weights(std::int64_t head) const { return head * p.width % p.channels() * p.weights(); }

  /// The reference of tokens [first, end) of one head, with what they see before them.
  ReferenceConvolution reference(std::int64_t head, std::int64_t first, std::int64_t end,
                                 std::int64_t history) const {
    ReferenceConvolution of{
        .width = p.width, .taps = p.taps, .has_unit_rows = p.has_unit_rows, .has_bias = p.has_bias};
    of.history = history;
    for (std::int64_t t = first - history; t < end; ++t) {
      const auto row =
          (t < 0 ? halo.begin() + (t + p.before()) * p.row() : x.begin() + t * p.row()) + head * p.width;
      of.x.insert(of.x.end(), row, row + p.width);
    }
    const auto from = w.begin() + weights(head);
    of.w.assign(from, from + p.width * p.weights());
    return of;
  }

  ConvShape p;
  std::mt19937_64 random;
  Values x, halo, dy, w, y, dz, dx, back, dw;

 private:
  Values drawn(std::int64_t count) {
    std::normal_distribution<float> normal;
    Values values(count);
    for (float& value : values) value = normal(random);
    return values;
  }
};

void expect_near(const std::vector<double>& right, const float* got, std::int64_t width, std::int64_t row) {
  for (std::size_t i = 0; i < right.size(); ++i)
    EXPECT_NEAR(got[static_cast<std::int64_t>(i) / width * row + static_cast<std::int64_t>(i) % width],
                right[i], 2e-5)
        << i;
}

/// Compares all results of the tokens [first, end), which begin a document if they see no history.
void compare(const ConvRun& run, std::int64_t first, std::int64_t end, std::int64_t history,
             std::vector<double>& dw) {
  const std::int64_t row = run.p.row(), width = run.p.width;
  for (std::int64_t head = 0; head < run.p.heads; ++head) {
    const ReferenceConvolution of = run.reference(head, first, end, history);
    const std::int64_t at = first * row + head * width;
    std::vector<double> dy;
    for (std::int64_t t = first; t < end; ++t) {
      const float* own = run.dy.data() + t * row + head * width;
      dy.insert(dy.end(), own, own + width);
    }
    const std::vector<double> dz = reference_activation_gradients(of, dy);
    const std::vector<double> dx = reference_input_gradients(of, dz);
    expect_near(reference_rows(of), run.y.data() + at, width, row);
    expect_near({dx.begin() + history * width, dx.end()}, run.dx.data() + at, width, row);
    if (history > 0)
      expect_near({dx.begin(), dx.begin() + history * width},
                  run.back.data() + (run.p.before() - history) * row + head * width, width, row);
    const std::vector<double> own = reference_weight_gradients(of, dz);
    const auto into = dw.begin() + run.weights(head);
    std::transform(own.begin(), own.end(), into, into, std::plus<>());
  }
}

TEST(ConvKernels, AreTheReferenceOfEachDocument) {
  for (const bool has_unit_rows : {false, true})
    for (const std::vector<std::int64_t>& starts :
         {std::vector<std::int64_t>{}, {2, 3, 9}, {0, 8}, {-1, 5}}) {
      const ConvRun run({.tokens = 11,
                         .heads = 4,
                         .width = 5,
                         .taps = 4,
                         .batch = 2,
                         .has_unit_rows = has_unit_rows,
                         .has_bias = starts.size() != 2,
                         .starts = starts});
      std::vector<double> dw(run.dw.size());
      std::vector<std::int64_t> edges{0};
      for (const std::int64_t start : starts)
        if (start > 0) edges.push_back(start);
      edges.push_back(run.p.tokens);
      // Rows of the halo that are of the first document.
      const std::int64_t history =
          starts.empty() || starts.front() > 0 ? run.p.before() : -std::min<std::int64_t>(0, starts.front());
      for (std::size_t i = 1; i < edges.size(); ++i)
        compare(run, edges[i - 1], edges[i], i == 1 ? history : 0, dw);
      expect_near(dw, run.dw.data(), run.p.weights(), run.p.weights());
    }
}

/// Gradients of ones, and of three rows that another rank had.
TEST(ConvKernels, SendBackAndAddWhatRowsOfOthersSaw) {
  const ConvShape p{.tokens = 3, .heads = 1, .width = 1, .taps = 4};
  const Values w{1, 10, 100, 1000}, dz(3, 1), later{5, 6, 7};
  Values back(3), dx(3);
  ConvInputGradients::on_host({dz.data(), w.data(), nullptr, nullptr, back.data()}, p.rows(-3, 3));
  EXPECT_EQ(back, (Values{1, 11, 111}));
  ConvInputGradients::on_host({dz.data(), w.data(), later.data(), dx.data(), nullptr}, p.rows(0, 3));
  EXPECT_EQ(dx, (Values{1110 + 5, 1100 + 6, 1000 + 7}));
}

}  // namespace
