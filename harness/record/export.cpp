// SPDX-License-Identifier: Apache-2.0
#include "harness/record/export.hpp"

#include <fmt/format.h>

#include "harness/cases/case.hpp"
#include "harness/machine/system.hpp"
#include "harness/process/output.hpp"

namespace baton {

Registry<ExportFormat>& export_formats() {
  static Registry<ExportFormat> all("format of --export");
  return all;
}

std::vector<std::string> export_files(const Export& asked, int ranks) {
  std::vector<std::string> files;
  const ExportFormat* const format = export_formats().find(asked.format);
  if (format == nullptr) return files;
  for (int rank = 0; rank < ranks; ++rank)
    files.push_back(fmt::format("{}.{}{}", asked.path, rank, format->suffix));
  return files;
}

std::string export_case(const Export& asked, const Case& bench_case, int blocks) {
  if (asked.format.empty()) return {};
  const ExportFormat& format = export_formats().at(asked.format);
  const std::vector<std::string> files = export_files(asked, bench_case.ranks);
  for (int rank = 0; rank < bench_case.ranks; ++rank)
    write_text(files[rank], format.text(bench_case.workload->build_rank(rank, bench_case.split(blocks)),
                                        bench_case.name()));
  return fmt::format("# {}, a file a rank: {} to {}\n", format.summary, printable(files.front()),
                     printable(files.back()));
}

}  // namespace baton
