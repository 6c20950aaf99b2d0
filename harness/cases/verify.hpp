// SPDX-License-Identifier: Apache-2.0
// The oracle of collectives: inputs of every rank, the results that they must give, and comparisons
// with them.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/collective.hpp"
#include "collectives/executors/executor.hpp"
#include "collectives/executors/team.hpp"

namespace baton {

/// A cache of expected results, which the cases of one comparison group share, and the team of
/// processes that computes them.
class Oracles {
 public:
  /// Keeps at most `most_bytes` of values, as their makers count them. Equal on all processes.
  explicit Oracles(Team team, double most_bytes = 1e9) : team_(std::move(team)), most_bytes_(most_bytes) {}

  /// The processes that verify together.
  const Team& team() const { return team_; }

  /// The value called `key`, which `make` computes if it is not kept. A key stands for one type.
  /// All processes must ask for the same keys in the same order, with the same `bytes`, if `make`
  /// is collective.
  template <class Value>
  std::shared_ptr<const Value> get(const std::string& key, double bytes, const std::function<Value()>& make) {
    for (auto entry = kept_.begin(); entry != kept_.end(); ++entry) {
      if (entry->key != key) continue;
      kept_.splice(kept_.begin(), kept_, entry);
      return std::static_pointer_cast<const Value>(entry->value);
    }
    auto value = std::make_shared<const Value>(make());
    kept_.push_front({key, bytes, value});
    bytes_ += bytes;
    for (; bytes_ > most_bytes_ && kept_.size() > 1; kept_.pop_back()) bytes_ -= kept_.back().bytes;
    return value;
  }

 private:
  struct Entry {
    std::string key;
    double bytes;
    std::shared_ptr<const void> value;
  };

  Team team_;
  double most_bytes_;
  double bytes_ = 0;
  std::list<Entry> kept_;  // the last one asked for first
};

/// The result of a comparison with the oracle on this process's ranks.
struct Comparison {
  /// Elements that differ, tensors outside their tolerance, and rounds that left other results.
  std::int64_t wrong = 0;
  /// A description of the first difference.
  std::string first;
  /// The largest ||got - expected|| / ||expected|| of a tensor; 0 if the comparison is exact.
  double relative_error = 0;
  /// The largest relative error that would have passed; 0 if the comparison is exact.
  double tolerance = 0;
  /// Elements of a collective's results that were compared.
  std::int64_t elements = 0;
  /// Tokens a rank that were compared with the recurrence; `heads` has the compared heads of a
  /// layer.
  std::int64_t tokens = 0;
  std::vector<std::int64_t> heads;
};

/// The result of two comparisons together.
Comparison sum(Comparison before, const Comparison& after);

/// A value that no result has, even if it is rounded to bf16. It marks elements that were not
/// written.
inline constexpr float poison = -2.3456789e38f;

/// One run of a collective whose outputs are checked.
struct Subject {
  Kind kind = Kind::exclusive_scan;
  Shape shape;
  int ranks = 1;
  Direction direction = Direction::forward;
  std::uint64_t seed = 1;
};

/// Writes the inputs of this process's ranks, and poisons their outputs. Inputs are exact, or
/// Gaussian if the executor rounds what it sends. `oracles`, unless it is null, keeps them for the
/// other cases of this shape.
void write_inputs(Executor& executor, const Subject& subject, Oracles* oracles = nullptr);

/// Compares the outputs of this process's ranks with a serial fold, to the last bit. If the
/// executor rounds, the error of a rank is compared with the one that rounding is expected to
/// cause. The error of an element is then compared with 12 times its share of that, and with
/// `scan_tolerance` of the fold of absolute values. `oracles`, unless it is null, keeps the fold
/// for other collectives of its kind.
Comparison compare(const Executor& executor, const Subject& subject, Oracles* oracles = nullptr);

}  // namespace baton
