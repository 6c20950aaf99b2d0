// SPDX-License-Identifier: Apache-2.0
// What a run says of its predictions below its table.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace baton {

struct Row;

/// How far the predictions of a run were from the measured times.
class PredictionErrors {
 public:
  /// Adds a row if it is timed and has a prediction.
  void add(const Row& row);

  /// A table for each name and for all: the geometric mean of predicted over measured, which shows
  /// a bias, and that of the larger over the smaller less 1, which is the error. Empty without
  /// predictions.
  std::string table() const;

 private:
  std::map<std::string, std::vector<double>> log_ratios_;
};

}  // namespace baton
