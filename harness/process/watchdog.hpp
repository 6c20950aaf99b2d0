// SPDX-License-Identifier: Apache-2.0
// Last words: when a rank dies or a case hangs, the others say which rank and which case, and end.
#pragma once

#include <string>

#include "harness/process/launch.hpp"

namespace baton {

/// To be called by a rank that has said why it is about to end all others: those of this host need not say that it died.
/// Async-signal-safe. Nothing without a Watchdog before.
void speak_for_all();

/// Watches one launch, through signals alone: nothing runs beside a measured round. SIGTERM is what a
/// launcher sends to the survivors of a rank that died; SIGALRM comes when a case takes longer than its
/// limit, and then ranks that are stopped are named too; SIGUSR1 comes from a rank that speaks for all. SIGINT comes from the
/// user, to a process alone.
class Watchdog {
 public:
  /// `limit_seconds` for each case; 0 for none. Records go to `journal`, if that is not empty. Collective over `world`.
  Watchdog(const World& world, int limit_seconds, const std::string& journal);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// A case begins: its name goes into the last words, and its time starts.
  void enter(const std::string& case_name);

 private:
  int limit_seconds_;
};

}  // namespace baton
