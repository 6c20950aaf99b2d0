// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "sp_methods/layer_oracle.hpp"

namespace baton {
namespace {

/// 64 bits of which any change of `x` changes about half: the finaliser of SplitMix64.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

constexpr int drawn_bits = 16;

/// Normal values to draw from with replacement: a logarithm per element would take longer than the
/// rounds.
const std::array<float, 1 << drawn_bits>& normal_values() {
  static const auto values = [] {
    std::array<float, 1 << drawn_bits> drawn{};
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    for (float& value : drawn) value = normal(random);
    return drawn;
  }();
  return values;
}

float normal_value(std::uint64_t number) { return normal_values()[mixed(number) >> (64 - drawn_bits)]; }

/// A value that no result has. An element that still has it was not written.
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

/// The expected output of a rank. Each element may be off by `tolerance` times its magnitude.
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

/// Compares with a contribution that arrived unchanged, or was rounded once.
void compare_copy(std::span<const float> sent, std::int64_t offset, int rank, const Executor& executor,
                  Comparison& result) {
  compare_with<float>({sent, sent, wire_roundoff(executor)}, offset, rank, executor, result);
}

bool is_local(const Executor& executor, int rank) {
  const auto ranks = executor.local_ranks();
  return std::binary_search(ranks.begin(), ranks.end(), rank);
}

/// Folds the maps in scan order, in double, and compares each rank's output with the fold of the
/// ranks before it.
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

ExactInputs::ExactInputs(std::uint64_t seed, int ranks)
    : seed_(mixed(seed)), ranks_between_halves_(std::max(2, (ranks + 5) / 6)) {}

void ExactInputs::fill_decay(int rank, std::span<float> decay) const {
  for (std::size_t row = 0; row < decay.size(); ++row)
    decay[row] = (mixed(seed_ ^ row) + rank) % ranks_between_halves_ == 0 ? 0.5f : 1.0f;
}

void ExactInputs::fill_state(int rank, std::span<float> state) const {
  const std::uint64_t key = mixed(seed_ + static_cast<std::uint64_t>(rank) + 1);
  for (std::size_t i = 0; i < state.size(); ++i)
    state[i] = static_cast<float>(static_cast<int>(mixed(key ^ i) % 17) - 8);
}

void GaussianInputs::fill_decay(int rank, std::span<float> decay) const {
  const std::uint64_t key = mixed(~(seed_ + static_cast<std::uint64_t>(rank)));
  for (std::size_t row = 0; row < decay.size(); ++row)
    decay[row] = 1 / (1 + std::exp(-2 - normal_value(key ^ row)));
}

void GaussianInputs::fill_state(int rank, std::span<float> state) const {
  const std::uint64_t key = mixed(seed_ + static_cast<std::uint64_t>(rank) + 1);
  for (std::size_t i = 0; i < state.size(); ++i) state[i] = normal_value(key ^ i);
}

GaussianInputs::GaussianInputs(std::uint64_t seed) : seed_(mixed(seed)) {}

double scan_tolerance(double roundoff, int before) {
  if (roundoff <= 0 || before < 1) return 0;
  constexpr double f32_roundoff = 1.0 / (1 << 24);
  // The values of a tree that merges the maps; each is rounded at most once on its way.
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

double layer_tolerance(Dtype dtype, double roundoff, int ranks) {
  // dg is the difference of two sums of products, each of two tensors that were computed from
  // messages.
  constexpr int tensors = 4;
  return (dtype == Dtype::bf16 ? 5e-3 : 2e-5) + tensors * scan_tolerance(roundoff, ranks - 1);
}

void write_layer(Executor& executor, std::span<const Schedule> schedules, const SpMethod& method,
                 const LayerOracle& oracle, std::int64_t tokens) {
  for (int rank : executor.local_ranks()) {
    const Schedule& s = schedules[rank];
    const Positions positions = positions_of(method, rank, s.ranks(), tokens);
    for (const Buffer& buffer : s.buffers()) {
      const Slice slice = s.buffer(buffer.name);
      if (buffer.role == Role::input) executor.write(rank, slice, oracle.input(buffer.name, rank, positions));
      if (buffer.role == Role::output)
        executor.write(rank, slice,
                       std::vector<float>(buffer.count, std::numeric_limits<float>::quiet_NaN()));
    }
  }
}

Comparison compare_layer(const Executor& executor, std::span<const Schedule> schedules,
                         const SpMethod& method, const LayerOracle& oracle, std::int64_t tokens) {
  Comparison result;
  for (int rank : executor.local_ranks()) {
    const Schedule& s = schedules[rank];
    const Positions positions = positions_of(method, rank, s.ranks(), tokens);
    for (const Buffer& buffer : s.buffers()) {
      if (buffer.role != Role::output) continue;
      std::vector<float> got(buffer.count);
      executor.read(got, rank, s.buffer(buffer.name));
      const double error = relative_error(got, oracle.expected(buffer.name, positions));
      result.relative_error = std::max(result.relative_error, error);
      const double tolerance = layer_tolerance(buffer.dtype, wire_roundoff(executor), s.ranks());
      result.tolerance = std::max(result.tolerance, tolerance);
      if (error <= tolerance) continue;
      if (result.wrong++ == 0)
        result.first = fmt::format("rank {}, {}: relative error {:.1e}", rank, buffer.name, error);
    }
  }
  return result;
}

}  // namespace baton
