// SPDX-License-Identifier: Apache-2.0
// How well the predictions of one run did, row by row of its table.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/report/record.hpp"

namespace baton {

class PredictionErrors {
 public:
  /// Takes note of a timed record that has a prediction.
  void add(const Record& record);

  /// Per name and over all: the geometric mean of predicted over measured, which shows a bias, and of the larger over the
  /// smaller less 1, which is the error. Nothing without predictions.
  std::string table() const;

 private:
  std::map<std::string, std::vector<double>> log_ratios_;
};

}  // namespace baton
