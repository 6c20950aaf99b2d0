// SPDX-License-Identifier: Apache-2.0
// What the doctor says, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "harness/doctor/findings.hpp"

namespace baton::doctor {

/// The report as text of at most 100 columns: the verdict, the findings with advice, the ranks, and
/// a matrix of each executor's links.
std::string text_report(const Readings& readings, const std::vector<Finding>& findings);

/// The report as one JSON object with the keys "fit", "findings" and "readings".
std::string json_report(const Readings& readings, const std::vector<Finding>& findings);

}  // namespace baton::doctor
