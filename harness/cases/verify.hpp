// SPDX-License-Identifier: Apache-2.0
// The oracles: inputs of every rank, the results that they must give, and comparisons with them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/collective.hpp"
#include "collectives/executors/executor.hpp"

namespace baton {

struct SpMethod;
class LayerOracle;

/// The result of a comparison with the oracle on this process's ranks.
struct Comparison {
  /// Elements that differ, or tensors outside their tolerance.
  std::int64_t wrong = 0;
  /// The first of them, for people.
  std::string first;
  /// The largest ||got - expected|| / ||expected|| of a tensor; 0 if the comparison is exact.
  double relative_error = 0;
  /// The largest relative error that would have passed; 0 if the comparison is exact.
  double tolerance = 0;
};

/// One set of inputs of a collective for all ranks; every process can make those of any rank.
class Inputs {
 public:
  virtual ~Inputs() = default;

  /// The decays [rows] of `rank`'s map.
  virtual void fill_decay(int rank, std::span<float> decay) const = 0;
  /// A state, or any other payload, of `rank`.
  virtual void fill_state(int rank, std::span<float> state) const = 0;
};

/// Inputs whose every sum and product is exact in f32, so that all algorithms and all orders of
/// combination must agree to the last bit: states of small integers, decays of 1 and 1/2 with at
/// most six halves in any column of ranks.
///
/// With |state| <= 8 and P ranks a prefix has at most 4 + log2 P bits before the binary point and 6
/// after it: 24 at P = 16384.
class ExactInputs : public Inputs {
 public:
  ExactInputs(std::uint64_t seed, int ranks);

  void fill_decay(int rank, std::span<float> decay) const override;
  void fill_state(int rank, std::span<float> state) const override;

 private:
  std::uint64_t seed_;
  std::uint64_t ranks_between_halves_;
};

/// Inputs as real layers have them, for executors that round: states of N(0, 1), decays of
/// sigmoid(N(2, 1)), most of them between 0.7 and 0.95. Each value has all bits of an f32, so that
/// every rounding changes it.
class GaussianInputs : public Inputs {
 public:
  explicit GaussianInputs(std::uint64_t seed);

  void fill_decay(int rank, std::span<float> decay) const override;
  void fill_state(int rank, std::span<float> state) const override;

 private:
  std::uint64_t seed_;
};

/// One collective's run to be checked.
struct Subject {
  Kind kind = Kind::exclusive_scan;
  Shape shape;
  int ranks = 1;
  Direction direction = Direction::forward;
  std::uint64_t seed = 1;
};

/// The largest relative error of a state that folds the maps of `before` ranks if each message is
/// rounded by at most `roundoff`; 0 if messages are not rounded. Holds for every algorithm:
/// docs/metrics.md derives it.
double scan_tolerance(double roundoff, int before);

/// Writes inputs into, and poison over the outputs of, this process's ranks. The inputs are exact
/// ones, or Gaussian ones if the executor rounds what it sends.
void write_inputs(Executor& executor, const Subject& subject);

/// Compares the outputs of this process's ranks with a serial fold: to the last bit, or, if the
/// executor rounds, element by element within `scan_tolerance` of the fold of absolute values.
Comparison compare(const Executor& executor, const Subject& subject);

/// The largest ||got - expected|| / ||expected|| of an output tensor of `dtype` on `ranks` ranks:
/// the error of the arithmetic, and that of messages which are each rounded by at most `roundoff`.
double layer_tolerance(Dtype dtype, double roundoff, int ranks);

/// Writes the oracle's inputs into, and NaN over the outputs of, this process's ranks.
void write_layer(Executor& executor, std::span<const Schedule> schedules, const SpMethod& method,
                 const LayerOracle& oracle, std::int64_t tokens);

/// Compares the outputs of this process's ranks; `wrong` counts tensors outside the tolerance.
Comparison compare_layer(const Executor& executor, std::span<const Schedule> schedules,
                         const SpMethod& method, const LayerOracle& oracle, std::int64_t tokens);

}  // namespace baton
