// SPDX-License-Identifier: Apache-2.0
// The reference of the convolution against numbers by hand and finite differences.
#include "sp_methods/kernels/reference/convolution.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

namespace {

using namespace baton;
using testing::ElementsAre;

using Values = std::vector<double>;

const Values x{1, 2, 3, 4, 5, 6}, w{1, 10, 100, 1000}, ones(6, 1);

TEST(ReferenceConvolution, MeetsTheOwnTokenWithTheLastWeight) {
  const ReferenceConvolution of{.width = 1, .taps = 4, .x = x, .w = w};
  EXPECT_THAT(reference_sums(of), ElementsAre(1000, 2100, 3210, 4321, 5432, 6543));
  EXPECT_THAT(reference_input_gradients(of, ones), ElementsAre(1111, 1111, 1111, 1110, 1100, 1000));
  EXPECT_THAT(reference_weight_gradients(of, ones), ElementsAre(6, 10, 15, 21));
}

TEST(ReferenceConvolution, ReadsTheRowsBeforeItsTokens) {
  Values rows{7, 8, 9};
  rows.insert(rows.end(), x.begin(), x.end());
  const ReferenceConvolution of{.width = 1, .taps = 4, .x = rows, .w = w, .history = 3};
  EXPECT_THAT(reference_sums(of), ElementsAre(1987, 2198, 3219, 4321, 5432, 6543));
  EXPECT_THAT(reference_input_gradients(of, ones),
              ElementsAre(1, 11, 111, 1111, 1111, 1111, 1110, 1100, 1000));
}

TEST(ReferenceConvolution, ItsGradientsAreFiniteDifferences) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  const auto drawn = [&](std::size_t count) {
    Values values(count);
    for (double& value : values) value = normal(random);
    return values;
  };
  for (const bool has_unit_rows : {false, true}) {
    ReferenceConvolution of{.width = 3, .taps = 4, .has_unit_rows = has_unit_rows, .has_bias = has_unit_rows};
    of.x = drawn(3 * 7), of.w = drawn(3 * of.weights()), of.history = 2;
    const Values dy = drawn(3 * 5), dz = reference_activation_gradients(of, dy);
    const auto loss = [&] {
      const Values y = reference_rows(of);
      double sum = 0;
      for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
      return sum;
    };
    const auto expect_gradients = [&](Values& of_values, const Values& got) {
      for (std::size_t i = 0; i < got.size(); ++i) {
        constexpr double step = 1e-5;
        const double before = of_values[i];
        of_values[i] = before + step;
        const double more = loss();
        of_values[i] = before - step;
        const double less = loss();
        of_values[i] = before;
        EXPECT_NEAR(got[i], (more - less) / (2 * step), 1e-7) << i << (has_unit_rows ? " of unit rows" : "");
      }
    };
    expect_gradients(of.x, reference_input_gradients(of, dz));
    expect_gradients(of.w, reference_weight_gradients(of, dz));
  }
}

}  // namespace
