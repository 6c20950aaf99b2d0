// SPDX-License-Identifier: Apache-2.0
#include "harness/options/checks.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "collectives/executors/cores.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/machine/system.hpp"
#include "harness/options/options.hpp"
#include "harness/process/output.hpp"
#include "harness/process/world.hpp"

namespace baton {
namespace {

/// The files that a run replaces or appends to, but for those of --json and --export.
std::vector<NamedFile> outputs_of(const Options& options) {
  constexpr std::string_view benchmark_out = "--benchmark_out";
  std::vector<NamedFile> outputs{
      {"--csv", options.csv}, {"--trace", options.trace}, {"--calibrate", options.calibrate}};
  for (const std::string& argument : options.benchmark_arguments)
    if (argument.rfind(std::string(benchmark_out) + "=", 0) == 0)
      outputs.push_back({std::string(benchmark_out), argument.substr(benchmark_out.size() + 1)});
  return outputs;
}

/// Throws UsageError for a file of records, which an output that replaces its file would destroy.
void refuse_records(const NamedFile& output) {
  std::ifstream file(output.path);
  std::string line;
  if (!std::getline(file, line)) return;
  const nlohmann::json first = nlohmann::json::parse(line, nullptr, false);
  if (first.is_object() && first.contains("bench"))
    throw UsageError(fmt::format("{}: {} has records, which would be lost: name another file", output.flag,
                                 quoted(output.path)));
}

/// Throws UsageError if the format is not built in, if there is not exactly one case, or if the
/// case cannot run or be written in the format.
void require_export(const Export& asked, const std::vector<Case>& cases) {
  if (asked.format.empty()) return;
  const ExportFormat* const format = export_formats().find(asked.format);
  if (format == nullptr) {
    std::string known;
    for (const ExportFormat* format : export_formats().all())
      known += (known.empty() ? "" : ", ") + format->name;
    throw UsageError(fmt::format("--export {}: this build knows {}", asked.format,
                                 known.empty()
                                     ? "no format, for libprotobuf was not there (Debian's libprotobuf-dev)"
                                     : "only " + known));
  }
  if (cases.size() != 1)
    throw UsageError(fmt::format("--export takes a single case, but these flags ask for {}", cases.size()));
  const Case& only = cases.front();
  if (const Refusal refusal = only.workload->unsupported(only.ranks))
    throw UsageError("--export: " + refusal.reason());
  format->text(only.workload->build_rank(0, only.split(1)), only.name());  // which may refuse
}

/// The files of --export.
std::vector<NamedFile> exports_of(const Options& options) {
  std::vector<NamedFile> files;
  if (options.exported.format.empty()) return files;
  for (const std::string& path : export_files(options.exported, options.cases.front().ranks))
    files.push_back({"--export", path});
  return files;
}

/// Throws UsageError, with the reason of the system, if the file of --resume cannot be read.
void require_readable(const std::string& journal) {
  if (!journal.empty() && access(journal.c_str(), R_OK) != 0)
    throw UsageError(fmt::format("--resume: cannot read {}: {}", quoted(journal), std::strerror(errno)));
}

}  // namespace

void check_size(std::int64_t a, std::int64_t b, std::int64_t c) {
  constexpr double most_bytes = 8.0 * (std::uint64_t{1} << 40);
  const double bytes = 4.0 * static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c);
  if (bytes > most_bytes)
    throw UsageError(fmt::format(
        "--heads, --d-k, --d-v, --tokens: a tensor of {:.0f} TiB a rank is too large, at most {:.0f}",
        bytes / (std::uint64_t{1} << 40), most_bytes / (std::uint64_t{1} << 40)));
}

std::optional<Topology> read_machine(const Options& options) {
  std::optional<Topology> topology;
  if (!options.topology.empty()) topology = read_topology(options.topology);
  for (const Case& bench_case : options.cases) {
    if (bench_case.backend->is_measured) continue;
    if (!topology)
      throw UsageError("executor " + bench_case.backend->name +
                       " needs a machine: --topology topologies/NAME.json");
    if (bench_case.ranks > topology->ranks())
      throw UsageError(fmt::format("--ranks: {} ranks do not fit on {}: {} nodes of {} are {}",
                                   bench_case.ranks, topology->name, topology->nodes,
                                   topology->ranks_per_node, topology->ranks()));
  }
  return topology;
}

void refuse_if_nothing_runs(const Options& options) {
  std::string reason;
  for (const Case& bench_case : options.cases) {
    const Refusal lack = bench_case.backend->lacking(bench_case.ranks);
    if (!lack) return;
    if (reason.empty()) reason = "executor " + bench_case.backend->name + " cannot run: " + lack.reason();
  }
  throw UsageError(reason);
}

void refuse_too_many_processes(int processes, std::string_view otherwise) {
  const int cores = usable_cores().count(), most = std::max(64, 16 * cores);
  if (is_launched() || processes <= most) return;
  throw UsageError(
      fmt::format("--ranks: {} processes on this host with {} cores, at most {} are started here; "
                  "start them on several hosts with your own mpirun or srun{}",
                  processes, cores, most, otherwise));
}

void refuse_too_many_processes(const Options& options) {
  refuse_too_many_processes(options.processes(), ", or take --executor simulator or local");
}

void require_exports(const Options& options) {
  require_export(options.exported, options.cases);
  std::vector<NamedFile> others = outputs_of(options);
  others.insert(
      others.end(),
      {{"--json", options.journal}, {"--resume", options.resume}, {"--topology", options.topology}});
  const std::vector<NamedFile> files = exports_of(options);
  for (const NamedFile& file : files) {
    // One after the other: of all ranks they are more files than may be open. Where the first can
    // be made, the others can.
    if (file.path != files.front().path && access(file.path.c_str(), F_OK) != 0) continue;
    require_files({file}, others);
    refuse_records(file);
  }
}

void require_outputs(const Options& options) {
  if (!options.trace.empty() && options.cases.size() != 1)
    throw UsageError(
        fmt::format("--trace takes a single case, but these flags ask for {}", options.cases.size()));
  require_exports(options);
  if (!options.calibrate.empty()) options.calibrated_ranks();  // which may refuse
  require_readable(options.resume);
  std::vector<NamedFile> outputs = outputs_of(options);
  require_files(outputs, {{"--resume", options.resume}});
  // A CSV file is appended to.
  for (const NamedFile& output : outputs)
    if (output.flag != "--csv") refuse_records(output);
  outputs.push_back({"--json", options.journal});  // which may go on where --resume ends
  std::vector<NamedFile> others = exports_of(options);
  others.push_back({"--topology", options.topology});
  require_files(outputs, others);
}

}  // namespace baton
