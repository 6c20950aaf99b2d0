// SPDX-License-Identifier: Apache-2.0
// The front of the compiler: steps get an order, messages get places in inboxes, and steps become
// micro-operations.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "collectives/executors/peer/compiler/ir.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// The steps of each rank in an order that it can run one after the other. A receive comes after
/// all steps that some rank must run before the message is sent. Throws ScheduleError if there is
/// no such order.
std::vector<std::vector<int>> order_peer_steps(std::span<const Schedule> schedules);

/// The inboxes of all ranks: one message after the other, by sender and sequence, each from a
/// packet of its own.
class PeerInboxes {
 public:
  PeerInboxes(std::span<const Schedule> schedules, int packet_elements);

  /// The message number `sequence` from `sender` to `receiver`; its `peer` is the sender.
  PeerMessage message(int receiver, int sender, int sequence) const;

  /// Largest number of packets in the inbox of any rank.
  std::int64_t packets() const { return packets_; }

 private:
  std::vector<std::map<std::pair<int, int>, PeerMessage>> inboxes_;
  std::int64_t packets_ = 0;
};

enum class PeerAction { receive, send, copy, fold, compute };

/// A step, or one half of a combine that composes: its state, then its decay.
struct PeerMicroOp {
  PeerAction action = PeerAction::copy;
  int step = 0;
  Slice from;  // of a send or a copy; the earlier operand of a fold
  Slice into;
  PeerMessage message;
  PeerFold fold;
  std::vector<Slice> reads;  // of a compute step
  std::vector<Slice> writes;
};

/// The steps of one rank as micro-operations, in order.
class PeerMicroOps {
 public:
  PeerMicroOps(const Schedule& schedule, const std::vector<int>& order, const PeerInboxes& inboxes);

  int size() const { return static_cast<int>(all_.size()); }
  const PeerMicroOp& operator[](int index) const { return all_[index]; }

  /// Calls `visit` with the number of every micro-operation that number `index` waits for.
  template <typename Visit>
  void each_before(int index, Visit visit) const {
    for (int before : schedule_.steps()[all_[index].step].waits_for)
      for (int op = first_[before]; op < last_[before]; ++op) visit(op);
    for (int op = first_[all_[index].step]; op < index; ++op) visit(op);
  }

 private:
  void add(int index);
  void add_combine(int index, const Step& step);
  std::optional<PeerDecays> arrived_in(const Slice& decay, const Step& reader) const;

  const Schedule& schedule_;
  const PeerInboxes& inboxes_;
  std::vector<PeerMicroOp> all_;
  std::vector<int> first_, last_;  // by step: its micro-operations
};

}  // namespace baton
