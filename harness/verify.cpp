// SPDX-License-Identifier: Apache-2.0
// Exact verification against a serial fold.
#include "harness/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "harness/exact_inputs.hpp"

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
std::vector<float> contribution(const Subject& subject, const ExactInputs& inputs, int rank) {
  std::vector<float> all(own_count(subject));
  const auto rows = subject.kind == Kind::exclusive_scan ? subject.shape.rows() : 0;
  inputs.fill_decay(rank, std::span(all).first(rows));
  inputs.fill_state(rank, std::span(all).subspan(rows));
  return all;
}

void compare_with(std::span<const float> expected, std::int64_t offset, int rank, const Executor& executor,
                  Comparison& result) {
  std::vector<float> got(expected.size());
  executor.read(got, rank, {1, offset, static_cast<std::int64_t>(got.size())});
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == expected[i]) continue;
    if (result.wrong++ == 0)
      result.first =
          fmt::format("rank {}, element {}: {} where {} was expected", rank, offset + i, got[i], expected[i]);
  }
}

bool is_local(const Executor& executor, int rank) {
  const auto ranks = executor.local_ranks();
  return std::binary_search(ranks.begin(), ranks.end(), rank);
}

/// Folds the maps in scan order, in double, and compares at each rank with what came before it.
void compare_scan(const Executor& executor, const Subject& subject, const ExactInputs& inputs,
                  Comparison& result) {
  const std::int64_t rows = subject.shape.rows(), row = subject.shape.d_v;
  std::vector<double> prefix(rows * row, 0.0);
  for (int place = 0; place < subject.ranks; ++place) {
    const int rank = subject.direction == Direction::forward ? place : subject.ranks - 1 - place;
    if (is_local(executor, rank)) {
      std::vector<float> expected(prefix.begin(), prefix.end());
      if (place == 0) std::fill(expected.begin(), expected.end(), poison);  // must stay as it was
      compare_with(expected, 0, rank, executor, result);
    }
    const auto map = contribution(subject, inputs, rank);
    for (std::int64_t i = 0; i < rows * row; ++i) prefix[i] = map[i / row] * prefix[i] + map[rows + i];
  }
}

}  // namespace

void write_inputs(Executor& executor, const Subject& subject) {
  const ExactInputs inputs(subject.seed, subject.ranks);
  const std::vector<float> poisoned(into_count(subject), poison);
  for (int rank : executor.local_ranks()) {
    executor.write(rank, own(own_count(subject)), contribution(subject, inputs, rank));
    executor.write(rank, into(into_count(subject)), poisoned);
  }
}

Comparison compare(const Executor& executor, const Subject& subject) {
  const ExactInputs inputs(subject.seed, subject.ranks);
  Comparison result;
  if (subject.kind == Kind::exclusive_scan) {
    compare_scan(executor, subject, inputs, result);
    return result;
  }
  for (int rank : executor.local_ranks()) {
    if (subject.kind == Kind::exchange)
      compare_with(contribution(subject, inputs, (rank + 1) % subject.ranks), 0, rank, executor, result);
    for (int from = 0; from < subject.ranks && subject.kind == Kind::all_gather; ++from)
      compare_with(contribution(subject, inputs, from), from * own_count(subject), rank, executor, result);
  }
  return result;
}

}  // namespace baton
