// SPDX-License-Identifier: Apache-2.0
// The flags that all benches share, from their declaration to the axes of a sweep.
#include "harness/options/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "collectives/schedule/errors.hpp"
#include "harness/process/system.hpp"
#include "harness/process/world.hpp"
#include "harness/record/fields.hpp"

namespace baton {
namespace {

const Choices<TimingMode> timing_choices{
    {"isolated", TimingMode::isolated}, {"streaming", TimingMode::streaming}, {"graph", TimingMode::graph}};

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const Backend& backend : backends()) names.push_back(backend.name);
  return names;
}

/// Like resolve_names, and says of an executor that another build has which one that is.
std::vector<std::string> resolve_executors(const std::vector<std::string>& words) {
  const std::vector<std::string> known = backend_names(), elsewhere = device_executors();
  const auto holds = [](const auto& names, const std::string& word) {
    return std::find(names.begin(), names.end(), word) != names.end();
  };
  for (const std::string& word : words)
    if (holds(elsewhere, word) && !holds(known, word))
      throw UsageError(fmt::format(
          "--executor: {} needs the cuda build: cmake --preset cuda, or ./run on a machine with GPUs", word));
  return resolve_names("executor", words, known);
}

int block_count(const std::string& word) {
  if (word == "auto") return auto_blocks;
  constexpr int most_blocks = 1 << 20;
  int count = 0;
  const char* end = word.data() + word.size();
  const auto parsed = std::from_chars(word.data(), end, count);
  if (parsed.ptr != end || parsed.ec != std::errc{} || count < 1 || count > most_blocks)
    throw UsageError("--blocks takes 'auto' or a number from 1 to 2^20, not " + quoted(word));
  return count;
}

std::vector<int> block_counts(const std::vector<std::string>& words) {
  std::vector<int> counts;
  for (const std::string& word : words) {
    const int count = block_count(word);
    if (std::find(counts.begin(), counts.end(), count) != counts.end())
      throw UsageError("--blocks names " + quoted(word) + " twice");
    counts.push_back(count);
  }
  return counts;
}

std::vector<int> distinct(const std::vector<int>& ranks) {
  for (auto count = ranks.begin(); count != ranks.end(); ++count)
    if (std::find(ranks.begin(), count, *count) != count)
      throw UsageError(fmt::format("--ranks names {} twice", *count));
  return ranks;
}

void declare_axes(Flags& flags, RawOptions& raw) {
  flags.add("--executor,--executors", raw.executors, "executors that run the schedules").list();
  if (launched_size() > 0) raw.ranks.assign(1, launched_size());
  flags.add("--ranks", raw.ranks, "rank counts; the largest is launched, or must be the world it runs in")
      .list()
      .range(1, 16384);
  flags
      .add("--ranks-per-node", raw.ranks_a_node,
           "ranks fill nodes of this size one after the other; 0: as they lie on hosts, or on the simulated "
           "machine")
      .range(0, 16384);
  flags
      .add("--ranks-per-gpu", executor_choices().ranks_a_gpu,
           "ranks of executor peer that take turns on one GPU, for tests and a look at schedules: their "
           "times are "
           "no measure of a link")
      .range(1, 64);
  flags.add(
      "--topology", raw.options.topology,
      "a file of topologies/: the machine of executor simulator, which also predicts the rows of the others");
  flags.add("--calibrate", raw.options.calibrate,
            "measure this machine first, write it to this file as a topology, and predict from it; with one "
            "rank and --topology, its kernels alone, beside the links of that file");
  flags
      .add("--blocks", raw.blocks,
           "blocks that the state is cut into; 'auto': chosen by the alpha-beta model")
      .list();
  flags
      .add("--cadence", raw.timing_modes,
           "isolated: every round from a common start; streaming: back to back; graph: back to back as a "
           "recording that a GPU replays")
      .list();
  flags.add("--baseline", raw.options.baseline, "the row that all ratios refer to");
}

void declare_rounds(Flags& flags, RawOptions& raw) {
  Options& options = raw.options;
  flags.add("-w,--warmup", options.warmup, "rounds before the measured ones").range(0, 1000000);
  flags.add("-n,--rounds", options.rounds, "measured rounds").range(1, 1000000);
  flags.add("-N,--cycles", raw.cycles, "repetitions of the whole sweep, to see the machine drift")
      .range(1, 1000);
  flags
      .add("--launches", options.launches,
           "run all cases in so many launches, one after the other, in alternating order; intervals then "
           "cover launches")
      .range(1, 1000);
  flags
      .add("--for", options.most_seconds,
           "more launches than --launches while they fit into so many seconds; 0: none more")
      .range(0, 1000000);
  flags.add("--of", raw.launches_in_all, "for launches that the bench starts itself").hidden();
  flags.add("--session", options.session, "a name that is written into every record");
  flags.add("--resume", options.resume,
            "go on where the records of this file end, and append to it unless -J names another");
  flags.add("--ledger", options.ledger, "for launches that the bench starts itself").hidden();
  flags.add("-c,--check", options.checks, "verifications before the timing; nothing unverified is timed")
      .range(1, 1000);
  flags.add("--seed", options.seed, "seed of the inputs");
  flags.add("-T,--timeout", options.time_limit_seconds, "seconds that a case may take; 0: no limit")
      .range(0, 1000000);
  flags.add("--nvls", executor_choices().multicast,
            "let libraries use NVLink multicast, which is off otherwise: some hosts do not survive it");
}

void declare_output(Flags& flags, RawOptions& raw) {
  Options& options = raw.options;
  flags.add("-J,--json", options.journal, "append a JSON line for each case to this file");
  flags.add("--csv", options.csv, "append a line of comma-separated values for each case to this file");
  flags.add("--wide", options.wide, "print all columns, wider than a terminal, and ratios to --baseline");
  flags.add("--list", raw.list, "print what is registered and stop");
  flags.add("--schema", raw.schema, "print the keys of records as JSON and stop");
  const Flag dry_run = flags.add("--dry-run", options.dry_run, "check and count all schedules, run nothing");
  flags
      .add("--trace", options.trace,
           "run one more round of the only case and write its steps to this file, for ui.perfetto.dev")
      .excludes(dry_run);
  flags
      .add("--export", raw.exported,
           "write the schedules of the only case, a file a rank: FILE.0.et and so on; the format is chakra")
      .pair("FORMAT FILE");
  flags.add("--print-schedule", options.print_schedules, "with --dry-run: print every step too");
}

void print_backends() {
  fmt::print("executors\n");
  for (const Backend& backend : backends()) {
    const Refusal lack = backend.lacking(1);
    fmt::print("  {:<24} {}{}\n", backend.name, backend.summary, lack ? "; not now: " + lack.reason() : "");
  }
}

}  // namespace

std::optional<RawOptions> parse_flags(int argc, char** argv, const BenchFlags& bench) {
  RawOptions raw;
  Flags flags(bench.program, bench.description +
                                 "\nGoogle Benchmark's own flags (--benchmark_filter, "
                                 "--benchmark_list_tests, --benchmark_out) work too.");
  declare_axes(flags, raw);
  declare_rounds(flags, raw);
  declare_output(flags, raw);
  bench.declare(flags, raw.options);
  std::vector<std::string> arguments(argv, argv + argc);
  raw.options.benchmark_arguments = take_benchmark_arguments(arguments, argv[0]);
  if (!flags.parse(std::move(arguments))) return std::nullopt;
  if (raw.options.dry_run && !raw.options.calibrate.empty())
    throw UsageError("--dry-run runs nothing, and so there is nothing to --calibrate: give one of them");
  if (executor_choices().share_gpus() && !raw.options.calibrate.empty())
    throw UsageError("--ranks-per-gpu: ranks of one GPU have no link to --calibrate: give one of them");
  if (!raw.exported.empty() && raw.exported.size() != 2)
    throw UsageError("--export takes a format and the name of a file, without commas");
  if (!raw.exported.empty()) raw.options.exported = {raw.exported[0], raw.exported[1]};
  if (raw.options.journal.empty()) raw.options.journal = raw.options.resume;
  if (raw.launches_in_all > 0) raw.options.launches = raw.launches_in_all;
  if (!raw.list && !raw.schema) return raw;
  if (launched_rank() > 0) return std::nullopt;
  if (raw.schema) {
    fmt::print("{}", schema::as_json());
  } else {
    bench.print_list();
    print_backends();
  }
  return std::nullopt;
}

Axes axes_of(const RawOptions& raw) {
  return {.executors = resolve_executors(raw.executors),
          .ranks = distinct(raw.ranks),
          .blocks = block_counts(raw.blocks),
          .timing_modes = resolve_values("cadence", raw.timing_modes, timing_choices),
          .cycles = raw.cycles,
          .ranks_a_node = raw.ranks_a_node,
          .ranks_a_gpu = executor_choices().ranks_a_gpu,
          .baseline = raw.options.baseline,
          .comparison_groups = {}};
}

int Options::processes() const {
  int most = 0;
  for (const Case& bench_case : cases)
    if (find_backend(bench_case.executor).process_a_rank) most = std::max(most, bench_case.ranks);
  return dry_run ? 0 : most;
}

}  // namespace baton
