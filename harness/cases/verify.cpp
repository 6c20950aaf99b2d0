// SPDX-License-Identifier: Apache-2.0
// Verification against a serial fold: to the last bit, or element by element within what roundings on the wire can do.
#include "harness/cases/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "harness/cases/exact_inputs.hpp"
#include "harness/cases/gaussian_inputs.hpp"

namespace baton {
namespace {

/// A value that no result can be: one left standing is an element that nobody wrote.
constexpr float poison = -12345.6789f;

/// The buffers of a collective are "own" and "into", in this order (collective.hpp).
Slice own(std::int64_t count) { return {0, 0, count}; }
Slice into(std::int64_t count) { return {1, 0, count}; }

std::int64_t own_count(const Subject& subject) {
  return subject.kind == Kind::exchange ? subject.shape.key_value_elements() : subject.shape.map_elements();
}

std::int64_t into_count(const Subject& subject) {
  switch (subject.kind) {
    case Kind::exclusive_scan: return subject.shape.state_elements();
    case Kind::all_gather: return subject.shape.map_elements() * subject.ranks;
    case Kind::exchange: return subject.shape.key_value_elements();
  }
  return 0;
}

/// The whole contribution of `rank`.
std::vector<float> contribution(const Subject& subject, const Inputs& inputs, int rank) {
  std::vector<float> all(own_count(subject));
  const auto rows = subject.kind == Kind::exclusive_scan ? subject.shape.rows() : 0;
  inputs.fill_decay(rank, std::span(all).first(rows));
  inputs.fill_state(rank, std::span(all).subspan(rows));
  return all;
}

std::unique_ptr<const Inputs> inputs_for(const Executor& executor, const Subject& subject) {
  if (wire_roundoff(executor) > 0) return std::make_unique<GaussianInputs>(subject.seed);
  return std::make_unique<ExactInputs>(subject.seed, subject.ranks);
}

/// What a rank's output must be: each element within `tolerance` times its magnitude, or exactly where that is 0.
template <class T>
struct Expected {
  std::span<const T> values;
  std::span<const T> magnitudes;
  double tolerance = 0;
};

template <class T>
void compare_with(const Expected<T>& expected, std::int64_t offset, int rank, const Executor& executor,
                  Comparison& result) {
  std::vector<float> got(expected.values.size());
  executor.read(got, rank, {1, offset, static_cast<std::int64_t>(got.size())});
  double errors = 0, values = 0;  // squared
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double value = expected.values[i], error = std::abs(got[i] - value);
    errors += error * error;
    values += value * value;
    if (error <= expected.tolerance * std::abs(expected.magnitudes[i])) continue;
    if (result.wrong++ == 0)
      result.first = fmt::format("rank {}, element {}: {} where {} was expected", rank, offset + i, got[i],
                                 static_cast<float>(value));
  }
  result.tolerance = std::max(result.tolerance, expected.tolerance);
  if (expected.tolerance > 0 && values > 0)
    result.relative_error = std::max(result.relative_error, std::sqrt(errors / values));
}

/// Of a contribution that came as it was, or was rounded once.
void compare_copy(std::span<const float> sent, std::int64_t offset, int rank, const Executor& executor,
                  Comparison& result) {
  compare_with<float>({sent, sent, wire_roundoff(executor)}, offset, rank, executor, result);
}

bool is_local(const Executor& executor, int rank) {
  const auto ranks = executor.local_ranks();
  return std::binary_search(ranks.begin(), ranks.end(), rank);
}

/// Folds the maps in scan order, in double, and compares at each rank with what came before it.
void compare_scan(const Executor& executor, const Subject& subject, const Inputs& inputs,
                  Comparison& result) {
  const std::int64_t rows = subject.shape.rows(), row = subject.shape.d_v;
  const double roundoff = wire_roundoff(executor);
  const std::vector<float> untouched(rows * row, poison);
  std::vector<double> prefix(rows * row, 0.0);
  std::vector<double> magnitude(roundoff > 0 ? prefix.size() : 0, 0.0);  // with all signs positive
  for (int place = 0; place < subject.ranks; ++place) {
    const int rank = subject.direction == Direction::forward ? place : subject.ranks - 1 - place;
    if (is_local(executor, rank) && place == 0)
      compare_with<float>({untouched, untouched}, 0, rank, executor, result);
    else if (is_local(executor, rank))
      compare_with<double>({prefix, roundoff > 0 ? magnitude : prefix, scan_tolerance(roundoff, place)}, 0,
                           rank, executor, result);
    const auto map = contribution(subject, inputs, rank);
    for (std::int64_t i = 0; i < rows * row; ++i) prefix[i] = map[i / row] * prefix[i] + map[rows + i];
    for (std::size_t i = 0; i < magnitude.size(); ++i)
      magnitude[i] = map[i / row] * magnitude[i] + std::abs(map[rows + i]);
  }
}

}  // namespace

double scan_tolerance(double roundoff, int before) {
  if (roundoff <= 0 || before < 1) return 0;
  constexpr double f32_roundoff = 1.0 / (1 << 24);
  // Of a tree that merges the maps: each is rounded at most once on its way.
  const int values = 2 * before - 1;
  return std::expm1(values * (std::log1p(roundoff) + 2 * std::log1p(f32_roundoff)));
}

void write_inputs(Executor& executor, const Subject& subject) {
  const auto inputs = inputs_for(executor, subject);
  const std::vector<float> poisoned(into_count(subject), poison);
  for (int rank : executor.local_ranks()) {
    executor.write(rank, own(own_count(subject)), contribution(subject, *inputs, rank));
    executor.write(rank, into(into_count(subject)), poisoned);
  }
}

Comparison compare(const Executor& executor, const Subject& subject) {
  const auto inputs = inputs_for(executor, subject);
  Comparison result;
  if (subject.kind == Kind::exclusive_scan) {
    compare_scan(executor, subject, *inputs, result);
    return result;
  }
  for (int rank : executor.local_ranks()) {
    if (subject.kind == Kind::exchange)
      compare_copy(contribution(subject, *inputs, (rank + 1) % subject.ranks), 0, rank, executor, result);
    for (int from = 0; from < subject.ranks && subject.kind == Kind::all_gather; ++from)
      compare_copy(contribution(subject, *inputs, from), from * own_count(subject), rank, executor, result);
  }
  return result;
}

}  // namespace baton
