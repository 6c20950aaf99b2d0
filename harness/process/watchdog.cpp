// SPDX-License-Identifier: Apache-2.0
// Crash reports from signal handlers, which may only call async-signal-safe functions.
#include "harness/process/watchdog.hpp"

#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <string_view>
#include <vector>

#include "collectives/executors/host/process_state.hpp"
#include "harness/machine/placement.hpp"
#include "harness/process/heartbeat.hpp"
#include "harness/process/report.hpp"

namespace baton {
namespace {

using What = Report::What;

constexpr std::string_view start_up = "start-up";  // what comes before the first case

/// The data that the handlers read, in static storage.
struct CrashContext {
  Line case_name;
  Line results;                  // where the results of an interrupted run are
  std::vector<pid_t> processes;  // process ids of the ranks on this host, 0 for ranks elsewhere
  std::vector<int> here;         // the ranks on this host
  int place = 0;                 // of this rank among them
  int hosts = 1;
  Bootstrap* bootstrap = nullptr;  // its heartbeats find lost ranks elsewhere
  int lost_rank = -1;              // one that a heartbeat found
  int rank = 0, limit_seconds = 0;
  time_t case_began = 0;  // on the monotonic clock
  int looks_in_vain = 0;  // looks at the next rank, one after the other, at which it did not run
};
CrashContext context;
Heartbeat heartbeat;

/// Set when another rank has reported the failure.
volatile sig_atomic_t failure_reported = 0;

/// Says where the results of this run are, unless the process that starts the launches does.
void report_results() {
  if (!context.results.view().empty() && context.case_name.view() != start_up) context.results.print();
}

/// Tells the other ranks that a failure has been reported, so that they do not report it again.
void announce_failure() {
  heartbeat.take_leave();
  for (int rank = 0; rank < static_cast<int>(context.processes.size()); ++rank)
    if (rank != context.rank && context.processes[rank] != 0) kill(context.processes[rank], SIGUSR1);
  if (context.bootstrap != nullptr) context.bootstrap->announce_failure();
}

bool is_in(ProcessState state, int rank) {
  return context.processes[rank] != 0 && state_of(context.processes[rank]) == state;
}

/// Reports `what` of a rank, and of this one where it is within its round, if it is in one.
void report_rank(int rank, What what) {
  Report report{.what = what, .rank = rank, .part = context.case_name};
  const bool computes = running_step.computes >= 0;
  const int step = computes ? running_step.computes : running_step.step, peer = running_step.peer;
  if (rank == context.rank) {
    report.between_rounds = step == -1;
    if (step >= 0) report.step = step;
    if (step >= 0 && !computes && peer >= 0) report.waits_for = peer;
  }
  report.send();
}

/// Reports all ranks that are in `state`; false if there are none.
bool report_ranks_in(ProcessState state, What what) {
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

/// Reports the host that this process listens to if its ranks have died or their signs of life have
/// stayed away for longer than those of a busy host; false otherwise.
bool report_lost_host() {
  constexpr int too_long_ms = 4000;
  if (!heartbeat.has_died() && heartbeat.silence_ms() < too_long_ms) return false;
  Report report{.part = context.case_name};
  report.text << "host " << heartbeat.heard_host() + 1 << " of " << context.hosts << " (ranks";
  for (const int rank : heartbeat.heard_ranks()) report.text << " " << rank;
  report.text << (heartbeat.has_died() ? ") has no rank left" : ") has not been heard of for ");
  if (!heartbeat.has_died()) report.text << heartbeat.silence_ms() / 1000 << " s";
  report.send();
  return true;
}

/// Reports the rank that a heartbeat found lost, unless it was seen gone or stopped; else false.
bool report_lost_rank(What what) {
  const int lost = context.lost_rank;
  if (lost < 0 || is_in(ProcessState::gone, lost) || is_in(ProcessState::stopped, lost)) return false;
  report_rank(lost, what);
  return true;
}

/// Sends signs of life to other hosts and to the bootstrap, and notes the failures that it tells.
void beat() {
  heartbeat.tick();
  if (context.bootstrap == nullptr) return;
  const Bootstrap::Beat found = context.bootstrap->beat();
  if (found.failure_reported) failure_reported = 1;
  if (found.lost_rank >= 0) context.lost_rank = found.lost_rank;
}

/// Sends this process a SIGALRM every `seconds`, or none for 0.
void set_ticks(int seconds) {
  const itimerval ticks{.it_interval = {seconds, 0}, .it_value = {seconds, 0}};
  setitimer(ITIMER_REAL, &ticks, nullptr);
}

/// Waits over 2 s for the launcher to kill this process, and gives signs of life meanwhile. If it
/// `listens` it reports the host before if that is lost.
void stay_for_the_launcher(bool listens) {
  constexpr int pause_ms = 10, stay_ms = 2200;
  constexpr timespec pause{0, pause_ms * 1'000'000};
  for (int ms = 0; ms < stay_ms; ms += pause_ms) {
    heartbeat.tick();
    if (listens) listens = !report_lost_host();
    nanosleep(&pause, nullptr);
  }
}

/// Handles SIGTERM. Only the lowest rank of a host that still runs reports who died there; every
/// rank says where it waits. Ranks stay until the launcher kills them: no other rank shall report
/// them as dead, and Open MPI kills all others of a host as soon as one has ended.
void on_terminate(int) {
  set_ticks(0);
  heartbeat.take_leave();
  const auto reporter = std::find_if(context.here.begin(), context.here.end(), [](int rank) {
    return rank == context.rank || !is_in(ProcessState::gone, rank);
  });
  const bool reports = failure_reported == 0 && *reporter == context.rank;
  if (reports) {
    const bool found = report_ranks_in(ProcessState::gone, What::died) || report_lost_rank(What::died);
    const bool speaks_for_all = !found && context.here.front() == 0;
    if (speaks_for_all) report_rank(context.rank, What::ended);
    if (speaks_for_all) report_results();
  }
  if (running_step.step != RunningStep::unknown) report_rank(context.rank, What::was);
  stay_for_the_launcher(reports);
  _exit(ExitCode::failed);
}

/// Reports ranks that do not run, and what this one waits for; then ends the launch. It signals the
/// other ranks of the host, waits 1 s, or longer where other hosts may have something to report,
/// and exits: a launcher ends all ranks when the first one exits. Unless `speaks_for_all`, only
/// ranks of the first host say where the results are.
void give_up(What why, bool speaks_for_all) {
  failure_reported = 1;  // another thread of this process may get a signal meanwhile
  announce_failure();
  report_ranks_in(ProcessState::gone, What::gone);
  report_ranks_in(ProcessState::stopped, What::stopped);
  report_lost_rank(What::lost);
  report_lost_host();
  report_rank(context.rank, why);
  if (speaks_for_all || context.here.front() == 0) report_results();
  sleep(context.hosts > 1 ? 3 : 1);
  _exit(ExitCode::failed);
}

/// Ends this process after another rank has given up the launch.
void follow() {
  report_rank(context.rank, What::was);
  sleep(4);
  _exit(ExitCode::failed);
}

/// True if the next rank of this host has been stopped or gone for some seconds. A process that
/// wakes with all ranks of a terminal's job is not lost, nor is one that ends in good order.
bool next_rank_is_lost(time_t now) {
  constexpr int seconds_between_looks = 4, looks = 2;
  if (context.here.size() < 2 || now % seconds_between_looks != 0) return false;
  const int next = context.here[(context.place + 1) % context.here.size()];
  context.looks_in_vain = is_in(ProcessState::runs, next) ? 0 : context.looks_in_vain + 1;
  return context.looks_in_vain >= looks;
}

/// Ends the launch if it has failed. All ranks exceed the limit together, and may find the same
/// rank lost, so the lowest live rank, or that of each host, reports first and the others only say
/// where they wait. Another thread may get the next tick while this handler sleeps.
void look_around() {
  static std::atomic_flag is_ending;
  beat();
  const time_t now = now_seconds();
  const bool is_late = context.limit_seconds > 0 && now - context.case_began >= context.limit_seconds;
  const bool is_lost = next_rank_is_lost(now), is_silent = context.lost_rank >= 0;
  if (!is_late && !is_lost && !is_silent && failure_reported == 0) return;
  if (is_ending.test_and_set()) return;
  const int turn = is_silent ? context.rank : context.place;
  if (failure_reported == 0 && !is_lost && turn > 0) {
    sleep(2 * std::min(turn, 3));
    beat();
  }
  if (failure_reported != 0) follow();
  give_up(is_lost || is_silent ? What::waited : What::exceeded, is_lost || is_silent);
}

void on_tick(int) {
  const int error = errno;
  look_around();
  errno = error;
}

/// Handles SIGINT in a process that runs alone; the ranks of a launcher get SIGTERM instead.
void on_interrupt(int) {
  Report{.what = What::interrupted, .part = context.case_name}.send();
  report_results();
  _exit(ExitCode::interrupted);
}

void on_peer_reported(int) { failure_reported = 1; }

/// Sets the handler of `signal`; signals in `blocked` do not interrupt it. If two signals are
/// pending, the one that may interrupt the other runs first.
void handle(int signal, void (*handler)(int), std::initializer_list<int> blocked = {}) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // what a tick interrupts goes on
  for (int other : blocked) sigaddset(&action.sa_mask, other);
  sigaction(signal, &action, nullptr);
}

}  // namespace

void report_error(const Report& error) {
  const bool is_news = failure_reported == 0;
  if (is_news) error.send();
  announce_failure();
  if (is_news) report_results();
}

Watchdog::Watchdog(const World& world, int limit_seconds, const std::string& keeps) {
  context.results = Line() << keeps;
  context.rank = world.rank();
  context.limit_seconds = limit_seconds;
  context.processes.clear();
  const Placement placement = placement_of(world.all(), world.size());
  for (const auto& row : world.all().gather({static_cast<double>(getpid())}))
    context.processes.push_back(static_cast<pid_t>(row.front()));
  const int host = placement.host_of(context.rank);
  for (int rank = 0; rank < world.size(); ++rank)
    if (placement.host_of(rank) != host) context.processes[rank] = 0;
  context.hosts = placement.hosts();
  context.here = placement.members(host);
  context.place = static_cast<int>(std::find(context.here.begin(), context.here.end(), context.rank) -
                                   context.here.begin());
  heartbeat.start(world, placement);
  failure_reported = 0;
  context.lost_rank = -1;
  context.bootstrap = world.bootstrap();
  enter(std::string(start_up));
  handle(SIGTERM, on_terminate);
  handle(SIGALRM, on_tick, {SIGTERM});
  handle(SIGUSR1, on_peer_reported, {SIGTERM, SIGALRM});
  if (!is_launched()) handle(SIGINT, on_interrupt);
  world.all().wait_asleep();  // from here on every rank handles the signals
  if (context.bootstrap != nullptr) context.bootstrap->begin_beats();
  set_ticks(1);
}

Watchdog::~Watchdog() {
  set_ticks(0);
  heartbeat.stop();
  if (context.bootstrap != nullptr) context.bootstrap->end_beats();
  context.bootstrap = nullptr;
  handle(SIGTERM, SIG_DFL);
  handle(SIGALRM, SIG_DFL);
  if (!is_launched()) handle(SIGINT, SIG_DFL);
  handle(SIGUSR1, SIG_IGN);  // another rank may end later than this one
}

void Watchdog::enter(const std::string& case_name) {
  context.case_began = now_seconds();
  context.looks_in_vain = 0;
  context.case_name = Line() << case_name;
}

}  // namespace baton
