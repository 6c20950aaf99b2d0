// SPDX-License-Identifier: Apache-2.0
// Reports of failures say whether another process of this host still runs, and where this process
// is within a round. All calls are async-signal-safe.
#pragma once

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>

namespace baton {

enum class ProcessState { runs, stopped, gone };

/// The path "/proc/PROCESS/stat", zero-terminated.
inline std::array<char, 40> proc_stat_path(pid_t process) {
  std::array<char, 40> path{};
  std::array<char, 12> digits{};
  auto first = digits.end();
  do *--first = static_cast<char>('0' + process % 10);
  while (process /= 10);
  constexpr std::string_view before = "/proc/", after = "/stat";
  auto at = std::copy(before.begin(), before.end(), path.begin());
  at = std::copy(first, digits.end(), at);
  std::copy(after.begin(), after.end(), at);
  return path;
}

/// The state of `process` as the kernel tells it. May be called in a signal handler. A process that
/// has ended counts as gone even if nobody has waited for it.
inline ProcessState state_of(pid_t process) {
  const int file = open(proc_stat_path(process).data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return ProcessState::gone;
  std::array<char, 256> text{};
  const ssize_t length = read(file, text.data(), text.size());
  close(file);
  // The state is the letter after the program's name, which stands in parentheses and may contain
  // some.
  const std::string_view read_text(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  const std::size_t name_end = read_text.rfind(") ");
  if (name_end == std::string_view::npos || name_end + 2 >= read_text.size()) return ProcessState::gone;
  const char letter = read_text[name_end + 2];
  if (letter == 'T' || letter == 't') return ProcessState::stopped;
  return letter == 'Z' || letter == 'X' ? ProcessState::gone : ProcessState::runs;
}

/// The steps of this process's schedule that it is busy with; -1 for none.
struct RunningStep {
  static constexpr int unknown = -2;  // to executors that do not tell
  /// The step that the thread with the messages runs or waits for.
  std::atomic<int> step = unknown;
  /// The rank for whose message it waits; -1 if it runs a local step.
  std::atomic<int> peer = -1;
  /// The step that the computing thread runs.
  std::atomic<int> computes = -1;

  void waits_for(int message, int from) { set(message, from); }
  void runs(int local) { set(local, -1); }
  void ends() { set(-1, -1); }

 private:
  void set(int new_step, int new_peer) {
    step.store(new_step, std::memory_order_relaxed);
    peer.store(new_peer, std::memory_order_relaxed);
  }
};

inline RunningStep running_step;

}  // namespace baton
