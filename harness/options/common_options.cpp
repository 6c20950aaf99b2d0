// SPDX-License-Identifier: Apache-2.0
#include "harness/options/common_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "collectives/executors/device_names.hpp"
#include "collectives/executors/executor.hpp"
#include "collectives/schedule/errors.hpp"
#include "collectives/simulator/natives.hpp"
#include "harness/machine/conditions.hpp"
#include "harness/machine/system.hpp"
#include "harness/options/checks.hpp"
#include "harness/options/flag_list.hpp"
#include "harness/options/grid.hpp"
#include "harness/options/names.hpp"
#include "harness/options/settings.hpp"
#include "harness/process/world.hpp"
#include "harness/schema/fields.hpp"

namespace baton {
namespace {

const Choices<Cadence> cadence_choices{
    {"isolated", Cadence::isolated}, {"streaming", Cadence::streaming}, {"graph", Cadence::graph}};

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const Backend& backend : backends()) names.push_back(backend.name);
  return names;
}

/// The executors that `words` name. Throws UsageError like resolve_names, and names the build that
/// has an executor if this one lacks it.
std::vector<std::string> resolve_executors(const std::vector<std::string>& words) {
  const std::vector<std::string> known = backend_names();
  const auto holds = [](const auto& names, const std::string& word) {
    return std::find(names.begin(), names.end(), word) != names.end();
  };
  for (const std::string& word : words)
    if (holds(device_executors, word) && !holds(known, word))
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

/// Takes Google Benchmark's arguments out of `arguments`.
std::vector<std::string> take_benchmark_arguments(std::vector<std::string>& arguments) {
  std::vector<std::string> taken;
  std::erase_if(arguments, [&](const std::string& one) {
    if (one.starts_with("--benchmark_")) taken.push_back(one);
    return one.starts_with("--benchmark_");
  });
  return taken;
}

void print_backends() {
  fmt::print("executors\n");
  for (const Backend& backend : backends()) {
    const Refusal lack = backend.lacking(1);
    fmt::print("  {:<24} {}{}\n", backend.name, backend.summary, lack ? "; not now: " + lack.reason() : "");
  }
}

}  // namespace

CommonOptions::CommonOptions(const std::string& program, const std::string& description,
                             const std::string& examples)
    : program_(program),
      flags_(program,
             description +
                 " Google Benchmark's own flags (--benchmark_filter, --benchmark_list_tests, "
                 "--benchmark_out) work too.",
             examples),
      executors_{host_executor()} {}

void CommonOptions::declare_axes() {
  flags_.begin(FlagGroup::what);
  flags_.add("--like", like_,
             "the sizes and rounds of a published table or a public suite, by a name that --list shows; "
             "other flags override it, and --executor and --ranks are yours to give");
  flags_.add_key("executor", executors_, "--executors").list();
  const int default_ranks = launched_size() > 0 ? launched_size() : std::clamp(usable_cores().count(), 2, 4);
  axes_.add<int>("ranks", {default_ranks}, [](Case& one, int count) { one.ranks = count; })
      .range(1, 16384)
      .shows_default("2 to 4, as cores fit");
  flags_.add_key("baseline", options_.baseline);
  flags_.begin(FlagGroup::run);
  axes_.add<int>("ranks_per_node", {0}, [](Case& one, int count) { one.ranks_per_node = count; })
      .range(0, 16384);
  flags_.add_key("ranks_per_gpu", executor_choices().ranks_per_gpu).range(1, 64);
  axes_.add<int>("threads_per_rank", {0}, [](Case& one, int count) { one.threads_per_rank = count; })
      .range(0, 2);
  flags_.add_key("blocks_asked", blocks_).list();
  axes_.add("cadence", {"isolated"}, words_of(cadence_choices),
            [](Case& one, const std::string& word) { one.cadence = value_of(cadence_choices, word); });
}

void CommonOptions::declare_rounds() {
  flags_.begin(FlagGroup::run);
  flags_.add_key("warmup", options_.warmup, "-w").range(0, 1000000);
  flags_.add_key("rounds", options_.rounds, "-n").range(1, 1000000);
  flags_.add("-N,--cycles", cycles_, "repetitions of the whole sweep, which show drift of the machine")
      .range(1, 1000);
  flags_.add_key("launches", options_.launches).range(1, 1000);
  flags_.add("--for", options_.most_seconds, "seconds for further launches; 0: no more than --launches")
      .range(0, 1000000);
  flags_
      .add("--stop-at", options_.stop_at,
           "add launches until every 95 % interval is within this many percent of its time: at least 3, and "
           "at most 20 or as many as --launches or --for allow; 0: add none")
      .reals(0, 1000);
  flags_.add_key("session", options_.session);
  flags_.add("--resume", options_.resume,
             "continue an interrupted run: cases with records in this file are not run again, and new "
             "records are appended to it unless -J names another file");
  flags_.add("--worker", options_.worker, "for ranks that the bench starts itself").hidden();
  flags_.add("-c,--check", options_.checks, "verifications before the timing; it cannot be switched off")
      .range(1, 1000);
  flags_.add_key("seed", options_.seed);
  flags_.add("-T,--timeout", options_.time_limit_seconds, "seconds that a case may take; 0: no limit")
      .range(0, 1000000);
  flags_.add("--nvls", executor_choices().multicast,
             "allow NVLink multicast, which is off by default, since some hosts do not survive it");
}

void CommonOptions::declare_simulator() {
  flags_.begin(FlagGroup::simulator);
  flags_.add_key("topology", options_.topology);
  flags_.add("--calibrate", options_.calibrate,
             "measure this machine, write it to this file as a topology, and predict with it; with one rank "
             "and --topology only the kernels are measured, and the links are those of that topology");
}

void CommonOptions::declare_output() {
  flags_.begin(FlagGroup::output);
  flags_.add("-J,--json", options_.journal, "append a record for each case to this file, as a line of JSON");
  flags_.add("--csv", options_.csv, "append a line of comma-separated values for each case to this file");
  flags_.add("--wide", options_.wide, "print all columns, and ratios to --baseline");
  flags_.add("--list", list_, "print what is registered and stop");
  flags_.add("--schema", schema_, "print the keys of records as JSON and stop");
  flags_.add("--flags", print_flags_, "for the list of flags that ./run reads").hidden();
  const Flag dry_run = flags_.add("--dry-run", options_.dry_run,
                                  "check the schedules and count their traffic, but run nothing");
  flags_
      .add("--trace", options_.trace,
           "run one more round of the only case and write its steps to this file, a Chrome trace")
      .excludes(dry_run);
  flags_
      .add("--export", exported_,
           "write the schedules of the only case, one file a rank: FILE.0.et and so on; the only format is "
           "chakra")
      .pair("FORMAT FILE");
  flags_.add("--print-schedule", options_.print_schedules, "with --dry-run: print every step too");
}

bool CommonOptions::parse(int argc, char** argv, const std::function<void()>& print_list) {
  declare_rounds();
  declare_axes();
  declare_simulator();
  declare_output();
  std::vector<std::string> arguments(argv, argv + argc);
  options_.benchmark_arguments = take_benchmark_arguments(arguments);
  if (!flags_.parse(std::move(arguments))) return false;
  ask_like();
  settle();
  if (!list_ && !schema_ && !print_flags_) return true;
  if (launched_rank() > 0) return false;
  if (print_flags_) {
    fmt::print("{}\n", as_json(program_, flags_));
  } else if (schema_) {
    fmt::print("{}", schema::as_json());
  } else {
    print_list();
    print_settings();
    print_backends();
  }
  return false;
}

/// Gives the flags that the user left out the values of --like. Throws UsageError.
void CommonOptions::ask_like() {
  if (like_.empty()) return;
  std::vector<std::string> names;
  for (const Settings& settings : settings_of(program_)) {
    names.push_back(settings.name);
    if (settings.name != like_) continue;
    for (const auto& [flag, value] : settings.flags) flags_.preset(flag, value);
    return;
  }
  throw UsageError(fmt::format("--like: {} is not one of {}", baton::quoted(like_), fmt::join(names, ", ")));
}

void CommonOptions::print_settings() const {
  fmt::print("settings of --like\n");
  for (const Settings& settings : settings_of(program_))
    fmt::print("  {:<24} {}\n", settings.name, settings.title);
}

/// Sets what follows from several flags. Throws UsageError for flags that exclude one another.
void CommonOptions::settle() {
  if (options_.dry_run && !options_.calibrate.empty())
    throw UsageError("--dry-run runs nothing, and so there is nothing to --calibrate: give one of them");
  if (options_.print_schedules && !options_.dry_run)
    throw UsageError("--print-schedule prints what --dry-run counts: give both");
  if (executor_choices().share_gpus() && !options_.calibrate.empty())
    throw UsageError("--ranks-per-gpu: ranks of one GPU have no link to --calibrate: give one of them");
  if (!exported_.empty() && exported_.size() != 2)
    throw UsageError("--export takes a format and the name of a file, without commas");
  if (!exported_.empty()) options_.exported = {exported_[0], exported_[1]};
  if (options_.journal.empty()) options_.journal = options_.resume;
}

std::vector<std::string> CommonOptions::executors() const { return resolve_executors(executors_); }

Options CommonOptions::with_cases(std::vector<std::vector<std::shared_ptr<const Workload>>> groups) const {
  Options options = options_;
  Axes axes{.executors = executors(),
            .points = axes_.points({.ranks_per_gpu = executor_choices().ranks_per_gpu}),
            .blocks = block_counts(blocks_),
            .cycles = cycles_};
  if (!options.topology.empty()) axes.simulated_natives = simulated_natives(read_topology(options.topology));
  axes.baseline = options.baseline;
  axes.comparison_groups = std::move(groups);
  options.cases = cases(axes);
  return options;
}

bool are_on_gpus(const std::vector<std::string>& executors) {
  return std::all_of(executors.begin(), executors.end(),
                     [](const std::string& name) { return find_backend(name).tensors == Dtype::bf16; });
}

int longest_of(const std::vector<std::string>& names) {
  std::size_t longest = 0;
  for (const std::string& name : names) longest = std::max(longest, name.size());
  return static_cast<int>(longest);
}

}  // namespace baton
