// SPDX-License-Identifier: Apache-2.0
#include "harness/record/export.hpp"

#include <fmt/format.h>

#include "harness/cases/case.hpp"
#include "harness/process/output.hpp"
#include "harness/process/system.hpp"

namespace baton {

Registry<ExportFormat>& export_formats() {
  static Registry<ExportFormat> all("format of --export");
  return all;
}

std::string export_case(const Export& asked, const Case& bench_case, int blocks) {
  if (asked.format.empty()) return {};
  const ExportFormat& format = export_formats().at(asked.format);
  const auto file = [&](int rank) { return fmt::format("{}.{}{}", asked.path, rank, format.suffix); };
  for (int rank = 0; rank < bench_case.ranks; ++rank)
    write_text(file(rank), format.text(bench_case.workload->build_rank(rank, bench_case.split(blocks)),
                                       bench_case.name()));
  return fmt::format("# {}, a file a rank: {} to {}\n", format.summary, printable(file(0)),
                     printable(file(bench_case.ranks - 1)));
}

}  // namespace baton
