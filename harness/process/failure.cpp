// SPDX-License-Identifier: Apache-2.0
// Crash reports from signal handlers, which may only call async-signal-safe functions; exceptions
// to exit codes.
#include <fmt/format.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <new>
#include <string_view>
#include <thread>
#include <vector>

#include "collectives/executors/host/process_state.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/process/heartbeat.hpp"
#include "harness/process/output.hpp"
#include "harness/process/placement.hpp"
#include "harness/process/report_line.hpp"
#include "harness/process/system.hpp"
#include "harness/process/world.hpp"

namespace baton {
namespace {

/// The data that the handlers read, in static storage.
struct CrashContext {
  std::array<char, 512> case_name{};
  std::array<char, 512> results{};  // where the results of an interrupted run are
  std::vector<pid_t> processes;     // process ids of the ranks on this host, 0 for ranks elsewhere
  std::vector<int> here;            // the ranks on this host
  int place = 0;                    // of this rank among them
  int hosts = 1;
  int rank = 0;
  int limit_seconds = 0;
  time_t case_began = 0;  // on the monotonic clock
  int looks_in_vain = 0;  // looks at the next rank, one after the other, at which it did not run
};
CrashContext context;
Heartbeat heartbeat;

/// Set when another rank has reported the failure.
volatile sig_atomic_t failure_reported = 0;

bool is_in(ProcessState state, int rank) {
  return context.processes[rank] != 0 && state_of(context.processes[rank]) == state;
}

/// Adds where this process is within its round, if it is in one.
void add_step(Line& line) {
  const bool computes = running_step.computes >= 0;
  const int step = computes ? running_step.computes : running_step.step, peer = running_step.peer;
  if (step == -1) line << " between two rounds";
  if (step < 0) return;
  line << " at step " << step;
  if (!computes && peer >= 0) line << ", waiting for rank " << peer;
}

void report_rank(int rank, std::string_view what) {
  Line line;
  line << "rank " << rank << what << context.case_name.data();
  if (rank == context.rank) add_step(line);
}

/// Reports all ranks that are in `state`; false if there are none.
bool report_ranks_in(ProcessState state, std::string_view what) {
  bool found = false;
  for (int rank = 0; rank < static_cast<int>(context.processes.size()); ++rank) {
    if (rank == context.rank || !is_in(state, rank)) continue;
    report_rank(rank, what);
    found = true;
  }
  return found;
}

time_t now_seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

/// Reports the host whose signs of life have stayed away for `too_long`, if it is this process that
/// listens for it.
void report_silent_host(int too_long) {
  const int silence = heartbeat.silent_seconds(now_seconds());
  if (silence < too_long) return;
  Line line;
  line << "host " << heartbeat.heard_host() + 1 << " of " << context.hosts << " (ranks";
  for (const int rank : heartbeat.heard_ranks()) line << " " << rank;
  line << ") has not been heard of for " << silence << " s in " << context.case_name.data();
}

/// Says where the results of this run are, unless a director does.
void report_results() {
  if (context.results[0] == '\0') return;
  Line() << context.results.data();
}

/// True if nothing is heard of the host before while all ranks are ended: those that live give many
/// signs of it then. A launcher leaves them 1 s.
bool is_left_alone() {
  constexpr int looks = 7;
  constexpr timespec pause{0, 100'000'000};
  const int before = heartbeat.heard();
  for (int look = 0; look < looks && before > 0; ++look) {
    heartbeat.tick(now_seconds());
    nanosleep(&pause, nullptr);
  }
  heartbeat.tick(now_seconds());
  return before > 0 && heartbeat.heard() == before;
}

/// Only the lowest rank of a host that still runs reports who died there, and every rank says where
/// it waits. They stay until the launcher kills them, so that no other rank reports them as dead.
void on_terminate(int) {
  const auto reporter = std::find_if(context.here.begin(), context.here.end(), [](int rank) {
    return rank == context.rank || !is_in(ProcessState::gone, rank);
  });
  if (failure_reported == 0 && *reporter == context.rank) {
    const bool found = report_ranks_in(ProcessState::gone, " died in ");
    const bool speaks_for_all = context.here.front() == 0;
    if (!found && speaks_for_all) report_rank(context.rank, " was ended in ");
    if (!found && speaks_for_all) report_results();
    if (is_left_alone()) report_silent_host(1);
  }
  if (running_step.step != RunningStep::unknown) report_rank(context.rank, " was in ");
  sleep(2);
  _exit(ExitCode::failed);
}

/// Reports ranks that do not run, and what this one waits for; then ends the launch. It signals the
/// other ranks of the host, waits 1 s, or longer where other hosts may have something to report, and
/// exits: a launcher ends all ranks when the first one exits.
/// Where the ranks of all hosts give up together, those of the first one alone speak for all.
void give_up(std::string_view why, bool speaks_for_all) {
  announce_failure();
  report_ranks_in(ProcessState::gone, " is gone in ");
  report_ranks_in(ProcessState::stopped, " is stopped in ");
  report_silent_host(4);
  report_rank(context.rank, why);
  if (speaks_for_all || context.here.front() == 0) report_results();
  sleep(context.hosts > 1 ? 3 : 1);
  _exit(ExitCode::failed);
}

/// Ends a launch that another rank has given up.
void follow() {
  report_rank(context.rank, " was in ");
  sleep(4);
  _exit(ExitCode::failed);
}

/// Returns true if the next rank of this host has been stopped or gone for some seconds: a process
/// that all ranks of a terminal's job are woken by is not, nor is one that ends in good order.
bool next_rank_is_lost(time_t now) {
  constexpr int seconds_between_looks = 4, looks = 2;
  if (context.here.size() < 2 || now % seconds_between_looks != 0) return false;
  const int next = context.here[(context.place + 1) % context.here.size()];
  context.looks_in_vain = is_in(ProcessState::runs, next) ? 0 : context.looks_in_vain + 1;
  return context.looks_in_vain >= looks;
}

/// All ranks exceed the limit together, so the lowest live rank of each host reports first and the
/// others only say where they wait. Another thread may get the next tick while this handler sleeps.
void on_tick(int) {
  static std::atomic_flag is_ending;
  const time_t now = now_seconds();
  heartbeat.tick(now);
  const bool is_late = context.limit_seconds > 0 && now - context.case_began >= context.limit_seconds;
  const bool is_lost = next_rank_is_lost(now);
  if (!is_late && !is_lost && failure_reported == 0) return;
  if (is_ending.test_and_set()) return;
  if (is_late && !is_lost && context.place > 0) sleep(2 * std::min(context.place, 3));
  if (failure_reported != 0) follow();
  give_up(is_lost ? " waited in " : " exceeded the time limit in ", is_lost);
}

/// Handles SIGINT in a process that runs alone; the ranks of a launcher get SIGTERM instead.
void on_interrupt(int) {
  Line() << "interrupted in " << context.case_name.data();
  report_results();
  _exit(ExitCode::interrupted);
}

void on_peer_reported(int) { failure_reported = 1; }

void store(std::array<char, 512>& into, const std::string& text) {
  const std::size_t length = std::min(text.size(), into.size() - 1);
  std::memcpy(into.data(), text.data(), length);
  into[length] = '\0';
}

/// The signals in `blocked` do not interrupt `handler`. If two signals are pending, the one that
/// may interrupt the other runs first.
void handle(int signal, void (*handler)(int), std::initializer_list<int> blocked = {}) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // what a tick interrupts goes on
  for (int other : blocked) sigaddset(&action.sa_mask, other);
  sigaction(signal, &action, nullptr);
}

/// A tick every `seconds`, or none for 0.
void set_ticks(int seconds) {
  const itimerval ticks{.it_interval = {seconds, 0}, .it_value = {seconds, 0}};
  setitimer(ITIMER_REAL, &ticks, nullptr);
}

int report(const std::exception& error, int code) {
  std::fflush(stdout);
  // A launcher ends all ranks when the first one ends, so rank 0, which prints, must come first.
  if (launched_rank() > 0) std::this_thread::sleep_for(std::chrono::seconds(1));
  if (launched_rank() == 0) Line() << one_line(error.what(), code == ExitCode::usage ? 240 : 1000);
  return code;
}

}  // namespace

int exit_code_of(const std::function<int()>& body) {
  try {
    return body();
  } catch (const UsageError& error) {
    return report(error, ExitCode::usage);
  } catch (const ScheduleError& error) {
    return report(error, ExitCode::schedule);
  } catch (const WrongResult& error) {
    return report(error, ExitCode::wrong);
  } catch (const std::bad_alloc&) {
    return report(SystemError("out of memory: ask for fewer ranks or blocks, or for smaller sizes"),
                  ExitCode::system);
  } catch (const std::exception& error) {
    return reader_left() && has_lost_output() ? ExitCode::reader_left : report(error, ExitCode::system);
  }
}

void run_in_world(int* argc, char*** argv, const std::function<void(const World&)>& body) {
  World world(argc, argv);
  try {
    body(world);
  } catch (const UsageError&) {
    throw;
  } catch (const ScheduleError&) {
    throw;
  } catch (const WrongResult&) {
    throw;
  } catch (const std::exception& error) {
    if (world.size() == 1) throw;
    Line() << "rank " << world.rank() << ": " << one_line(error.what(), 900);
    announce_failure();
    report_results();
    // Other ranks may be about to report the same failure from their side.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    world.abort(1);
  }
}

void announce_failure() {
  for (int rank = 0; rank < static_cast<int>(context.processes.size()); ++rank)
    if (rank != context.rank && context.processes[rank] != 0) kill(context.processes[rank], SIGUSR1);
}

Watchdog::Watchdog(const World& world, int limit_seconds, const std::string& keeps) {
  store(context.results, keeps);
  context.rank = world.rank();
  context.limit_seconds = limit_seconds;
  context.processes.clear();
  const double here = host_number();
  for (const auto& row : world.all().gather({here, static_cast<double>(getpid())}))
    context.processes.push_back(row[0] == here ? static_cast<pid_t>(row[1]) : 0);
  const Placement placement = placement_of(world.all(), world.size());
  context.hosts = placement.hosts();
  context.here = placement.members(placement.host_of(context.rank));
  context.place = static_cast<int>(std::find(context.here.begin(), context.here.end(), context.rank) -
                                   context.here.begin());
  heartbeat.start(world, placement);
  failure_reported = 0;
  enter("the first case");
  handle(SIGTERM, on_terminate);
  handle(SIGALRM, on_tick, {SIGTERM});
  handle(SIGUSR1, on_peer_reported, {SIGTERM, SIGALRM});
  if (!is_launched()) handle(SIGINT, on_interrupt);
  world.all().wait_asleep();  // from here on every rank handles the signals
  set_ticks(1);
}

Watchdog::~Watchdog() {
  set_ticks(0);
  heartbeat.stop();
  handle(SIGTERM, SIG_DFL);
  handle(SIGALRM, SIG_DFL);
  if (!is_launched()) handle(SIGINT, SIG_DFL);
  handle(SIGUSR1, SIG_IGN);  // another rank may end later than this one
}

void Watchdog::enter(const std::string& case_name) {
  context.case_began = now_seconds();
  context.looks_in_vain = 0;
  store(context.case_name, case_name);
}

}  // namespace baton
