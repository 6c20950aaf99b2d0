// SPDX-License-Identifier: Apache-2.0
// Crash reports from signal handlers, which may only call async-signal-safe functions; exceptions
// to exit codes.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <iostream>
#include <new>
#include <string_view>
#include <thread>
#include <vector>

#include "collectives/executors/host/process_state.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/process/output.hpp"
#include "harness/process/system.hpp"
#include "harness/process/world.hpp"

namespace baton {
namespace {

constexpr int exit_after_crash = 5;
constexpr int exit_after_interrupt = 130;    // as shells have it
constexpr int exit_after_reader_left = 141;  // the same

/// The data that the handlers read, in static storage.
struct CrashContext {
  std::array<char, 512> case_name{};
  std::array<char, 512> results{};  // where the results of an interrupted run are
  std::vector<pid_t> processes;     // process ids of the ranks on this host, 0 for ranks elsewhere
  int rank = 0;
};
CrashContext context;

/// Set when another rank has reported the failure.
volatile sig_atomic_t failure_reported = 0;

void print(std::string_view text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

void print_number(int number) {
  std::array<char, 12> digits;
  auto at = digits.end();
  do *--at = static_cast<char>('0' + number % 10);
  while (number /= 10);
  print({at, static_cast<std::size_t>(digits.end() - at)});
}

bool is_in(ProcessState state, int rank) {
  return context.processes[rank] != 0 && state_of(context.processes[rank]) == state;
}

void report_rank(int rank, std::string_view what) {
  print("baton: rank ");
  print_number(rank);
  print(what);
  print(context.case_name.data());
  print("\n");
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

/// Only the lowest rank that still runs reports. It stays until the launcher kills it, so that no
/// other rank reports it as dead.
void on_terminate(int) {
  int reporter = 0;
  while (reporter < context.rank && is_in(ProcessState::gone, reporter)) ++reporter;
  if (reporter == context.rank && failure_reported == 0 && !report_ranks_in(ProcessState::gone, " died in "))
    report_rank(context.rank, " was ended in ");
  sleep(2);
  _exit(exit_after_crash);
}

/// All ranks time out together, so only the lowest live rank reports. It signals the others, waits
/// 1 s and exits; the others wait longer, since the launcher ends all ranks when the first one
/// exits.
void on_alarm(int) {
  if (context.rank > 0) sleep(2 * std::min(context.rank, 3));
  if (failure_reported == 0) {
    announce_failure();
    report_ranks_in(ProcessState::gone, " is gone in ");
    report_ranks_in(ProcessState::stopped, " is stopped in ");
    report_rank(context.rank, " exceeded the time limit in ");
    sleep(1);
  } else {
    sleep(4);
  }
  _exit(exit_after_crash);
}

/// Handles SIGINT in a process that runs alone; the ranks of a launcher get SIGTERM instead.
void on_interrupt(int) {
  print("\nbaton: interrupted in ");
  print(context.case_name.data());
  print("; ");
  print(context.results.data());
  print("\n");
  _exit(exit_after_interrupt);
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
  for (int other : blocked) sigaddset(&action.sa_mask, other);
  sigaction(signal, &action, nullptr);
}

int report(const std::exception& error, int code) {
  std::fflush(stdout);
  // A launcher ends all ranks when the first one ends, so rank 0, which prints, must come first.
  if (launched_rank() > 0) std::this_thread::sleep_for(std::chrono::seconds(1));
  // fmt would throw if the standard error cannot be written.
  const std::string line = "baton: " + one_line(error.what(), code == 2 ? 240 : 1000) + "\n";
  if (launched_rank() == 0) print(line);
  return code;
}

/// A failure whose reason is outside of the program's text. The reader of a pipe may leave whenever
/// it has read enough, as `head` does: that is the end, but no failure to speak of.
int report_failure(const std::exception& error) {
  if (reader_left() && (!std::cout || std::ferror(stdout) != 0)) return exit_after_reader_left;
  return report(error, 1);
}

}  // namespace

int exit_code_of(const std::function<void()>& body) {
  try {
    body();
    return 0;
  } catch (const UsageError& error) {
    return report(error, 2);
  } catch (const ScheduleError& error) {
    return report(error, 3);
  } catch (const WrongResult& error) {
    return report(error, 4);
  } catch (const std::bad_alloc&) {
    return report(SystemError(fmt::format("out of memory, {} MiB are left: ask for fewer ranks or blocks, or "
                                          "for smaller sizes",
                                          available_bytes() >> 20)),
                  1);
  } catch (const std::exception& error) {
    return report_failure(error);
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
    print(fmt::format("baton: rank {}: {}\n", world.rank(), one_line(error.what(), 1000)));
    announce_failure();
    // Other ranks may be about to report the same failure from their side.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    world.abort(1);
  }
}

void announce_failure() {
  for (int rank = 0; rank < static_cast<int>(context.processes.size()); ++rank)
    if (rank != context.rank && context.processes[rank] != 0) kill(context.processes[rank], SIGUSR1);
}

Watchdog::Watchdog(const World& world, int limit_seconds, const std::string& journal)
    : limit_seconds_(limit_seconds) {
  store(context.results,
        "the rows above stand" + (journal.empty() ? "" : ", and their records in " + journal));
  context.rank = world.rank();
  context.processes.clear();
  const double here = host_number();
  for (const auto& row : world.all().gather({here, static_cast<double>(getpid())}))
    context.processes.push_back(row[0] == here ? static_cast<pid_t>(row[1]) : 0);
  failure_reported = 0;
  handle(SIGTERM, on_terminate);
  handle(SIGALRM, on_alarm, {SIGTERM});
  handle(SIGUSR1, on_peer_reported, {SIGTERM, SIGALRM});
  if (!is_launched()) handle(SIGINT, on_interrupt);
  world.all().wait_asleep();  // from here on every rank handles the signals
}

Watchdog::~Watchdog() {
  alarm(0);
  handle(SIGTERM, SIG_DFL);
  handle(SIGALRM, SIG_DFL);
  if (!is_launched()) handle(SIGINT, SIG_DFL);
  handle(SIGUSR1, SIG_IGN);  // another rank may end later than this one
}

void Watchdog::enter(const std::string& case_name) {
  store(context.case_name, case_name);
  alarm(limit_seconds_);
}

}  // namespace baton
