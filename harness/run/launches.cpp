// SPDX-License-Identifier: Apache-2.0
// A launch notes when a case begins and when it ends. So after a launch that did not end well the
// last case that began is the one that ended it.
#include "harness/run/launches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "collectives/executors/launcher.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/measure/precision.hpp"
#include "harness/options/options.hpp"
#include "harness/process/launch.hpp"
#include "harness/process/obstacles.hpp"
#include "harness/process/output.hpp"
#include "harness/process/system.hpp"
#include "harness/process/world.hpp"
#include "harness/record/standings.hpp"
#include "harness/run/contests.hpp"
#include "harness/run/display.hpp"
#include "harness/run/failure.hpp"
#include "harness/run/outcomes.hpp"
#include "harness/run/record_files.hpp"

namespace baton {
namespace {

class Launches {
 public:
  Launches(const Options& options, char** argv)
      : options_(options),
        launches_(most_asked(options)),
        outcomes_(new_file(folder_.path() + "/outcomes")),
        standings_(options.cases, options.baseline),
        display_(options, outcomes_, standings_, is_open(options) ? 0 : launches_) {
    command_ = launch_command(options.processes(), options.threads(), argv);
    command_.insert(command_.end(), {"--outcomes", folder_.path() + "/outcomes"});
    if (!options.resume.empty())
      outcomes_.resume(options.resume, options.cases, launches_, this_origin(options));
    outcomes_.run();
  }

  int run() {
    const double start = monotonic_seconds();
    for (int launch = 1; launch <= launches_; ++launch) {
      if (const std::optional<int> code = complete(launch)) return *code;
      if (launch == 1 && options_.most_seconds > 0) fit(monotonic_seconds() - start);
      if (options_.stop_at > 0 && is_narrow(widest(), launch, options_.stop_at)) launches_ = launch;
      if (options_.stop_at == 0) display_.expect(launches_);
    }
    display_.finish();
    if (options_.stop_at > 0)
      fmt::print("{}", end_of_stop_at(widest(), options_.cases, launches_, options_.stop_at));
    require_output();
    return summary();
  }

 private:
  static std::string new_file(const std::string& path) {
    write_text(path, "");
    return path;
  }

  /// True if the number of launches is not known from the start.
  static bool is_open(const Options& options) { return options.most_seconds > 0 || options.stop_at > 0; }
  /// The launches that may run if there is time for them; with --stop-at, --launches is their most.
  static int most_asked(const Options& options) {
    const bool adds = options.stop_at > 0 && options.launches == 1 && options.most_seconds == 0;
    return adds ? most_launches : options.launches;
  }
  /// Adds the launches that --for has time for if each takes `seconds`.
  void fit(double seconds) {
    const double fitting = std::min<double>(options_.most_seconds / std::max(seconds, 0.01), most_launches);
    launches_ = std::max(launches_, static_cast<int>(fitting));
  }
  std::optional<Widest> widest() {
    const int cases = static_cast<int>(options_.cases.size());
    add_outcomes(standings_, outcomes_, cases);
    return widest_interval(standings_, cases);
  }
  /// Runs a launch until it ends well; the result is the exit code if the run is over.
  std::optional<int> complete(int launch);
  void start_again(int launch, const LaunchEnd& end, int starts_in_vain);
  void pass_on(const std::string& words);
  void fail(int index, Failure failure);
  void give_up_like(int index);
  std::vector<std::string> command_of_launch() const;
  int interrupted();
  bool follow(bool ranks_are_gone);
  bool is_overdue(bool ranks_are_gone);
  int summary() const;
  std::string missing() const;

  const Options& options_;
  int launches_;
  LaunchFolder folder_;
  Outcomes outcomes_;
  Standings standings_;
  Display display_;
  std::vector<std::string> command_;
  std::vector<int> failed_in_a_row_;  // the cases that ended the last launches
  std::size_t heard_bytes_ = 0;       // of the outcomes, when the launch last said something
  double heard_at_ = monotonic_seconds();
  std::string silence_;  // what is said of a launch that was ended since it said nothing
  std::string said_;     // the last words about a launch, which are not said twice
};

std::optional<int> Launches::complete(int launch) {
  int starts_in_vain = 0;
  while (true) {
    outcomes_.start_launch(launch);
    const std::size_t ended_before = outcomes_.ended();
    silence_.clear();
    LaunchEnd end = run_launch(
        command_of_launch(),
        {folder_.path() + "/outcomes", [this](bool gone) { return follow(gone); }, options_.processes()});
    follow(false);
    display_.clear();
    if (!silence_.empty())
      end.reports.insert(end.reports.begin(), silence_ + (end.cause().empty() ? "" : "; " + end.cause()));
    if (reader_left()) return ExitCode::reader_left;
    require_output();
    if (end.interrupted) return interrupted();
    if (end.exit_code == 0) return pass_on(end.launcher_words), std::nullopt;
    if (end.exit_code == ExitCode::usage && !end.reports.empty()) throw UsageError(end.reports.front());
    const std::optional<int> index = outcomes_.unfinished();
    if (!index) {
      if (outcomes_.ended() == ended_before) ++starts_in_vain;
      start_again(launch, end, starts_in_vain);
      continue;
    }
    if (outcomes_.ended() > ended_before) failed_in_a_row_.clear();
    fail(*index, failure_of(end, options_.cases[*index].name()));
    give_up_like(*index);
  }
}

/// Reports that a launch which ended while no case ran is started again. Throws SystemError where
/// that does not help: it got to no case twice, or all its cases are over, so that no further
/// launch would write the files that it owes.
void Launches::start_again(int launch, const LaunchEnd& end, int starts_in_vain) {
  constexpr std::size_t longest = 800, telling = 100;  // bytes; behind them may stand numbers of processes
  const std::string report = one_line(end.cause(), longest);
  const std::string what = fmt::format("launch {} ended outside of its cases with exit code {}{}", launch,
                                       end.exit_code, report.empty() ? "" : ": " + report);
  if (!outcomes_.have_met())
    if (const std::string obstacle = obstacle_to_launches(end.exit_code, report, mpi_library());
        !obstacle.empty())
      throw SystemError(obstacle);
  const bool owes_files = !options_.trace.empty() || !options_.exported.format.empty();
  if (owes_files && outcomes_.is_complete(launches_, static_cast<int>(options_.cases.size()))) {
    display_.finish();
    throw SystemError((report.empty() ? what : report) +
                      "; the rows stand, but the files of --trace and --export may not");
  }
  if (starts_in_vain > 1)
    throw SystemError(what.substr(0, telling) == said_.substr(0, telling)
                          ? fmt::format("launch {} ended in the same way again", launch)
                          : what);
  said_ = what;
  fmt::print(stderr, "baton: {}; it is started again\n", what);
}

/// Passes on what the launcher said in a launch that ended well, such as that it found no shared
/// memory; once for all launches.
void Launches::pass_on(const std::string& words) {
  if (words.empty() || words == said_) return;
  said_ = words;
  fmt::print(stderr, "baton: mpiexec says: {}\n", one_line(words, 800));
}

/// Prints what the launch has measured since the last call. False if it must end: nobody reads its
/// output, or it is overdue.
bool Launches::follow(bool ranks_are_gone) {
  outcomes_.read_on();
  display_.refresh();
  return !reader_left() && !has_lost_output() && !is_overdue(ranks_are_gone);
}

/// True if the launch has said nothing for too long: its processes have not met, or are gone and
/// their launcher hangs, or a case exceeds its time limit, which they themselves end if they can.
bool Launches::is_overdue(bool ranks_are_gone) {
  constexpr double patience = 20;  // seconds beyond the limit of a case
  if (outcomes_.bytes() != heard_bytes_) heard_at_ = monotonic_seconds();
  heard_bytes_ = outcomes_.bytes();
  const double limit = options_.time_limit_seconds, quiet = monotonic_seconds() - heard_at_;
  const double most =
      outcomes_.have_met() ? limit + patience : std::max<double>(limit, launcher().meeting_seconds);
  const bool is_left = ranks_are_gone && !outcomes_.have_met();
  if (!is_left && (limit == 0 || quiet < most || (outcomes_.have_met() && !outcomes_.unfinished())))
    return false;
  const char* what = outcomes_.have_met() ? "said nothing" : is_left ? "are gone" : "did not all start";
  silence_ = fmt::format("its processes {} for {:.0f} s", what, quiet);
  return true;
}

std::vector<std::string> Launches::command_of_launch() const {
  std::vector<std::string> command = command_;
  // Where the next launch may be the last one, each record says how many there are so far.
  const int of = options_.stop_at > 0 ? outcomes_.launch() : launches_;
  command.insert(command.end(), {"--of", fmt::format("{}", of)});
  return command;
}

/// Notes that a case failed in the present launch, with its row and its record.
void Launches::fail(int index, Failure failure) {
  const Record record = failed_record(options_, index, std::move(failure));
  outcomes_.end(index, record);
  try {
    RecordFiles(options_, outcomes_.run(), outcomes_.launch()).append(record);
  } catch (const SystemError&) {
    display_.finish();  // the rows stand, whether their records can be written or not
    throw;
  }
}

/// Gives up all cases of an executor and a number of ranks after three in a row have failed: each
/// might take as long as the time limit.
void Launches::give_up_like(int index) {
  constexpr std::size_t enough = 3;
  const auto is_alike = [&](const Case& a, const Case& b) {
    return a.executor == b.executor && a.ranks == b.ranks;
  };
  const Case& failed = options_.cases[index];
  if (!failed_in_a_row_.empty() && !is_alike(options_.cases[failed_in_a_row_.back()], failed))
    failed_in_a_row_.clear();
  failed_in_a_row_.push_back(index);
  if (failed_in_a_row_.size() < enough) return;
  for (int other = 0; other < static_cast<int>(options_.cases.size()); ++other)
    if (is_alike(options_.cases[other], failed) && !outcomes_.is_settled(other))
      fail(other, {.reason = fmt::format("not tried, since {} cases of {} at {} ranks failed before", enough,
                                         failed.executor, failed.ranks),
                   .rank = {},
                   .step = {}});
}

/// Says how many rows were measured, and how to get the others.
std::string Launches::missing() const {
  const int launches = options_.stop_at > 0 ? outcomes_.launch() : launches_;  // those that are known
  int done = 0;
  for (int launch = 1; launch <= launches; ++launch)
    for (int index = 0; index < static_cast<int>(options_.cases.size()); ++index) {
      const Outcome* outcome = outcomes_.outcome(launch, index);
      done += outcome != nullptr && outcome->state != Outcome::State::begun;
    }
  const std::string count =
      fmt::format("{} of {} rows were measured", done, launches * options_.cases.size());
  if (options_.journal.empty()) return count + "; with -J FILE their records would be kept";
  return fmt::format("{}, their records are in {}; the same command with --resume {} goes on", count,
                     printable(options_.journal), printable(options_.journal));
}

int Launches::interrupted() {
  display_.finish();
  const std::optional<int> index = outcomes_.unfinished();
  fmt::print(stderr, "baton: interrupted{}\nbaton: {}\n", index ? " in " + options_.cases[*index].name() : "",
             missing());
  return ExitCode::interrupted;
}

/// The word and the exit code for cases that ended in `state`.
struct Verdict {
  Outcome::State state;
  const char* word;
  int code;
};
constexpr std::array verdicts{Verdict{Outcome::State::wrong, "wrong", ExitCode::wrong},
                              Verdict{Outcome::State::invalid, "its schedule is wrong", ExitCode::schedule},
                              Verdict{Outcome::State::failed, "failed", ExitCode::failed}};

/// Prints the cases that were wrong or failed, the worst first. Returns the exit code of the run.
int Launches::summary() const {
  std::string lines;
  int count = 0, code = 0;
  for (const Verdict& verdict : verdicts)
    for (int index = 0; index < static_cast<int>(options_.cases.size()); ++index)
      for (int launch = 1; launch <= outcomes_.launch(); ++launch) {
        const Outcome* outcome = outcomes_.outcome(launch, index);
        if (outcome == nullptr || outcome->state != verdict.state) continue;
        ++count;
        if (code == 0) code = verdict.code;
        lines +=
            fmt::format("baton: {}: {}: {}\n", options_.cases[index].name(), verdict.word, outcome->reason);
      }
  if (count > 0)
    fmt::print(stderr, "baton: {} of {} cases gave no time\n{}", count, options_.cases.size(), lines);
  return count > 0 ? code : outcomes_.end_without_failures();
}

}  // namespace

int run_launches(const Options& options, char** argv) { return Launches(options, argv).run(); }

}  // namespace baton
