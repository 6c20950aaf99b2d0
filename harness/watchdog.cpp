// SPDX-License-Identifier: Apache-2.0
// Last words from signal handlers, which may only call what is async-signal-safe.
#include "harness/watchdog.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "harness/machine.hpp"

namespace baton {
namespace {

constexpr int exit_code = 5;

/// What the handlers need, in static storage.
struct Words {
  std::array<char, 512> case_name{};
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

bool is_gone(pid_t process) { return process != 0 && kill(process, 0) != 0 && errno == ESRCH; }

void say_where(int rank, std::string_view what) {
  say("baton: rank ");
  say_number(rank);
  say(what);
  say(words.case_name.data());
  say("\n");
}

/// The lowest rank that is left speaks for all. It stays until the launcher kills it, so that no other rank
/// takes it for dead as well.
void on_terminate(int) {
  int speaker = 0;
  const auto ranks = static_cast<int>(words.processes.size());
  while (speaker < ranks && is_gone(words.processes[speaker])) ++speaker;
  if (speaker == words.rank) {
    bool found = false;
    for (int rank = 0; rank < ranks; ++rank) {
      if (!is_gone(words.processes[rank])) continue;
      say_where(rank, " died in ");
      found = true;
    }
    if (!found) say_where(words.rank, " was ended in ");
  }
  sleep(2);
  _exit(exit_code);
}

/// All ranks' time is up together: the lowest that can speak does, and the launcher ends the rest meanwhile.
void on_alarm(int) {
  if (words.rank > 0) sleep(words.rank < 3 ? words.rank : 3);
  say_where(words.rank, " exceeded the time limit in ");
  _exit(exit_code);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(signal, &action, nullptr);
}

}  // namespace

Watchdog::Watchdog(const World& world, int limit_seconds) : limit_seconds_(limit_seconds) {
  words.rank = world.rank();
  words.processes.clear();
  const double here = host_number();
  for (const auto& row : world.all().gather({here, static_cast<double>(getpid())}))
    words.processes.push_back(row[0] == here ? static_cast<pid_t>(row[1]) : 0);
  handle(SIGTERM, on_terminate);
  handle(SIGALRM, on_alarm);
}

Watchdog::~Watchdog() {
  alarm(0);
  handle(SIGTERM, SIG_DFL);
  handle(SIGALRM, SIG_DFL);
}

void Watchdog::enter(const std::string& case_name) {
  const std::size_t length = std::min(case_name.size(), words.case_name.size() - 1);
  std::memcpy(words.case_name.data(), case_name.data(), length);
  words.case_name[length] = '\0';
  alarm(limit_seconds_);
}

}  // namespace baton
