// SPDX-License-Identifier: Apache-2.0
// The ranks that a launcher of MPI on this host has started, as the kernel tells of them. Launchers
// do not always say which rank died as it started, and some then hang.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace baton {

/// The processes whose parent is `process`, by default the calling thread.
std::vector<pid_t> children_of(const std::string& process = "thread-self");

class StartedRanks {
 public:
  /// Of `launcher`, which starts `count` ranks.
  StartedRanks(pid_t launcher, int count) : launcher_(launcher), count_(count) {}
  ~StartedRanks();
  StartedRanks(const StartedRanks&) = delete;
  StartedRanks& operator=(const StartedRanks&) = delete;

  /// Finds ranks that it does not know yet, and those that have ended since the last look.
  void look();
  /// False while ranks may be found that the last look did not find.
  bool are_all_known() const { return static_cast<int>(ranks_.size()) >= count_; }
  /// Appends what becomes readable when a rank ends.
  void add_to(std::vector<pollfd>& polled) const;

  /// True if ranks were found, and the launcher has none any more.
  bool have_all_ended() const;
  /// The same, for so long that their launcher should have ended too.
  bool are_gone() const;
  /// The rank that ended before all others; nothing if none has, or if several ended at once.
  std::optional<int> first_ended() const { return first_ended_; }
  std::vector<int> stopped() const;

 private:
  struct Rank {
    int number;
    pid_t process;
    int descriptor;  // of pidfd_open(2), negative where the kernel has none
    bool has_ended = false;
  };

  pid_t launcher_;
  int count_;
  std::vector<Rank> ranks_;
  std::optional<int> first_ended_;
  double last_ended_at_ = 0;  // seconds on the monotonic clock
};

}  // namespace baton
