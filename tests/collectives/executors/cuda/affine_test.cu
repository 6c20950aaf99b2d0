// SPDX-License-Identifier: Apache-2.0
// The device bodies of combines of affine maps against sums in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "collectives/executors/cuda/affine.cuh"
#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/memory.cuh"
#include "collectives/executors/cuda/ranks.cuh"
#include "collectives/executors/cuda/steps.cuh"

namespace {

using namespace baton;

/// A recorded combine, what its buffers hold, and how its results may differ.
struct Problem {
  std::int64_t heads = 2;
  std::int64_t values = 16;  // rows of a head
  std::int64_t keys = 128;   // elements of a row
  bool transposed = false;
  bool composes = false;
  /// Rows that are cut off before and behind, if it applies.
  std::int64_t cut = 0;
  /// The buffer that the result overwrites: 0 none, 1 the earlier state, 2 the later one.
  int over = 0;
};

std::ostream& operator<<(std::ostream& out, const Problem& p) {
  return out << p.heads << " heads [" << p.values << ", " << p.keys << "]"
             << (p.transposed ? ", transposed" : "") << (p.composes ? ", composes" : ", applies") << ", cut "
             << p.cut << ", over " << p.over;
}

using Numbers = std::vector<float>;

class Affine : public testing::Test {
 protected:
  void SetUp() override {
    if (const Refusal refusal = lacks_gpus(1)) GTEST_SKIP() << refusal.reason();
  }

  /// Elements in which the device and double precision differ by more than `tolerance` times the
  /// sum of the magnitudes of the terms.
  static int wrong(const Problem& p, const std::function<float()>& state,
                   const std::function<float(std::int64_t)>& matrix, double tolerance) {
    const MapForm form{.kind = MapKind::affine, .share = p.values, .transposed = p.transposed};
    const std::int64_t rows = p.heads * p.values;
    Schedule s(0, 1);
    const Map like{{}, {0, 0, rows * p.keys}, p.keys, form};
    const Map earlier = s.scratch_map("earlier", like), later = s.scratch_map("later", like),
              room = s.scratch_map("room", like);
    const auto cut = [&](const Map& map) { return map.part(p.cut, rows - 2 * p.cut); };
    const Map into = p.over == 1 ? earlier : p.over == 2 ? later : room;
    if (p.composes)
      s.combine(room, earlier, later);
    else
      s.combine(cut(into.only_state()), cut(earlier.only_state()), cut(later));
    EXPECT_EQ(lacks_device_body(s).reason(), "");
    Case c{p, numbers(earlier, state, matrix), numbers(later, state, matrix)};
    DeviceMemory memory(s);
    memory.write(earlier.packed(), c.earlier);
    memory.write(later.packed(), c.later);
    run_on_device(nullptr, s, s.steps().front(), memory.operands(s.steps().front()));
    cuda(cudaDeviceSynchronize());
    Numbers got(into.packed().count);
    memory.read(got, into.packed());
    return c.count_wrong(got, tolerance);
  }

 private:
  static Numbers numbers(const Map& map, const std::function<float()>& state,
                         const std::function<float(std::int64_t)>& matrix) {
    Numbers all(map.packed().count);
    for (std::int64_t i = 0; i < map.packed().count; ++i) all[i] = i < map.decay.count ? matrix(i) : state();
    return all;
  }

  struct Case {
    Problem p;
    Numbers earlier, later;

    std::int64_t matrices() const { return p.heads * p.keys * p.keys; }
    double matrix(const Numbers& of, std::int64_t head, std::int64_t row, std::int64_t column) const {
      return of[(head * p.keys + row) * p.keys + column];
    }
    /// Element (row, b) of what acts on a row: A, or A transposed.
    double acting(const Numbers& of, std::int64_t head, std::int64_t row, std::int64_t b) const {
      return p.transposed ? matrix(of, head, b, row) : matrix(of, head, row, b);
    }

    bool differs(float got, double sum, double size, double tolerance) const {
      return !(std::abs(got - sum) <= tolerance * size);
    }

    int count_wrong(const Numbers& got, double tolerance) const {
      int wrong = 0;
      const std::int64_t n = p.keys, rows = p.heads * p.values;
      for (std::int64_t r = p.cut; r < rows - p.cut; ++r)
        for (std::int64_t a = 0; a < n; ++a) {
          const std::int64_t at = matrices() + r * n;
          double sum = later[at + a], size = std::abs(sum);
          for (std::int64_t b = 0; b < n; ++b) {
            const double term = acting(later, r / p.values, a, b) * earlier[at + b];
            sum += term, size += std::abs(term);
          }
          wrong += differs(got[at + a], sum, size, tolerance) ? 1 : 0;
        }
      return wrong + (p.composes ? count_wrong_matrices(got, tolerance) : 0);
    }

    int count_wrong_matrices(const Numbers& got, double tolerance) const {
      int wrong = 0;
      for (std::int64_t head = 0; head < p.heads; ++head)
        for (std::int64_t a = 0; a < p.keys; ++a)
          for (std::int64_t b = 0; b < p.keys; ++b) {
            double sum = 0, size = 0;
            for (std::int64_t c = 0; c < p.keys; ++c) {
              const double term = acting(later, head, a, c) * acting(earlier, head, c, b);
              sum += term, size += std::abs(term);
            }
            const double made = acting(got, head, a, b);
            wrong += differs(static_cast<float>(made), sum, size, tolerance) ? 1 : 0;
          }
      return wrong;
    }
  };
};

/// Both widths of tensor cores, rows that take plain multiplications, tiles of several heads, cuts
/// within a tile and within a head, results over their operands.
std::vector<Problem> problems() {
  std::vector<Problem> all;
  for (bool transposed : {false, true}) {
    for (std::int64_t keys : {128, 64, 5, 1, 96, 256})
      for (std::int64_t values : {128, 32, 3}) {
        all.push_back({3, values, keys, transposed, false});
        all.push_back({2, values, keys, transposed, true});
      }
    for (std::int64_t cut : {1, 16, 40}) all.push_back({2, 128, 128, transposed, false, cut});
    for (int over : {1, 2}) all.push_back({40, 128, 128, transposed, false, 0, over});
    all.push_back({300, 64, 64, transposed, false});
  }
  return all;
}

TEST_F(Affine, RealNumbersAsAccurateAsF32) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const auto draw = [&] { return normal(random); };
  const auto matrix = [&](std::int64_t) { return draw(); };
  for (const Problem& p : problems()) EXPECT_EQ(wrong(p, draw, matrix, 1e-6), 0) << p;
}

TEST_F(Affine, MatricesOfEverySizeAsAccurateAsF32) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> exponent(-23, 0);
  const auto draw = [&] { return normal(random); };
  const auto matrix = [&](std::int64_t) { return normal(random) * std::pow(10.0F, exponent(random)); };
  for (std::int64_t keys : {128, 64, 5}) EXPECT_EQ(wrong({2, 64, keys}, draw, matrix, 1e-6), 0) << keys;
}

/// Matrices with two entries of 1 or -1 in every row and column, as verification has.
TEST_F(Affine, IntegersOf23BitsAreExact) {
  std::mt19937 random(3);
  std::uniform_int_distribution<int> integer(-(1 << 22), 1 << 22);
  const auto state = [&] { return static_cast<float>(integer(random)); };
  for (const Problem& p : problems()) {
    const auto matrix = [&](std::int64_t i) {
      const std::int64_t row = i / p.keys % p.keys, column = i % p.keys;
      if (column != row && column != (row + 3) % p.keys) return 0.0F;
      return random() % 2 == 0 ? 1.0F : -1.0F;
    };
    if (!p.composes) {
      EXPECT_EQ(wrong(p, state, matrix, 0), 0) << p;
    }
  }
}

TEST_F(Affine, ProductsOfSmallIntegersAreExact) {
  std::mt19937 random(4);
  std::uniform_int_distribution<int> integer(-200, 200);
  const auto draw = [&] { return static_cast<float>(integer(random)); };
  for (const Problem& p : problems())
    EXPECT_EQ(wrong(
                  p, draw, [&](std::int64_t) { return draw(); }, 0),
              0)
        << p;
}

TEST_F(Affine, RefusesWhatNoTileHoldsAndWritingOverTheRightFactor) {
  const MapForm form{.kind = MapKind::affine, .share = 4};
  Schedule s(0, 1);
  const Map like{{}, {0, 0, 8 * 4}, 4, form};
  const Map earlier = s.scratch_map("earlier", like), later = s.scratch_map("later", like);
  s.combine(later, earlier, later);
  EXPECT_EQ(lacks_device_body(s).reason(), "");
  s.combine(earlier, earlier, later);
  EXPECT_EQ(lacks_device_body(s).reason(),
            "GPUs do not write the product of two matrices over its right factor");
  Step step;
  step.combine = {form, 5000};
  EXPECT_EQ(lacks_products(step).reason(), "GPUs have no tile for rows of 5000 elements");
}

}  // namespace
