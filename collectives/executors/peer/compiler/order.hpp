// SPDX-License-Identifier: Apache-2.0
// In which order a rank that waits for each message can run its steps, and where messages lie in the inboxes.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "collectives/executors/peer/compiler/program.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// For each rank its steps in an order that it can run one after the other: sends never wait, receives do, and a receive
/// comes after all that some rank must do before its message is sent. Throws ScheduleError if there is none.
std::vector<std::vector<int>> peer_order(std::span<const Schedule> schedules);

/// The inboxes of all ranks: one message after the other, by sender and sequence, each from a packet of its own.
class PeerInboxes {
 public:
  PeerInboxes(std::span<const Schedule> schedules, int packet_elements);

  /// The message that `receiver` gets from `sender` as number `sequence`; `peer` in it is the sender.
  PeerMessage message(int receiver, int sender, int sequence) const;

  /// Of the fullest inbox.
  std::int64_t packets() const { return packets_; }
  int messages() const { return messages_; }

 private:
  std::vector<std::map<std::pair<int, int>, PeerMessage>> inboxes_;
  std::int64_t packets_ = 0;
  int messages_ = 0;
};

}  // namespace baton
