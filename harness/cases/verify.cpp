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
#include <utility>
#include <vector>

#include "harness/cases/fold.hpp"
#include "harness/cases/inputs.hpp"

namespace baton {
namespace {

// The buffers of a collective are "own" and "into", in this order (collective.hpp).

std::int64_t own_count(const Subject& subject) {
  switch (subject.kind) {
    case Kind::exclusive_scan:
    case Kind::all_gather: return subject.shape.map_elements();
    case Kind::reduce_scatter: return subject.shape.map_elements() * subject.ranks;
    case Kind::exchange: return subject.shape.key_value_elements();
    case Kind::all_to_all: return subject.ranks * subject.shape.block_elements(subject.ranks);
    case Kind::to_zigzag: return 2 * subject.shape.piece_elements();
  }
  return 0;
}

std::int64_t into_count(const Subject& subject) {
  switch (subject.kind) {
    case Kind::exclusive_scan: return subject.shape.state_elements();
    case Kind::all_gather: return subject.shape.map_elements() * subject.ranks;
    case Kind::reduce_scatter: return subject.shape.map_elements();
    case Kind::exchange:
    case Kind::all_to_all:
    case Kind::to_zigzag: return own_count(subject);
  }
  return 0;
}

/// The contributions of all ranks to a collective. Cases of one shape share them, so that each is
/// drawn once.
class Contributions {
 public:
  /// Keeps the drawn contributions in `oracles`, unless it is null.
  Contributions(const Executor& executor, const Subject& subject, Oracles* oracles)
      : subject_(subject), rounds_(wire_roundoff(executor) > 0), oracles_(oracles) {}

  /// The whole contribution of `rank`.
  std::shared_ptr<const std::vector<float>> of(int rank) const {
    if (oracles_ == nullptr) return std::make_shared<const std::vector<float>>(draw(rank));
    const std::string key =
        fmt::format("inputs of rank {} of {}, {} {} {} of {} elements, {}, seed {}", rank, subject_.ranks,
                    to_string(subject_.shape.map), decays(), subject_.shape.row(), own_count(subject_),
                    rounds_ ? "Gaussian" : "exact", subject_.seed);
    return oracles_->get<std::vector<float>>(key, 4.0 * static_cast<double>(own_count(subject_)),
                                             [&] { return draw(rank); });
  }

 private:
  /// The number of elements at the start of a contribution that are decays or matrices.
  std::int64_t decays() const {
    return subject_.kind == Kind::exclusive_scan ? subject_.shape.decay_elements() : 0;
  }

  std::vector<float> draw(int rank) const {
    return rounds_ ? draw_from(GaussianInputs(subject_.seed), rank)
                   : draw_from(ExactInputs(subject_.seed, subject_.ranks, subject_.shape.map), rank);
  }
  std::vector<float> draw_from(const Inputs& inputs, int rank) const {
    std::vector<float> all(own_count(subject_));
    inputs.fill_decays(rank, std::span(all).first(decays()), subject_.shape.map, subject_.shape.row());
    inputs.fill_state(rank, std::span(all).subspan(decays()));
    return all;
  }

  const Subject& subject_;
  bool rounds_;
  Oracles* oracles_;
};

/// The expected output of a rank. `limits` bounds the error of each element; without limits all
/// bits must agree. `most_error` bounds the norm of all errors.
struct Expected {
  std::span<const float> values;
  std::span<const float> limits;
  double most_error = std::numeric_limits<double>::infinity();
};

/// Compares elements of one rank's output, piece by piece.
class Compared {
 public:
  Compared(const Expected& expected, int rank, Comparison& result)
      : expected_(expected), rank_(rank), result_(result) {}

  /// Compares `got`, which begins with element `offset` of the output, with the expected values
  /// from `first` on.
  void take(std::span<const float> got, std::int64_t offset, std::size_t first) {
    result_.elements += static_cast<std::int64_t>(got.size());
    const auto values = expected_.values.subspan(first, got.size());
    if (expected_.limits.empty() && std::equal(got.begin(), got.end(), values.begin())) return;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double value = values[i], error = std::abs(got[i] - value);
      errors_ += error * error;
      values_ += value * value;
      const double limit = expected_.limits.empty() ? 0 : expected_.limits[first + i];
      if (error <= limit) continue;
      ++wrong_;
      note([&] {
        return fmt::format("rank {}, element {}: {} where {} was expected", rank_,
                           offset + static_cast<std::int64_t>(i), got[i], values[i]);
      });
    }
  }

  /// Compares the norm of all errors with the one that rounding on the wire explains.
  void finish() {
    if (expected_.limits.empty() || values_ == 0) return;
    const double error = std::sqrt(errors_ / values_), most = expected_.most_error / std::sqrt(values_);
    result_.relative_error = std::max(result_.relative_error, error);
    if (std::isfinite(most)) result_.tolerance = std::max(result_.tolerance, most);
    if (error <= most || wrong_ > 0) return;
    note([&] {
      return fmt::format("rank {}: relative error {:.1e}, at most {:.1e} is expected of the wire", rank_,
                         error, most);
    });
  }

 private:
  template <class Text>
  void note(const Text& text) {
    if (result_.wrong++ == 0) result_.first = text();
  }

  const Expected& expected_;
  int rank_;
  Comparison& result_;
  double errors_ = 0, values_ = 0;  // squared
  std::int64_t wrong_ = 0;
};

/// Compares a rank's output from element `offset` on, in pieces that fit in a cache.
void compare_output(const Executor& executor, int rank, std::int64_t offset, const Expected& expected,
                    Comparison& result) {
  constexpr std::size_t piece = 1 << 18;
  std::vector<float> got(std::min(piece, expected.values.size()));
  Compared compared(expected, rank, result);
  for (std::size_t first = 0; first < expected.values.size(); first += piece) {
    const auto part = std::span(got).first(std::min(piece, expected.values.size() - first));
    const std::int64_t from = offset + static_cast<std::int64_t>(first);
    executor.read(part, rank, {1, from, static_cast<std::int64_t>(part.size())});
    compared.take(part, from, first);
  }
  compared.finish();
}

/// Compares an output with a contribution that arrived unchanged, or was rounded once.
void compare_copy(std::span<const float> sent, std::int64_t offset, int rank, const Executor& executor,
                  Comparison& result) {
  std::vector<float> limits;
  const auto roundoff = static_cast<float>(wire_roundoff(executor));
  if (roundoff > 0)
    for (const float value : sent) limits.push_back(std::abs(value) * roundoff);
  compare_output(executor, rank, offset, {sent, limits}, result);
  result.tolerance = std::max(result.tolerance, wire_roundoff(executor));
}

/// Calls `visit` with each of this process's ranks and the state that it must hold after a scan.
void fold_all(const Executor& executor, const Subject& subject, const Contributions& contributions,
              const std::function<void(int, ExpectedPrefix)>& visit) {
  const auto ranks = executor.local_ranks();
  const bool is_forward = subject.direction == Direction::forward;
  const int last = is_forward ? ranks.back() : subject.ranks - 1 - ranks.front();
  MapForm form = subject.shape.form();
  form.transposed = !is_forward;
  Fold fold(subject.shape.rows(), subject.shape.row(), wire_roundoff(executor) > 0, form);
  for (int place = 0; place <= last; ++place) {
    const int rank = is_forward ? place : subject.ranks - 1 - place;
    if (place == 0 && std::binary_search(ranks.begin(), ranks.end(), rank))
      visit(rank, {std::vector<float>(subject.shape.state_elements(), poison), {}});  // it is left untouched
    else if (std::binary_search(ranks.begin(), ranks.end(), rank))
      visit(rank, fold.prefix());
    if (place < last) fold.take(*contributions.of(rank));
  }
}

void compare_prefix(const Executor& executor, int rank, const ExpectedPrefix& expected, Comparison& result) {
  compare_output(executor, rank, 0, {expected.values, expected.limits, expected.most_error}, result);
}

/// Compares the pieces of a rank in a zigzag layout: of 2P pieces, rank r has r and 2P - 1 - r.
void compare_pieces(const Executor& executor, const Subject& subject, int rank,
                    const Contributions& contributions, Comparison& result) {
  const std::int64_t count = subject.shape.piece_elements();
  for (const auto& [place, piece] : {std::pair{0, rank}, {1, 2 * subject.ranks - 1 - rank}}) {
    const auto sent = contributions.of(piece / 2);
    compare_copy(std::span(*sent).subspan(piece % 2 * count, count), place * count, rank, executor, result);
  }
}

Comparison compare_copies(const Executor& executor, const Subject& subject,
                          const Contributions& contributions) {
  Comparison result;
  for (int rank : executor.local_ranks()) {
    if (subject.kind == Kind::exchange)
      compare_copy(*contributions.of((rank + 1) % subject.ranks), 0, rank, executor, result);
    for (int from = 0; from < subject.ranks && subject.kind == Kind::all_gather; ++from)
      compare_copy(*contributions.of(from), from * own_count(subject), rank, executor, result);
    const std::int64_t block = own_count(subject) / subject.ranks;
    for (int from = 0; from < subject.ranks && subject.kind == Kind::all_to_all; ++from) {
      const auto sent = contributions.of(from);
      compare_copy(std::span(*sent).subspan(rank * block, block), from * block, rank, executor, result);
    }
    if (subject.kind == Kind::to_zigzag) compare_pieces(executor, subject, rank, contributions, result);
  }
  return result;
}

/// Compares the sums of a reduce-scatter with folds of maps whose decays are 1.
Comparison compare_sums(const Executor& executor, const Subject& subject,
                        const Contributions& contributions) {
  Comparison result;
  const std::int64_t count = into_count(subject);
  std::vector<float> map(1 + count, 1.0F);
  for (int rank : executor.local_ranks()) {
    Fold fold(1, count, wire_roundoff(executor) > 0);
    for (int from = 0; from < subject.ranks; ++from) {
      std::copy_n(contributions.of(from)->begin() + rank * count, count, map.begin() + 1);
      fold.take(map);
    }
    compare_prefix(executor, rank, fold.prefix(), result);
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

void write_inputs(Executor& executor, const Subject& subject, Oracles* oracles) {
  const Contributions contributions(executor, subject, oracles);
  for (int rank : executor.local_ranks()) {
    executor.write(rank, {0, 0, own_count(subject)}, *contributions.of(rank));
    executor.scatter(rank, {1, 0, into_count(subject)}, 1, poison);
  }
}

Comparison compare(const Executor& executor, const Subject& subject, Oracles* oracles) {
  const Contributions contributions(executor, subject, oracles);
  if (subject.kind == Kind::reduce_scatter) return compare_sums(executor, subject, contributions);
  if (subject.kind != Kind::exclusive_scan) return compare_copies(executor, subject, contributions);
  Comparison result;
  const auto compare_rank = [&](int rank, const ExpectedPrefix& expected) {
    compare_prefix(executor, rank, expected, result);
  };
  constexpr double most_kept = 2.5e8;  // bytes; a fold of many ranks in one process is made anew
  const double values = wire_roundoff(executor) > 0 ? 2 : 1;
  const double bytes = values * static_cast<double>(subject.shape.state_bytes() * subject.ranks);
  if (oracles == nullptr || bytes > most_kept) {
    fold_all(executor, subject, contributions, compare_rank);
    return result;
  }
  using Prefixes = std::map<int, ExpectedPrefix>;
  const Shape& shape = subject.shape;
  const std::string key = fmt::format("scan of {} ranks {}, {} {} {} {}, seed {}, {}", subject.ranks,
                                      to_string(subject.direction), to_string(shape.map), shape.heads,
                                      shape.d_k, shape.d_v, subject.seed, to_string(executor.wire_dtype()));
  const auto prefixes = oracles->get<Prefixes>(key, bytes, [&] {
    Prefixes all;
    fold_all(executor, subject, contributions,
             [&](int rank, ExpectedPrefix expected) { all[rank] = std::move(expected); });
    return all;
  });
  for (const auto& [rank, expected] : *prefixes) compare_rank(rank, expected);
  return result;
}

}  // namespace baton
