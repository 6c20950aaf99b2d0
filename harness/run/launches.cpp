// SPDX-License-Identifier: Apache-2.0
// A launch says when a case begins and when it has ended. So after a launch that did not end well
// the last case that began is the one that ended it.
#include "harness/run/launches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "collectives/executors/launcher.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/machine/system.hpp"
#include "harness/options/options.hpp"
#include "harness/process/launch.hpp"
#include "harness/process/obstacles.hpp"
#include "harness/process/output.hpp"
#include "harness/process/program_launcher.hpp"
#include "harness/process/shared_folder.hpp"
#include "harness/process/world.hpp"
#include "harness/run/channel.hpp"
#include "harness/run/collector.hpp"
#include "harness/run/failure.hpp"
#include "harness/run/google_benchmark.hpp"
#include "harness/run/precision.hpp"

namespace baton {
namespace {

class LaunchLoop {
 public:
  LaunchLoop(const Options& options, char** argv)
      : options_(options),
        launches_(most_asked(options)),
        channel_(folder_.path()),
        collector_(options, launches_),
        argv_(argv) {
    write_text(channel_.messages_path(), "");
    if (is_open()) collector_.display().expect(0);
  }

  int run() {
    const double start = monotonic_seconds();
    for (int launch = 1; launch <= launches_; ++launch) {
      if (const std::optional<int> code = complete(launch)) return *code;
      if (launch == 1 && options_.most_seconds > 0) fit(monotonic_seconds() - start);
      if (options_.stop_at > 0 && is_narrow(widest(), launch, options_.stop_at)) launches_ = launch;
      if (options_.stop_at == 0) collector_.display().expect(launches_);
    }
    collector_.display().finish();
    if (options_.stop_at > 0)
      fmt::print("{}", end_of_stop_at(widest(), options_.cases, launches_, options_.stop_at));
    require_output();
    write_benchmark_file(options_, collector_.results());
    return collector_.results().summary(options_.cases);
  }

 private:
  /// True if the number of launches is not known from the start.
  bool is_open() const { return options_.most_seconds > 0 || options_.stop_at > 0; }
  /// True for a program of the user's, whose libraries may take all processes for ranks. The cases
  /// of each number of ranks have launches of their own then.
  static bool is_program() { return !program_launcher().empty(); }
  /// Adds the launches that --for has time for if each takes `seconds`.
  void fit(double seconds) {
    const double fitting = std::min<double>(options_.most_seconds / std::max(seconds, 0.01), most_launches);
    launches_ = std::max(launches_, static_cast<int>(fitting));
  }
  std::optional<Widest> widest() const {
    return widest_interval(collector_.comparisons(), static_cast<int>(options_.cases.size()));
  }
  /// Runs a launch until it ends well; the result is the exit code if the run is over.
  std::optional<int> complete(int launch);
  LaunchEnd run_once(int processes);
  void start_again(const LaunchEnd& end, int failed_starts);
  void pass_on(const std::string& words);
  void fail(int index, const Failure& failure);
  int interrupted();
  bool follow(bool ranks_are_gone);
  void receive();
  bool is_overdue(bool ranks_are_gone);
  std::string missing() const;

  const Options& options_;
  int launches_;
  LaunchFolder folder_;
  Channel channel_;
  Collector collector_;
  char** argv_;
  FailuresInARow failures_{options_.cases, is_program()};
  double heard_at_ = monotonic_seconds();
  std::string silence_;           // what is said of a launch that was ended since it said nothing
  std::string said_;              // the last words about a launch, which are not said twice
  std::exception_ptr unwritten_;  // why a record could not be written
};

std::optional<int> LaunchLoop::complete(int launch) {
  const Results& results = collector_.results();
  int failed_starts = 0;
  while (true) {
    // Where the next launch may be the last one, each record says how many there are so far.
    Plan plan = collector_.start_launch(launch, options_.stop_at > 0 ? launch : launches_);
    if (plan.cases.empty() && (results.starts() == 1 || is_program())) return std::nullopt;
    const int processes =
        is_program() ? processes_of(options_.cases[plan.cases.front()]) : options_.processes();
    if (is_program())
      std::erase_if(plan.cases, [&](int index) { return processes_of(options_.cases[index]) != processes; });
    channel_.write_plan(plan);
    const std::size_t ended_before = results.count();
    const LaunchEnd end = run_once(processes);
    if (reader_left()) return ExitCode::reader_left;
    require_output();
    if (end.interrupted) return interrupted();
    const bool has_gone_on = results.count() > ended_before;
    if (end.exit_code == 0) {
      pass_on(end.launcher_words);
      if (!is_program()) return std::nullopt;
      if (!has_gone_on) throw SystemError("the ranks of this program ended before the end of baton.main()");
      continue;  // with the next number of ranks
    }
    if (end.refused()) throw UsageError(end.cause());
    if (const std::optional<int> index = results.running()) {
      if (has_gone_on) failures_.clear();
      fail(*index, failure_of(end, options_.cases[*index].name()));
      for (const int other : failures_.add(*index))
        if (!results.is_settled(other)) fail(other, {.reason = failures_.reason()});
    } else {
      if (!has_gone_on) ++failed_starts;
      start_again(end, failed_starts);
    }
  }
}

/// Starts the ranks and takes their messages until they end.
LaunchEnd LaunchLoop::run_once(int processes) {
  silence_.clear();
  heard_at_ = monotonic_seconds();
  std::vector<std::string> command = launch_command(processes, options_.threads(), argv_);
  command.insert(command.end(), {"--worker", folder_.path()});
  LaunchEnd end = run_launch(command, {channel_.messages_path(), [this](bool gone) { return follow(gone); },
                                       is_program() ? 0 : processes});
  receive();
  collector_.display().refresh();
  collector_.display().clear();
  if (unwritten_) {
    collector_.display().finish();  // the rows stand, whether their records can be written or not
    std::rethrow_exception(unwritten_);
  }
  end.silence = silence_;
  return end;
}

/// Reports that a launch which ended while no case ran is started again. Throws SystemError where
/// that does not help: it got to no case twice, or all its cases are over, so that no further
/// launch would write the files that it owes.
void LaunchLoop::start_again(const LaunchEnd& end, int failed_starts) {
  constexpr std::size_t longest = 800, telling = 100;  // bytes; behind them may stand numbers of processes
  const Results& results = collector_.results();
  const int launch = results.launch();
  const std::string report = one_line(end.cause(), longest);
  const std::string what = fmt::format("launch {} ended outside of its cases with exit code {}{}", launch,
                                       end.exit_code, report.empty() ? "" : ": " + report);
  if (!results.have_met())
    if (const std::string obstacle = obstacle_to_launches(end.exit_code, report, mpi_library());
        !obstacle.empty())
      throw SystemError(obstacle);
  const bool owes_files = !options_.trace.empty() || !options_.exported.format.empty();
  if (owes_files && results.is_complete(launches_, static_cast<int>(options_.cases.size()))) {
    collector_.display().finish();
    throw SystemError((report.empty() ? what : report) +
                      "; the rows stand, but the files of --trace and --export may not");
  }
  if (failed_starts > 1)
    throw SystemError(what.substr(0, telling) == said_.substr(0, telling)
                          ? fmt::format("launch {} ended in the same way again", launch)
                          : what);
  said_ = what;
  fmt::print(stderr, "baton: {}; it is started again\n", what);
}

/// Passes on what the launcher said in a launch that ended well, such as that it found no shared
/// memory; once for all launches.
void LaunchLoop::pass_on(const std::string& words) {
  if (words.empty() || words == said_) return;
  said_ = words;
  fmt::print(stderr, "baton: mpiexec says: {}\n", one_line(words, 800));
}

/// Takes the messages of the launch since the last call. False if it must end: nobody reads its
/// output, its records cannot be written, or it is overdue.
bool LaunchLoop::follow(bool ranks_are_gone) {
  receive();
  collector_.display().refresh();
  return !unwritten_ && !reader_left() && !has_lost_output() && !is_overdue(ranks_are_gone);
}

void LaunchLoop::receive() {
  try {
    if (channel_.receive([this](const Message& message) { collector_.take(message); }) > 0)
      heard_at_ = monotonic_seconds();
  } catch (const SystemError&) {
    if (!unwritten_) unwritten_ = std::current_exception();  // the ranks have to be ended first
  }
}

/// True if the launch has said nothing for too long: its processes have not met, or are gone and
/// their launcher hangs, or a case exceeds its time limit, which they themselves end if they can.
bool LaunchLoop::is_overdue(bool ranks_are_gone) {
  constexpr double patience = 20;  // seconds beyond the limit of a case
  const bool have_met = collector_.results().have_met();
  const double limit = options_.time_limit_seconds, quiet = monotonic_seconds() - heard_at_;
  const double most = have_met ? limit + patience : std::max<double>(limit, launcher().meeting_seconds);
  const bool is_left = ranks_are_gone && !have_met;
  if (!is_left && (limit == 0 || quiet < most || (have_met && !collector_.results().running()))) return false;
  const char* what = have_met ? "said nothing" : is_left ? "are gone" : "did not all start";
  silence_ = fmt::format("its processes {} for {:.0f} s", what, quiet);
  return true;
}

/// Notes that a case failed in the present launch.
void LaunchLoop::fail(int index, const Failure& failure) {
  try {
    collector_.fail(index, failure);
  } catch (const SystemError&) {
    collector_.display().finish();  // the rows stand, whether their records can be written or not
    throw;
  }
}

/// Says how many rows were measured, and how to get the others.
std::string LaunchLoop::missing() const {
  const int launches = options_.stop_at > 0 ? collector_.results().launch() : launches_;  // that are known
  const std::size_t done = collector_.results().count();
  const std::string count =
      fmt::format("{} of {} rows were measured", done, launches * options_.cases.size());
  if (options_.journal.empty()) return count + "; with -J FILE their records would be kept";
  return fmt::format("{}, their records are in {}; the same command with --resume {} goes on", count,
                     printable(options_.journal), printable(options_.journal));
}

int LaunchLoop::interrupted() {
  collector_.display().finish();
  const std::optional<int> index = collector_.results().running();
  fmt::print(stderr, "baton: interrupted{}\nbaton: {}\n", index ? " in " + options_.cases[*index].name() : "",
             missing());
  return ExitCode::interrupted;
}

}  // namespace

int run_launches(const Options& options, char** argv) { return LaunchLoop(options, argv).run(); }

}  // namespace baton
