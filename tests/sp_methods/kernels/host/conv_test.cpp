// SPDX-License-Identifier: Apache-2.0
// The kernels of the convolution against the reference, of runs with halos and documents.
#include "sp_methods/kernels/conv.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "sp_methods/kernels/reference/convolution.hpp"

namespace {

using namespace baton;

using Values = std::vector<float>;

/// Rows of q, k and v.
struct Rows {
  std::array<Values, 3> of;

  Rows(const ConvShape& p, std::int64_t rows, std::mt19937_64* random = nullptr) {
    std::normal_distribution<float> normal;
    for (int i = 0; i < 3; ++i) {
      of[i].assign(rows * p.share.heads * (i < 2 ? p.share.d_k : p.share.d_v), 0.0F);
      for (float& value : of[i])
        if (random != nullptr) value = normal(*random);
    }
  }
  const float* at(int i) const { return of[i].data(); }
  template <class Kind>
  ConvIn<OnHost, Kind> in() const {
    return {at(0), at(1), at(2)};
  }
  template <class Kind>
  ConvOut<OnHost, Kind> out() {
    return {of[0].data(), of[1].data(), of[2].data()};
  }
};

/// A run of two sequences with three rows before it, and all that its kernels make.
class ConvRun {
 public:
  explicit ConvRun(const ConvShape& shape)
      : p(shape),
        random(7),
        x(p, p.share.tokens, &random),
        halo(p, p.before(), &random),
        dy(p, p.share.tokens, &random),
        y(p, p.share.tokens),
        dz(p, p.share.tokens),
        dx(p, p.share.tokens),
        back(p, p.before()),
        w(p.weight_heads() * p.channels() * p.width()),
        dw(w.size()) {
    std::normal_distribution<float> normal;
    for (float& value : w) value = normal(random);
    const ConvInputs<OnHost> in{x.in<Tensor>(), halo.in<Tensor>(), w.data()};
    const ConvShape all = p.rows(0, p.share.tokens);
    Conv::on_host({in, y.out<Tensor>()}, all);
    ConvActivationGradients::on_host({in, dy.in<Tensor>(), dz.out<State>()}, all);
    ConvInputGradients::on_host({dz.in<State>(), w.data(), {}, dx.out<Tensor>()}, all);
    ConvHaloGradients::on_host({dz.in<State>(), w.data(), back.out<State>()},
                               p.rows(0, std::min(p.before(), p.share.tokens)));
    ConvWeightGradients::on_host({in, dz.in<State>(), dw.data()}, all);
  }

  /// The reference of tokens [first, end) of one head, with what they see before them.
  ReferenceConvolution reference(int i, std::int64_t head, std::int64_t first, std::int64_t end,
                                 std::int64_t history) const {
    const std::int64_t width = i < 2 ? p.share.d_k : p.share.d_v;
    ReferenceConvolution of{.width = width, .taps = p.width()};
    of.has_unit_rows = p.has_unit_rows && i < 2;
    of.history = history;
    for (std::int64_t t = first - history; t < end; ++t) {
      const float* row = (t < 0 ? halo.at(i) + (t + p.before()) * p.share.heads * width
                                : x.at(i) + t * p.share.heads * width) +
                         head * width;
      of.x.insert(of.x.end(), row, row + width);
    }
    const auto from = w.begin() + (head % p.weight_heads() * p.channels() + i * p.share.d_k) * p.width();
    of.w.assign(from, from + width * p.width());
    return of;
  }

  ConvShape p;
  std::mt19937_64 random;
  Rows x, halo, dy, y, dz, dx, back;
  Values w, dw;
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
  for (int i = 0; i < 3; ++i)
    for (std::int64_t head = 0; head < run.p.share.heads; ++head) {
      const ReferenceConvolution of = run.reference(i, head, first, end, history);
      const std::int64_t row = run.p.share.heads * of.width, at = first * row + head * of.width;
      std::vector<double> dy;
      for (std::int64_t t = first; t < end; ++t) {
        const float* own = run.dy.at(i) + t * row + head * of.width;
        dy.insert(dy.end(), own, own + of.width);
      }
      const std::vector<double> dz = reference_activation_gradients(of, dy);
      const std::vector<double> dx = reference_input_gradients(of, dz);
      expect_near(reference_rows(of), run.y.at(i) + at, of.width, row);
      expect_near({dx.begin() + history * of.width, dx.end()}, run.dx.at(i) + at, of.width, row);
      if (history > 0)
        expect_near({dx.begin(), dx.begin() + history * of.width},
                    run.back.at(i) + (run.p.before() - history) * row + head * of.width, of.width, row);
      const std::vector<double> own = reference_weight_gradients(of, dz);
      const auto into =
          dw.begin() + (head % run.p.weight_heads() * run.p.channels() + i * run.p.share.d_k) * of.taps;
      std::transform(own.begin(), own.end(), into, into, std::plus<>());
    }
}

TEST(ConvKernels, AreTheReferenceOfEachDocument) {
  for (const bool has_unit_rows : {false, true})
    for (const std::vector<std::int64_t>& starts :
         {std::vector<std::int64_t>{}, {2, 3, 9}, {0, 8}, {-1, 5}}) {
      ConvShape p{.share = {.tokens = 11, .heads = 4, .d_k = 3, .d_v = 5}};
      p.share.batch = 2, p.share.conv = 4, p.has_unit_rows = has_unit_rows, p.starts = starts;
      const ConvRun run(p);
      std::vector<double> dw(run.dw.size());
      std::vector<std::int64_t> edges{0};
      for (const std::int64_t start : starts)
        if (start > 0) edges.push_back(start);
      edges.push_back(p.share.tokens);
      // Rows of the halo that are of the first document.
      const std::int64_t history =
          starts.empty() || starts.front() > 0 ? p.before() : -std::min<std::int64_t>(0, starts.front());
      for (std::size_t i = 1; i < edges.size(); ++i)
        compare(run, edges[i - 1], edges[i], i == 1 ? history : 0, dw);
      expect_near(dw, run.dw.data(), p.width(), p.width());
    }
}

/// Gradients of ones, and of three rows that another rank had.
TEST(ConvKernels, SendBackAndAddWhatRowsOfOthersSaw) {
  ConvShape p{.share = {.tokens = 3, .heads = 1, .d_k = 1, .d_v = 1}};
  p.share.conv = 4;
  const Values w{1, 10, 100, 1000, 1, 10, 100, 1000, 1, 10, 100, 1000}, ones(3, 1), later{5, 6, 7};
  Rows back(p, 3), dx(p, 3);
  const ConvIn<OnHost, State> dz{ones.data(), ones.data(), ones.data()};
  ConvHaloGradients::on_host({dz, w.data(), back.out<State>()}, p.rows(0, 3));
  EXPECT_EQ(back.of[0], (Values{1, 11, 111}));
  ConvInputGradients::on_host({dz, w.data(), {later.data(), later.data(), later.data()}, dx.out<Tensor>()},
                              p.rows(0, 3));
  EXPECT_EQ(dx.of[2], (Values{1110 + 5, 1100 + 6, 1000 + 7}));
}

}  // namespace
