// SPDX-License-Identifier: Apache-2.0
// Last words from signal handlers, which may only call what is async-signal-safe.
#include "harness/process/watchdog.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "collectives/executors/host/process_state.hpp"
#include "harness/process/machine.hpp"

namespace baton {
namespace {

constexpr int exit_code = 5;
constexpr int interrupted = 130;  // as a shell has it

/// What the handlers need, in static storage.
struct Words {
  std::array<char, 512> case_name{};
  std::array<char, 512> kept{};  // what an interrupted run leaves behind
  std::vector<pid_t> processes;  // of the ranks on this host, 0 for ranks elsewhere
  int rank = 0;
};
Words words;

void say(std::string_view text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

void say_number(int number) {
  std::array<char, 12> digits;
  auto at = digits.end();
  do *--at = static_cast<char>('0' + number % 10);
  while (number /= 10);
  say({at, static_cast<std::size_t>(digits.end() - at)});
}

/// Set when another rank has said why all end.
volatile sig_atomic_t is_hushed = 0;

bool is_in(ProcessState state, int rank) {
  return words.processes[rank] != 0 && state_of(words.processes[rank]) == state;
}

void say_where(int rank, std::string_view what) {
  say("baton: rank ");
  say_number(rank);
  say(what);
  say(words.case_name.data());
  say("\n");
}

/// Says it of all ranks that are in `state`; false where there are none.
bool say_who(ProcessState state, std::string_view what) {
  bool found = false;
  for (int rank = 0; rank < static_cast<int>(words.processes.size()); ++rank) {
    if (rank == words.rank || !is_in(state, rank)) continue;
    say_where(rank, what);
    found = true;
  }
  return found;
}

/// The lowest rank that is left speaks for all. It stays until the launcher kills it, so that no other rank
/// takes it for dead as well.
void on_terminate(int) {
  int speaker = 0;
  while (speaker < words.rank && is_in(ProcessState::gone, speaker)) ++speaker;
  if (speaker == words.rank && is_hushed == 0 && !say_who(ProcessState::gone, " died in "))
    say_where(words.rank, " was ended in ");
  sleep(2);
  _exit(exit_code);
}

/// All ranks' time is up together: the lowest that can speak does. It leaves the others a second to hear of it, and they
/// it a moment to end first: whoever ends makes the launcher end the rest.
void on_alarm(int) {
  if (words.rank > 0) sleep(2 * std::min(words.rank, 3));
  if (is_hushed == 0) {
    speak_for_all();
    say_who(ProcessState::gone, " is gone in ");
    say_who(ProcessState::stopped, " is stopped in ");
    say_where(words.rank, " exceeded the time limit in ");
    sleep(1);
  } else {
    sleep(4);
  }
  _exit(exit_code);
}

/// Of a process alone; ranks under a launcher hear of it by SIGTERM.
void on_interrupt(int) {
  say("\nbaton: interrupted in ");
  say(words.case_name.data());
  say("; ");
  say(words.kept.data());
  say("\n");
  _exit(interrupted);
}

void on_hush(int) { is_hushed = 1; }

void keep(std::array<char, 512>& words, const std::string& text) {
  const std::size_t length = std::min(text.size(), words.size() - 1);
  std::memcpy(words.data(), text.data(), length);
  words[length] = '\0';
}

/// `handler` is not interrupted by the signals in `blocked`. Of two that are pending, the one that may interrupt the other
/// runs first.
void handle(int signal, void (*handler)(int), std::initializer_list<int> blocked = {}) {
  struct sigaction action {};
  action.sa_handler = handler;
  for (int other : blocked) sigaddset(&action.sa_mask, other);
  sigaction(signal, &action, nullptr);
}

}  // namespace

void speak_for_all() {
  for (int rank = 0; rank < static_cast<int>(words.processes.size()); ++rank)
    if (rank != words.rank && words.processes[rank] != 0) kill(words.processes[rank], SIGUSR1);
}

Watchdog::Watchdog(const World& world, int limit_seconds, const std::string& journal)
    : limit_seconds_(limit_seconds) {
  keep(words.kept, "the rows above stand" + (journal.empty() ? "" : ", and their records in " + journal));
  words.rank = world.rank();
  words.processes.clear();
  const double here = host_number();
  for (const auto& row : world.all().gather({here, static_cast<double>(getpid())}))
    words.processes.push_back(row[0] == here ? static_cast<pid_t>(row[1]) : 0);
  is_hushed = 0;
  handle(SIGTERM, on_terminate);
  handle(SIGALRM, on_alarm, {SIGTERM});
  handle(SIGUSR1, on_hush, {SIGTERM, SIGALRM});
  if (!is_launched()) handle(SIGINT, on_interrupt);
  world.all().wait_asleep();  // from now on all know the signals
}

Watchdog::~Watchdog() {
  alarm(0);
  handle(SIGTERM, SIG_DFL);
  handle(SIGALRM, SIG_DFL);
  if (!is_launched()) handle(SIGINT, SIG_DFL);
  handle(SIGUSR1, SIG_IGN);  // another rank may end later than this one
}

void Watchdog::enter(const std::string& case_name) {
  keep(words.case_name, case_name);
  alarm(limit_seconds_);
}

}  // namespace baton
