// SPDX-License-Identifier: Apache-2.0
// Gradients against central differences, for tests of the oracles.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace baton {

using Numbers = std::vector<double>;

inline double dot(const Numbers& x, const Numbers& y) {
  double out = 0;
  for (std::size_t i = 0; i < x.size(); ++i) out += x[i] * y[i];
  return out;
}

/// Expects `gradient` to be that of loss() for the numbers x, by central differences.
inline void expect_derivative(Numbers& x, const Numbers& gradient, const std::function<double()>& loss,
                              const char* name) {
  ASSERT_EQ(x.size(), gradient.size()) << name;
  const double h = 1e-5;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double kept = x[i];
    x[i] = kept + h;
    const double above = loss();
    x[i] = kept - h;
    const double below = loss();
    x[i] = kept;
    EXPECT_NEAR(gradient[i], (above - below) / (2 * h), 1e-8) << name << " " << i;
  }
}

}  // namespace baton
