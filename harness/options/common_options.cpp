// SPDX-License-Identifier: Apache-2.0
// Shared flags.
#include "harness/options/common_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/executors/executor.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/options/names.hpp"
#include "harness/process/launch.hpp"

namespace baton {
namespace {

std::vector<std::string> executor_names() {
  std::vector<std::string> names;
  for (const ExecutorEntry* entry : executors()) names.push_back(entry->name);
  return names;
}

constexpr int most_blocks = 1 << 20;

std::vector<int> block_counts(const std::vector<std::string>& words) {
  std::vector<int> counts;
  for (const std::string& word : words) {
    int count = auto_blocks;
    if (word != "auto" && (!CLI::detail::lexical_cast(word, count) || count < 1 || count > most_blocks))
      throw UsageError("--blocks takes 'auto' or a number from 1 to 2^20, not '" + word + "'");
    if (std::find(counts.begin(), counts.end(), count) != counts.end())
      throw UsageError("--blocks names '" + word + "' twice");
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

void add_axis_options(CLI::App& app, CommonWords& words, Options& options) {
  app.add_option("--executor,--executors", words.executors, "what runs the schedules")->delimiter(',');
  if (launched_size() > 0) words.ranks.assign(1, launched_size());
  app.add_option("--ranks", words.ranks,
                 "rank counts; the largest is launched, or must be the world it runs in")
      ->delimiter(',')
      ->check(CLI::Range(1, 16384));
  app.add_option("--ranks-per-node", words.ranks_a_node,
                 "ranks fill nodes of this size one after the other, for what knows of nodes; 0: all on one")
      ->check(CLI::Range(0, 16384));
  app.add_option(
      "--topology", words.topology,
      "a file of topologies/: the machine of executor simulator; beside rows that run, what it predicts");
  app.add_option("--calibrate", options.calibrate,
                 "measure this machine first, write it to this file as a topology, and predict from it");
  app.add_option("--blocks", words.blocks, "cuts of the state, 'auto' by the alpha-beta model")
      ->delimiter(',');
  app.add_option(
         "--cadence", words.cadences,
         "isolated: every round from a common start; streaming: back to back; graph: back to back as a "
         "recording that a GPU replays")
      ->delimiter(',');
  app.add_option("--baseline", options.baseline, "the row that all ratios are taken to");
}

void add_run_options(CLI::App& app, CommonWords& words, Options& options) {
  app.add_option("-w,--warmup", options.warmup, "rounds before the measured ones")
      ->check(CLI::Range(0, 1000000));
  app.add_option("-n,--rounds", options.rounds, "measured rounds")->check(CLI::Range(1, 1000000));
  app.add_option("-N,--cycles", words.cycles, "repetitions of the whole sweep, to see the machine drift")
      ->check(CLI::Range(1, 1000));
  app.add_option("-c,--check", options.checks, "verifications before the timing; nothing unverified is timed")
      ->check(CLI::Range(1, 1000));
  app.add_option("--seed", options.seed, "seed of the inputs");
  app.add_option("-J,--json", options.journal, "append a JSON line a case to this file");
  app.add_option("-T,--timeout", options.time_limit_seconds, "seconds that a case may take, 0 for no limit")
      ->check(CLI::Range(0, 1000000));
  app.add_flag("--nvls", executor_choices().multicast,
               "let libraries use NVLink multicast, which is off otherwise: some hosts do not survive it");
  app.add_flag("--list", words.list, "print what is registered and stop");
  auto* dry_run = app.add_flag("--dry-run", options.dry_run, "check and count all schedules, run nothing");
  app.add_option("--trace", options.trace,
                 "run one more round of the only case and write its steps to this file, for ui.perfetto.dev")
      ->excludes(dry_run);
  app.add_flag("--print-schedule", options.print_schedules, "with --dry-run: print every step too");
}

/// Throws UsageError where the simulator is asked without a machine, or with one that is too small.
void require_topology(const Axes& axes, const std::optional<Topology>& topology) {
  if (std::find(axes.executors.begin(), axes.executors.end(), "simulator") == axes.executors.end()) return;
  if (!topology) throw UsageError("executor simulator needs a machine: --topology topologies/NAME.json");
  for (const int ranks : axes.ranks)
    if (ranks > topology->ranks())
      throw UsageError(fmt::format("{} ranks do not fit on {}: {} nodes of {} are {}", ranks, topology->name,
                                   topology->nodes, topology->ranks_a_node, topology->ranks()));
}

/// Of Google Benchmark's flags only those that leave the rounds alone: repetitions, minimal times and shuffling are
/// decided by each process for itself, so the ranks would run different cases at once and hang.
void refuse_unless_harmless(const std::string& argument) {
  if (argument.rfind("--benchmark_", 0) != 0) return;
  const std::string name = argument.substr(0, argument.find('='));
  for (const char* harmless :
       {"filter", "list_tests", "out", "out_format", "context", "counters_tabular", "color"})
    if (name == std::string("--benchmark_") + harmless) return;
  throw UsageError(name +
                   " is not for several ranks; of Google Benchmark's flags there are --benchmark_filter, "
                   "_list_tests, _out, _out_format and _context; -n sets the rounds, -N repeats the sweep");
}

/// Takes Google Benchmark's own arguments out of the command line.
std::vector<std::string> take_benchmark_arguments(std::vector<std::string>& arguments,
                                                  const std::string& program) {
  const auto is_theirs = [](const std::string& argument) { return argument.rfind("--benchmark_", 0) == 0; };
  const auto theirs = std::stable_partition(arguments.begin(), arguments.end(), std::not_fn(is_theirs));
  std::vector<std::string> taken{program};
  taken.insert(taken.end(), theirs, arguments.end());
  arguments.erase(theirs, arguments.end());
  for (const std::string& argument : taken) refuse_unless_harmless(argument);
  return taken;
}

}  // namespace

CommandLine::CommandLine(const std::string& program, const std::string& description)
    : app(description +
              "\n"
              "Google Benchmark's own flags (--benchmark_filter, --benchmark_list_tests, --benchmark_out) "
              "work too.",
          program) {
  app.option_defaults()->always_capture_default();
  add_axis_options(app, words, options);
  add_run_options(app, words, options);
}

bool CommandLine::parse(int argc, char** argv, const std::function<void()>& print_list) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  options.benchmark_arguments = take_benchmark_arguments(arguments, argv[0]);
  std::reverse(arguments.begin(), arguments.end());  // the order in which CLI11 takes them
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    if (launched_rank() == 0) fmt::print("{}", app.help());
    return false;
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  if (!words.topology.empty() && !options.calibrate.empty())
    throw UsageError("--calibrate measures the topology that --topology would name: give one of them");
  if (options.dry_run && !options.calibrate.empty())
    throw UsageError("--dry-run runs nothing, and so there is nothing to --calibrate: give one of them");
  if (!words.topology.empty()) options.topology = read_topology(words.topology);
  if (words.list && launched_rank() == 0) print_list();
  return !words.list;
}

Axes CommandLine::axes(const std::vector<std::string>& names) const {
  const bool runs = std::find(names.begin(), names.end(), options.baseline) != names.end();
  if (!options.baseline.empty() && !runs)
    throw UsageError("--baseline '" + options.baseline + "' is not among what runs");
  Axes axes{.executors = chosen("executor", words.executors, executor_names()),
            .ranks = distinct(words.ranks),
            .blocks = block_counts(words.blocks),
            .cadences = {},
            .cycles = words.cycles,
            .ranks_a_node = words.ranks_a_node,
            .baseline = options.baseline,
            .contests = {}};
  require_topology(axes, options.topology);
  const std::vector<std::string> cadences{"isolated", "streaming",
                                          "graph"};  // as the enumeration counts them
  for (const std::string& word : chosen("cadence", words.cadences, cadences))
    axes.cadences.push_back(Cadence(std::find(cadences.begin(), cadences.end(), word) - cadences.begin()));
  return axes;
}

CLI::Validator size_range() { return CLI::Range(std::int64_t{1}, std::int64_t{1} << 24); }

void check_size(std::int64_t a, std::int64_t b, std::int64_t c) {
  constexpr double most_bytes = 16.0 * (std::uint64_t{1} << 40);
  const double bytes = 4.0 * static_cast<double>(a * b) * static_cast<double>(c);
  if (bytes > most_bytes)
    throw UsageError(fmt::format("{:.0f} TiB a rank are too much", bytes / (std::uint64_t{1} << 40)));
}

void print_executors() {
  fmt::print("executors\n");
  for (const ExecutorEntry* entry : executors()) {
    const Refusal lack = entry->lacking(1);
    fmt::print("  {:<24} {}{}\n", entry->name, entry->summary, lack ? "; not now: " + lack.reason() : "");
  }
}

int Options::processes() const {
  int most = 0;
  for (const Case& question : cases)
    if (find_executor(question.executor).process_a_rank) most = std::max(most, question.ranks);
  return dry_run ? 0 : most;
}

int Options::calibrated_ranks() const {
  int most = 0;
  std::string measured;
  for (const Case& question : cases) {
    if (!find_executor(question.executor).make) continue;
    if (!measured.empty() && measured != question.executor)
      throw UsageError("--calibrate measures one executor, not both " + measured + " and " +
                       question.executor);
    measured = question.executor;
    most = std::max(most, question.ranks);
  }
  if (most < 2) throw UsageError("--calibrate needs an executor that runs, and at least two ranks");
  return most;
}

}  // namespace baton
