// SPDX-License-Identifier: Apache-2.0
// The command line of collective_bench.
#include "harness/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>

#include "collectives/executors/executor.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/launch.hpp"

namespace baton {
namespace {

/// Arguments as the user wrote them, before they are looked up and multiplied out.
struct Words {
  std::vector<std::string> collectives{"all"};
  std::vector<std::string> executors{"mpi"};
  std::vector<int> ranks{4};
  std::string direction = "forward";
  Shape shape;
  std::uint64_t min_bytes = 0;  // 0: the shape is named by its heads
  std::uint64_t max_bytes = 0;
  int factor = 2;
  std::vector<std::string> blocks{"auto"};
  std::vector<std::string> cadences{"isolated"};
  bool list = false;
};

/// A state of more bytes on one rank is a slip of the pen.
constexpr std::uint64_t most_state_bytes = std::uint64_t{1} << 44;

std::size_t edits(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t change = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

[[noreturn]] void fail_unknown(const std::string& what, const std::string& word,
                               const std::vector<std::string>& known) {
  const std::string near = nearest(word, known);
  throw UsageError(fmt::format("unknown {} '{}'{}; there are: {}", what, word,
                               near.empty() ? "" : fmt::format(", did you mean '{}'?", near),
                               fmt::join(known, ", ")));
}

/// The words, each of which must be one of `known`; "all" stands for all of them.
std::vector<std::string> chosen(const std::string& what, const std::vector<std::string>& words,
                                const std::vector<std::string>& known) {
  if (words == std::vector<std::string>{"all"}) return known;
  for (const std::string& word : words)
    if (std::find(known.begin(), known.end(), word) == known.end()) fail_unknown(what, word, known);
  return words;
}

std::vector<std::string> collective_names() {
  std::vector<std::string> names;
  for (const Collective* collective : collectives()) names.push_back(collective->name);
  return names;
}

std::vector<std::string> executor_names() {
  std::vector<std::string> names;
  for (const ExecutorEntry* entry : executors()) names.push_back(entry->name);
  return names;
}

std::vector<int> block_counts(const std::vector<std::string>& words) {
  std::vector<int> counts;
  for (const std::string& word : words) {
    int count = auto_blocks;
    if (word != "auto" && (!CLI::detail::lexical_cast(word, count) || count < 1))
      throw UsageError("--blocks takes 'auto' or a number from 1 on, not '" + word + "'");
    counts.push_back(count);
  }
  return counts;
}

/// The ladder of state sizes, or the one shape that was named.
std::vector<Shape> shapes(const Words& words) {
  const double bytes_named =
      4.0 * static_cast<double>(words.shape.heads * words.shape.d_k) * static_cast<double>(words.shape.d_v);
  if (bytes_named > static_cast<double>(most_state_bytes))
    throw UsageError(
        fmt::format("a state of {:.0f} TiB a rank is too large", bytes_named / (std::uint64_t{1} << 40)));
  if (words.min_bytes == 0) return {words.shape};
  const std::uint64_t max_bytes = std::max(words.min_bytes, words.max_bytes);
  const std::uint64_t head_bytes = words.shape.d_k * words.shape.d_v * element_bytes;
  std::vector<Shape> ladder;
  for (std::uint64_t bytes = words.min_bytes; bytes <= max_bytes; bytes *= words.factor) {
    if (bytes % head_bytes != 0)
      throw UsageError(fmt::format("a state of {} bytes cannot be cut into heads of {} ({} x {} f32)", bytes,
                                   head_bytes, words.shape.d_k, words.shape.d_v));
    ladder.push_back(words.shape);
    ladder.back().heads = static_cast<std::int64_t>(bytes / head_bytes);
  }
  return ladder;
}

std::vector<Direction> directions(const std::string& word) {
  if (word == "both") return {Direction::forward, Direction::reverse};
  return {word == "forward" ? Direction::forward : Direction::reverse};
}

/// Fills in the axes that are made from words.
void look_up(Axes& axes, const Words& words) {
  for (const std::string& name : chosen("collective", words.collectives, collective_names()))
    axes.collectives.push_back(&find_collective(name));
  axes.executors = chosen("executor", words.executors, executor_names());
  axes.ranks = words.ranks;
  axes.directions = directions(words.direction);
  axes.shapes = shapes(words);
  axes.blocks = block_counts(words.blocks);
  for (const std::string& word : chosen("cadence", words.cadences, {"isolated", "streaming"}))
    axes.cadences.push_back(word == "isolated" ? Cadence::isolated : Cadence::streaming);
  if (!axes.baseline.empty()) chosen("baseline", {axes.baseline}, collective_names());
}

void add_shape_options(CLI::App& app, Words& words) {
  const auto size = CLI::Range(std::int64_t{1}, std::int64_t{1} << 24);
  auto* heads =
      app.add_option("--heads", words.shape.heads, "attention heads of a rank's state")->check(size);
  app.add_option("--d-k", words.shape.d_k, "key channels of a head: rows of its state")->check(size);
  app.add_option("--d-v", words.shape.d_v, "value channels of a head: columns of its state")->check(size);
  app.add_option("--tokens", words.shape.tokens, "tokens a rank, for what moves keys and values")
      ->check(size);
  const auto bytes = CLI::AsSizeValue(false) & CLI::Range(std::uint64_t{1}, most_state_bytes);
  auto* least = app.add_option("-b,--min-bytes", words.min_bytes, "least state bytes a rank; heads follow")
                    ->transform(bytes);
  auto* most = app.add_option("-e,--max-bytes", words.max_bytes, "most state bytes a rank")->transform(bytes);
  app.add_option("-f,--factor", words.factor, "factor from one size to the next")
      ->check(CLI::Range(2, 1 << 20))
      ->needs(least);
  most->needs(least);
  least->excludes(heads);
}

void add_axis_options(CLI::App& app, Words& words, Options& options) {
  app.add_option("--collectives", words.collectives, "names, or 'all'")->delimiter(',');
  app.add_option("--executor,--executors", words.executors, "what runs the schedules")->delimiter(',');
  app.add_option("--ranks", words.ranks, "rank counts; the largest is launched")
      ->delimiter(',')
      ->check(CLI::Range(1, 16384));
  app.add_option("--direction", words.direction, "scans in rank order or against it")
      ->check(CLI::IsMember({"forward", "reverse", "both"}));
  app.add_option("--blocks", words.blocks, "cuts of the state, 'auto' by the alpha-beta model")
      ->delimiter(',');
  app.add_option("--cadence", words.cadences,
                 "isolated: every round from a common start; streaming: back to back")
      ->delimiter(',');
  app.add_option("--baseline", options.axes.baseline, "the collective that all ratios are taken to");
}

void add_run_options(CLI::App& app, Words& words, Options& options) {
  app.add_option("-w,--warmup", options.warmup, "rounds before the measured ones")
      ->check(CLI::Range(0, 1000000));
  app.add_option("-n,--rounds", options.rounds, "measured rounds")->check(CLI::Range(1, 1000000));
  app.add_option("-N,--cycles", options.axes.cycles,
                 "repetitions of the whole sweep, to see the machine drift")
      ->check(CLI::Range(1, 1000));
  app.add_option("-c,--check", options.checks, "verifications before the timing; nothing unverified is timed")
      ->check(CLI::Range(1, 1000));
  app.add_option("--seed", options.seed, "seed of the inputs");
  app.add_option("-J,--json", options.journal, "append a JSON line a case to this file");
  app.add_option("-T,--timeout", options.time_limit_seconds, "seconds that a case may take, 0 for no limit")
      ->check(CLI::Range(0, 1000000));
  app.add_flag("--list", words.list, "print the collectives and executors and stop");
  app.add_flag("--dry-run", options.dry_run, "check and count all schedules, run nothing");
  app.add_flag("--print-schedule", options.print_schedules, "with --dry-run: print every step too");
}

void print_list() {
  fmt::print("collectives\n");
  for (const Collective* collective : collectives())
    fmt::print("  {:<24} {:<15} {}\n", collective->name, to_string(collective->kind), collective->summary);
  fmt::print("executors\n");
  for (const ExecutorEntry* entry : executors()) fmt::print("  {:<24} {}\n", entry->name, entry->summary);
}

/// Takes Google Benchmark's own arguments out of the command line.
std::vector<std::string> take_benchmark_arguments(std::vector<std::string>& arguments) {
  const auto is_theirs = [](const std::string& argument) { return argument.rfind("--benchmark_", 0) == 0; };
  const auto theirs = std::stable_partition(arguments.begin(), arguments.end(), std::not_fn(is_theirs));
  std::vector<std::string> taken{"collective_bench"};
  taken.insert(taken.end(), theirs, arguments.end());
  arguments.erase(theirs, arguments.end());
  // It shuffles with a seed of each process's own: the ranks would run different cases at once and hang.
  for (const std::string& argument : taken)
    if (argument.rfind("--benchmark_enable_random_interleaving", 0) == 0)
      throw UsageError("--benchmark_enable_random_interleaving would give every rank another order");
  return taken;
}

}  // namespace

int Options::processes() const {
  int most = 1;
  for (const std::string& name : axes.executors)
    if (find_executor(name).process_a_rank)
      most = std::max(most, *std::max_element(axes.ranks.begin(), axes.ranks.end()));
  return dry_run ? 1 : most;
}

std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  Words words;
  CLI::App app(
      "Times the exchange of sequence-parallel attention: every collective, verified, beside its bound.\n"
      "Google Benchmark's own flags (--benchmark_filter, --benchmark_list_tests, --benchmark_out) work too.");
  app.option_defaults()->always_capture_default();
  add_axis_options(app, words, options);
  add_shape_options(app, words);
  add_run_options(app, words, options);
  std::vector<std::string> arguments(argv + 1, argv + argc);
  options.benchmark_arguments = take_benchmark_arguments(arguments);
  std::reverse(arguments.begin(), arguments.end());  // the order in which CLI11 takes them
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    if (launched_rank() == 0) fmt::print("{}", app.help());
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  if (words.list) {
    if (launched_rank() == 0) print_list();
    return std::nullopt;
  }
  look_up(options.axes, words);
  return options;
}

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  const auto closer = [&](const auto& a, const auto& b) { return edits(word, a) < edits(word, b); };
  const auto best = std::min_element(known.begin(), known.end(), closer);
  return best != known.end() && edits(word, *best) <= std::max<std::size_t>(2, word.size() / 3) ? *best : "";
}

}  // namespace baton
