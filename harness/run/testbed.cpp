// SPDX-License-Identifier: Apache-2.0
// What all testbeds share.
#include "harness/run/testbed.hpp"

#include <algorithm>

namespace baton {

void Testbed::note(Record& record, const Comparison& comparison) const {
  const std::string first = team_.first(comparison.first);
  record.wrong += team_.sum(comparison.wrong);
  record.relative_error = std::max(record.relative_error, team_.max(comparison.relative_error));
  record.tolerance = std::max(record.tolerance, team_.max(comparison.tolerance));
  if (record.first_wrong.empty()) record.first_wrong = first;
}

}  // namespace baton
