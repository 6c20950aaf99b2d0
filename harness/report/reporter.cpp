// SPDX-License-Identifier: Apache-2.0
// Reporters.
#include "harness/report/reporter.hpp"

#include "harness/report/columns.hpp"

namespace baton {

bool TableReporter::ReportContext(const Context&) {
  GetOutputStream() << experiment_.header() << experiment_.table().head() << std::flush;
  return true;
}

void TableReporter::ReportRuns(const std::vector<Run>&) {
  experiment_.progress().clear();
  GetOutputStream() << experiment_.take_output() << std::flush;
}

void TableReporter::Finalize() { GetOutputStream() << experiment_.footer() << std::flush; }

SilentReporter::SilentReporter() {
  SetOutputStream(&nowhere_);
  SetErrorStream(&nowhere_);
}

bool SilentReporter::ReportContext(const Context&) { return true; }

void SilentReporter::ReportRuns(const std::vector<Run>&) {}

}  // namespace baton
