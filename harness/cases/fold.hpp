// SPDX-License-Identifier: Apache-2.0
// What a scan must give, folded serially in double, and how far a wire that rounds may lead away
// from it (docs/metrics/derivations.md).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/schedule/slice.hpp"

namespace baton {

/// The root mean square of the relative error of a value rounded to bf16: the error is uniform
/// within half a unit in the last place, and the mantissa's logarithm is uniform.
inline constexpr double bf16_rms_roundoff = 0.43 * bf16_roundoff;

/// The largest relative error of a state that folds the maps of `before` ranks if each message is
/// rounded by at most `roundoff`; 0 if messages are not rounded. Holds for every algorithm:
/// docs/metrics/derivations.md derives it.
double scan_tolerance(double roundoff, int before);

/// The expected error of one element of a scan on a wire that rounds to bf16.
struct WireError {
  double sum = 0;        ///< The fold with all signs made positive.
  double magnitude = 0;  ///< The expected square of the element.
  double variance = 0;   ///< The expected square of the element's error.

  /// Takes the map of one more rank, whatever the algorithm. A carry, a decay and a state are each
  /// rounded at most once on their way into the prefix of the next rank
  /// (docs/metrics/derivations.md).
  void take(double decay, double state) {
    constexpr double u = bf16_rms_roundoff * bf16_rms_roundoff;
    variance = decay * decay * (variance + 2 * u * magnitude) + u * state * state;
    magnitude = decay * decay * magnitude + state * state;
    sum = decay * sum + (state < 0 ? -state : state);
  }
  /// The variance of a prefix that may be rounded once more on its way to its rank.
  double of_prefix() const { return variance + bf16_rms_roundoff * bf16_rms_roundoff * magnitude; }
};

/// The largest accepted ratio of the root mean square error of `count` values to the predicted one:
/// 4, and more for few values, which do not make an average.
double most_rms(std::int64_t count);

/// The state that a rank must hold after a scan. If the wire rounds, `limits` bounds the error of
/// each element, and `most_error` the norm of all errors.
struct ExpectedPrefix {
  std::vector<float> values;
  std::vector<float> limits;
  double most_error = 0;
};

/// The fold of the maps of some ranks in scan order, in double.
class Fold {
 public:
  /// A fold of maps with a state [rows, columns]; `form` says which decays or matrices the maps
  /// have.
  Fold(std::int64_t rows, std::int64_t columns, bool wire_rounds, const MapForm& form = {});

  /// Takes the next rank's map: its decays [rows], or one a head, or its matrices, then its state
  /// [rows, columns].
  void take(std::span<const float> map);
  /// The state that the next rank must hold, with the errors that the wire may cause.
  ExpectedPrefix prefix() const;

 private:
  void take_matrices(std::span<const float> matrices, std::span<const float> state);

  std::size_t columns_;
  MapForm form_;
  int maps_ = 0;
  std::vector<double> prefix_;     // [rows, columns]
  std::vector<WireError> errors_;  // the same; empty if the wire does not round
};

}  // namespace baton
