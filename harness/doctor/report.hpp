// SPDX-License-Identifier: Apache-2.0
// What the doctor says, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "harness/doctor/findings.hpp"

namespace baton::doctor {

/// At most 100 columns wide: the verdict, the findings with what to do, then the ranks and a matrix
/// of each executor's links.
std::string text_report(const Readings& readings, const std::vector<Finding>& findings);

/// One object: "fit", "findings" and "readings".
std::string json_report(const Readings& readings, const std::vector<Finding>& findings);

/// The text in lines of at most 100 columns; all but the first begin with `indent` blanks.
std::string wrapped(const std::string& text, int indent);

}  // namespace baton::doctor
