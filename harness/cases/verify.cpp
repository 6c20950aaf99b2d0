// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "harness/cases/inputs.hpp"

namespace baton {
namespace {

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

/// The expected output of a rank and the most that each element may be off; no `limits` demand
/// every bit. The error of all together may be `most_error`.
struct Expected {
  std::span<const float> values;
  std::span<const float> limits;
  double most_error = std::numeric_limits<double>::infinity();
};

/// Compares a part of a rank's output, from element `offset` on, which begins with `got`.
void compare_with(const Expected& expected, std::span<const float> got, std::int64_t offset, int rank,
                  Comparison& result) {
  double errors = 0, values = 0;  // squared
  result.elements += static_cast<std::int64_t>(got.size());
  const std::int64_t wrong_before = result.wrong;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double value = expected.values[i], error = std::abs(got[i] - value);
    errors += error * error;
    values += value * value;
    if (error <= (expected.limits.empty() ? 0.0 : static_cast<double>(expected.limits[i]))) continue;
    if (result.wrong++ == 0)
      result.first = fmt::format("rank {}, element {}: {} where {} was expected", rank, offset + i, got[i],
                                 static_cast<float>(value));
  }
  if (expected.limits.empty() || values == 0) return;
  result.relative_error = std::max(result.relative_error, std::sqrt(errors / values));
  if (std::isfinite(expected.most_error))
    result.tolerance = std::max(result.tolerance, expected.most_error / std::sqrt(values));
  if (std::sqrt(errors) <= expected.most_error || result.wrong > wrong_before) return;
  if (result.wrong++ == 0)
    result.first = fmt::format("rank {}: relative error {:.1e}, at most {:.1e} is expected of the wire", rank,
                               std::sqrt(errors / values), expected.most_error / std::sqrt(values));
}

std::vector<float> output(const Executor& executor, int rank, std::int64_t offset, std::size_t count) {
  std::vector<float> got(count);
  executor.read(got, rank, {1, offset, static_cast<std::int64_t>(count)});
  return got;
}

/// Compares with a contribution that arrived unchanged, or was rounded once.
void compare_copy(std::span<const float> sent, std::int64_t offset, int rank, const Executor& executor,
                  Comparison& result) {
  std::vector<float> limits;
  const auto roundoff = static_cast<float>(wire_roundoff(executor));
  if (roundoff > 0)
    for (const float value : sent) limits.push_back(std::abs(value) * roundoff);
  compare_with({sent, limits}, output(executor, rank, offset, sent.size()), offset, rank, result);
  result.tolerance = std::max(result.tolerance, wire_roundoff(executor));
}

/// What a rank must hold after a scan, and on a wire that rounds how far each element may be off.
struct ExpectedPrefix {
  std::vector<float> values;
  std::vector<float> limits;
  double most_error = 0;
};

/// The fold of the maps of some ranks in scan order, in double.
class Fold {
 public:
  Fold(const Subject& subject, bool wire_rounds)
      : row_(subject.shape.d_v),
        prefix_(subject.shape.state_elements(), 0.0),
        errors_(wire_rounds ? prefix_.size() : 0) {}

  void take(std::span<const float> map) {
    ++maps_;
    const std::size_t rows = prefix_.size() / row_;
    for (std::size_t i = 0, row = 0; row < rows; ++row)
      for (const std::size_t end = i + row_; i < end; ++i) prefix_[i] = map[row] * prefix_[i] + map[rows + i];
    for (std::size_t i = 0; i < errors_.size(); ++i) errors_[i].take(map[i / row_], map[rows + i]);
  }

  ExpectedPrefix prefix() const {
    constexpr double most_of_an_element = 12;  // times its root mean square
    const double worst = scan_tolerance(bf16_roundoff, maps_);
    ExpectedPrefix expected;
    expected.values.assign(prefix_.begin(), prefix_.end());
    double variance = 0;
    for (const WireError& error : errors_) {
      expected.limits.push_back(
          static_cast<float>(std::min(most_of_an_element * std::sqrt(error.of_prefix()), worst * error.sum)));
      variance += error.of_prefix();
    }
    expected.most_error = most_rms(static_cast<std::int64_t>(errors_.size())) * std::sqrt(variance);
    return expected;
  }

 private:
  std::size_t row_;
  int maps_ = 0;
  std::vector<double> prefix_;
  std::vector<WireError> errors_;
};

/// Calls `visit` with each of this process's ranks and what it must hold after a scan.
void fold_all(const Executor& executor, const Subject& subject,
              const std::function<void(int, ExpectedPrefix)>& visit) {
  const auto inputs = inputs_for(executor, subject);
  const auto ranks = executor.local_ranks();
  const bool is_forward = subject.direction == Direction::forward;
  const int last = is_forward ? ranks.back() : subject.ranks - 1 - ranks.front();
  Fold fold(subject, wire_roundoff(executor) > 0);
  for (int place = 0; place <= last; ++place) {
    const int rank = is_forward ? place : subject.ranks - 1 - place;
    if (place == 0 && std::binary_search(ranks.begin(), ranks.end(), rank))
      visit(rank, {std::vector<float>(subject.shape.state_elements(), poison), {}});  // it is left untouched
    else if (std::binary_search(ranks.begin(), ranks.end(), rank))
      visit(rank, fold.prefix());
    if (place < last) fold.take(contribution(subject, *inputs, rank));
  }
}

void compare_prefix(const Executor& executor, int rank, const ExpectedPrefix& expected, Comparison& result) {
  compare_with({expected.values, expected.limits, expected.most_error},
               output(executor, rank, 0, expected.values.size()), 0, rank, result);
}

Comparison compare_copies(const Executor& executor, const Subject& subject) {
  const auto inputs = inputs_for(executor, subject);
  Comparison result;
  for (int rank : executor.local_ranks()) {
    if (subject.kind == Kind::exchange)
      compare_copy(contribution(subject, *inputs, (rank + 1) % subject.ranks), 0, rank, executor, result);
    for (int from = 0; from < subject.ranks && subject.kind == Kind::all_gather; ++from)
      compare_copy(contribution(subject, *inputs, from), from * own_count(subject), rank, executor, result);
  }
  return result;
}

}  // namespace

Comparison sum(Comparison before, const Comparison& after) {
  before.wrong += after.wrong;
  if (before.first.empty()) before.first = after.first;
  before.relative_error = std::max(before.relative_error, after.relative_error);
  before.tolerance = std::max(before.tolerance, after.tolerance);
  before.elements = std::max(before.elements, after.elements);
  before.tokens = std::max(before.tokens, after.tokens);
  std::vector<std::int64_t> heads;
  std::set_union(before.heads.begin(), before.heads.end(), after.heads.begin(), after.heads.end(),
                 std::back_inserter(heads));
  before.heads = std::move(heads);
  return before;
}

double scan_tolerance(double roundoff, int before) {
  if (roundoff <= 0 || before < 1) return 0;
  constexpr double f32_roundoff = 1.0 / (1 << 24);
  // The values of a tree that merges the maps; each is rounded at most once on its way.
  const int values = 2 * before - 1;
  return std::expm1(values * (std::log1p(roundoff) + 2 * std::log1p(f32_roundoff)));
}

double most_rms(std::int64_t count) {
  return 4 + 8 / std::sqrt(static_cast<double>(std::max<std::int64_t>(count, 1)));
}

void write_inputs(Executor& executor, const Subject& subject) {
  const auto inputs = inputs_for(executor, subject);
  for (int rank : executor.local_ranks()) {
    executor.write(rank, own(own_count(subject)), contribution(subject, *inputs, rank));
    executor.write(rank, into(into_count(subject)), std::vector<float>(into_count(subject), poison));
  }
}

Comparison compare(const Executor& executor, const Subject& subject) {
  if (subject.kind != Kind::exclusive_scan) return compare_copies(executor, subject);
  Comparison result;
  fold_all(executor, subject, [&](int rank, const ExpectedPrefix& expected) {
    compare_prefix(executor, rank, expected, result);
  });
  return result;
}

Comparison compare(const Executor& executor, const Subject& subject, Oracles& oracles) {
  constexpr double most_kept = 2.5e8;  // bytes; a fold of many ranks in one process is made anew
  const double values = wire_roundoff(executor) > 0 ? 2 : 1;
  const double bytes = values * static_cast<double>(subject.shape.state_bytes() * subject.ranks);
  if (subject.kind != Kind::exclusive_scan || bytes > most_kept) return compare(executor, subject);
  using Prefixes = std::map<int, ExpectedPrefix>;
  const Shape& shape = subject.shape;
  const std::string key =
      fmt::format("scan of {} ranks {}, {} {} {}, seed {}, {}", subject.ranks, to_string(subject.direction),
                  shape.heads, shape.d_k, shape.d_v, subject.seed, to_string(executor.wire_dtype()));
  const auto prefixes = oracles.get<Prefixes>(key, bytes, [&] {
    Prefixes all;
    fold_all(executor, subject, [&](int rank, ExpectedPrefix expected) { all[rank] = std::move(expected); });
    return all;
  });
  Comparison result;
  for (const auto& [rank, expected] : *prefixes) compare_prefix(executor, rank, expected, result);
  return result;
}

}  // namespace baton
