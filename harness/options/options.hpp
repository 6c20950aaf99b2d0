// SPDX-License-Identifier: Apache-2.0
// The options of a run (settings that all benches share, and the cases), and the flags that fill
// them.
// Flags are declared by plain calls: flags.cpp alone includes the library that parses them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/simulator/topology/topology.hpp"
#include "harness/cases/case.hpp"
#include "harness/process/world.hpp"
#include "harness/record/export.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace baton {

struct FlagRules;

struct Options {
  std::vector<Case> cases;
  /// The name of the workload that all ratios refer to; may be empty.
  std::string baseline;
  int warmup = 5;
  int rounds = 50;
  /// Verifications before the timing, each with inputs of its own.
  int checks = 1;
  std::uint64_t seed = 1;
  /// How often all cases run, each time by new processes.
  int launches = 1;
  /// Seconds that the launches may take: more of them run than `launches` while they fit; 0 for
  /// none.
  int most_seconds = 0;
  /// A name that the records of several runs share; empty for none.
  std::string session;
  /// The file whose records need not be measured again; empty for none.
  std::string resume;
  /// The ledger of the run, in the processes of a launch that a bench started; empty elsewhere.
  std::string ledger;
  /// The file of records; empty for none.
  std::string journal;
  /// The file of comma-separated values; empty for none.
  std::string csv;
  /// Shows all columns.
  bool wide = false;
  /// The characters of the longest name that rows of this bench can have.
  int longest_name = 0;
  /// The file for the trace of one more round; empty for none.
  std::string trace;
  /// The format and the files of the schedules of the only case.
  Export exported;
  /// The file with the machine of the simulator, which also predicts measured rows; empty for none.
  std::string topology;
  /// The file that gets the measured topology of this machine, or its kernels and the links of
  /// `topology`; empty for none.
  std::string calibrate;
  bool dry_run = false;
  bool print_schedules = false;
  /// Seconds that one case may take; 0 for no limit.
  int time_limit_seconds = 300;
  /// Busy threads of a rank: one that communicates, and one that computes if there are kernels.
  int threads = 1;
  /// Google Benchmark's arguments, after the program's name.
  std::vector<std::string> benchmark_arguments;

  /// Processes that the cases need: the most ranks of a backend with a process a rank, 0 if there
  /// is none.
  int processes() const;

  /// True if `calibrate` gets the links of `topology`, beside the kernels that one rank measures.
  bool calibrates_kernels_alone() const { return !calibrate.empty() && !topology.empty(); }

  /// The number of ranks that is written to `calibrate`: the largest of the measured backend.
  /// Throws UsageError unless there is exactly one such backend, with at least two ranks, or with
  /// one rank and layers if kernels alone are measured.
  int calibrated_ranks() const;
};

using ParseOptions = std::function<std::optional<Options>(int, char**)>;

/// Parses the command line of collective_bench. Prints and returns nothing if the answer was --help
/// or --list. Throws UsageError with one line if an argument is wrong.
std::optional<Options> parse_collective_options(int argc, char** argv);

/// The topology of --topology, if it was given. Throws UsageError if it cannot be read, or if the
/// simulator has none or one that is too small for its ranks.
std::optional<Topology> read_machine(const Options& options);

/// Throws UsageError if this machine can run none of the cases. If it can run some, the others
/// become skipped rows.
void refuse_if_nothing_runs(const Options& options);

/// Throws UsageError if the cases need far more processes than this host has cores, and no launcher
/// has placed them.
void refuse_too_many_processes(const Options& options);

/// Throws UsageError if a file that a flag names cannot be written or is also another one's, or if
/// a trace is asked for and there is not exactly one case.
void require_outputs(const Options& options);

/// Throws UsageError if the format is not built in, if there is not exactly one case, or if that
/// cannot run or cannot be told in the format.
void require_export(const Export& asked, const std::vector<Case>& cases);

/// One declared flag.
class Flag {
 public:
  Flag(CLI::Option* option, std::shared_ptr<FlagRules> rules) : option_(option), rules_(std::move(rules)) {}

  /// Takes several values, separated by commas.
  Flag& list();
  Flag& range(std::int64_t least, std::int64_t most);
  /// The size of a tensor's axis: from 1 to 2^24.
  Flag& size() { return range(1, std::int64_t{1} << 24); }
  /// Takes two values, which help calls by these names.
  Flag& pair(const std::string& names);
  /// A number of bytes such as 64K, from 1 to `most`.
  Flag& bytes(std::uint64_t most);
  /// A number of tokens such as 4096 or 4K, which are the same, from `least` to 2^24.
  Flag& tokens(std::int64_t least = 1);
  Flag& one_of(const std::vector<std::string>& words);
  Flag& needs(const Flag& other);
  Flag& excludes(const Flag& other);
  /// Leaves it out of --help.
  Flag& hidden();
  /// Sets `given` if the user gives the flag.
  Flag& sets(bool& given);
  /// Reads the flag before all others and hands its word to `set`, so that they override what that
  /// sets.
  Flag& presets(std::function<void(const std::string&)> set);

 private:
  CLI::Option* option_;
  std::shared_ptr<FlagRules> rules_;
};

/// A command line under construction. Values that a flag refers to must outlive it.
class Flags {
 public:
  Flags(const std::string& program, const std::string& description);
  ~Flags();
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  /// Declares a flag with the value in `value` as its default. Values are std::string, int,
  /// std::int64_t, std::uint64_t or vectors of the first three; a bool is a flag without a value.
  template <class Value>
  Flag add(const std::string& names, Value& value, const std::string& help);

  /// Parses the arguments, program name first. False if the answer was --help, which has been
  /// printed. Throws UsageError.
  bool parse(std::vector<std::string> arguments);

 private:
  /// The error for an argument that no flag takes.
  std::string unexpected(const std::string& word) const;

  std::unique_ptr<CLI::App> app_;
};

/// The known word that differs from `word` by the fewest edits; empty if none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

/// The words, each of which must be in `known`, none of them twice; "all" stands for all known
/// ones. Throws UsageError that suggests the nearest known word; `what` says what the words name.
std::vector<std::string> resolve_names(const std::string& what, const std::vector<std::string>& words,
                                       const std::vector<std::string>& known);

/// Words and the values that they stand for.
template <class Value>
using Choices = std::vector<std::pair<std::string, Value>>;

template <class Value>
std::vector<std::string> words_of(const Choices<Value>& choices) {
  std::vector<std::string> words;
  for (const auto& [word, value] : choices) words.push_back(word);
  return words;
}

/// The value of `word`, which must be one of the choices.
template <class Value>
Value value_of(const Choices<Value>& choices, const std::string& word) {
  for (const auto& [known, value] : choices)
    if (known == word) return value;
  return choices.front().second;
}

/// The values of `words`, in their order. Throws UsageError like resolve_names.
template <class Value>
std::vector<Value> resolve_values(const std::string& what, const std::vector<std::string>& words,
                                  const Choices<Value>& choices) {
  std::vector<Value> values;
  for (const std::string& word : resolve_names(what, words, words_of(choices)))
    values.push_back(value_of(choices, word));
  return values;
}

/// The shared flags as the user wrote them.
struct RawOptions {
  /// Settings that need no look-up.
  Options options;
  std::vector<std::string> executors{host_executor()};
  std::vector<int> ranks{4};
  std::vector<std::string> blocks{"auto"};
  std::vector<std::string> timing_modes{"isolated"};
  int cycles = 1;
  int ranks_a_node = 0;
  /// Launches of the run as its director counts them, in the processes of a launch; 0 elsewhere.
  int launches_in_all = 0;
  /// The format and the file of --export; empty without it.
  std::vector<std::string> exported;
  bool list = false;
  bool schema = false;
};

/// How a bench's command line differs from that of another.
struct BenchFlags {
  std::string program;
  std::string description;
  /// Declares the bench's own flags; the options are those of the shared ones, which a preset may
  /// set.
  std::function<void(Flags&, Options&)> declare;
  /// Prints what is registered, but for the backends.
  std::function<void()> print_list;
};

/// Parses a command line and prints the answer to --help and --list, in which case the result is
/// empty. Throws UsageError.
std::optional<RawOptions> parse_flags(int argc, char** argv, const BenchFlags& bench);

/// The characters of the longest name among a registry's entries.
template <class Entries>
int longest_name(const Entries& entries) {
  std::size_t longest = 0;
  for (const auto* entry : entries) longest = std::max(longest, entry->name.size());
  return static_cast<int>(longest);
}

/// The names of the workloads that run, and the baseline, looked up in `known`; `what` says what
/// they are. Throws UsageError if the baseline does not run.
std::vector<std::string> resolve_workloads(const std::string& what, const std::vector<std::string>& words,
                                           const std::vector<std::string>& known,
                                           const std::string& baseline);

/// The axes of the shared flags, without comparison groups. Throws UsageError.
Axes axes_of(const RawOptions& raw);

/// Throws UsageError if a tensor [a, b, c] of f32 is larger than 8 TiB.
void check_size(std::int64_t a, std::int64_t b, std::int64_t c);

/// Takes Google Benchmark's arguments out of `arguments`; the result begins with `program`. Throws
/// UsageError for a flag that would make the ranks run different cases.
std::vector<std::string> take_benchmark_arguments(std::vector<std::string>& arguments,
                                                  const std::string& program);

}  // namespace baton
