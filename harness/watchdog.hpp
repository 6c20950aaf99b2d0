// SPDX-License-Identifier: Apache-2.0
// Last words: when a rank dies or a case hangs, the others say which rank and which case, and end.
#pragma once

#include <string>

#include "harness/launch.hpp"

namespace baton {

/// Watches one launch, through signals alone: nothing runs beside a measured round. SIGTERM is what a
/// launcher sends to the survivors of a rank that died; SIGALRM comes when a case takes longer than its
/// limit.
class Watchdog {
 public:
  /// `limit_seconds` for each case; 0 for none. Collective over `world`.
  Watchdog(const World& world, int limit_seconds);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// A case begins: its name goes into the last words, and its time starts.
  void enter(const std::string& case_name);

 private:
  int limit_seconds_;
};

}  // namespace baton
