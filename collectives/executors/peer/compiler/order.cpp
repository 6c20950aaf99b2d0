// SPDX-License-Identifier: Apache-2.0
// The order of steps and the layout of inboxes.
#include "collectives/executors/peer/compiler/order.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "collectives/schedule/check.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

/// Runs all ranks' steps in thought, turn by turn: in each turn a rank receives what was sent in the turns before, and
/// after each message does all that this allows, sends first. What a step waits for has had an earlier place, here or on another rank.
class Rehearsal {
 public:
  explicit Rehearsal(std::span<const Schedule> schedules) : schedules_(schedules), ranks_(schedules.size()) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const auto& steps = schedules[r].steps();
      ranks_[r].successors.resize(steps.size());
      for (std::size_t i = 0; i < steps.size(); ++i) {
        ranks_[r].blockers.push_back(static_cast<int>(steps[i].waits_for.size()));
        for (int before : steps[i].waits_for) ranks_[r].successors[before].push_back(static_cast<int>(i));
      }
      for (std::size_t i = 0; i < steps.size(); ++i)
        if (steps[i].waits_for.empty()) make_ready(static_cast<int>(r), static_cast<int>(i));
    }
  }

  std::vector<std::vector<int>> run() {
    std::vector<std::vector<int>> orders;
    while (turn()) {
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].order.size() < ranks_[r].blockers.size()) report_stuck(static_cast<int>(r));
      orders.push_back(std::move(ranks_[r].order));
    }
    return orders;
  }

 private:
  using Message = std::tuple<int, int, int>;  // sender, receiver, sequence
  struct Rank {
    std::vector<int> order, blockers;
    std::vector<std::vector<int>> successors;
    std::set<int> sends, locals, receives;  // ready, in the order of recording
  };

  const Step& step(int rank, int index) const { return schedules_[rank].steps()[index]; }

  void make_ready(int rank, int index) {
    const Verb verb = step(rank, index).verb;
    Rank& r = ranks_[rank];
    (verb == Verb::recv ? r.receives : verb == Verb::send ? r.sends : r.locals).insert(index);
  }

  void finish(int rank, int index) {
    Rank& r = ranks_[rank];
    r.order.push_back(index);
    for (int after : r.successors[index])
      if (--r.blockers[after] == 0) make_ready(rank, after);
  }

  /// True while something happens.
  bool turn() {
    const std::set<Message> sent = sent_;
    std::size_t happened = 0;
    for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) {
      const std::size_t before = ranks_[r].order.size();
      receive(r, sent);
      work(r);
      happened += ranks_[r].order.size() - before;
    }
    return happened > 0;
  }

  void receive(int rank, const std::set<Message>& sent) {
    const std::set<int> ready = ranks_[rank].receives;
    for (int index : ready) {
      const Step& receive = step(rank, index);
      if (!sent.contains({receive.peer, rank, receive.sequence})) continue;
      ranks_[rank].receives.erase(index);
      sent_.erase({receive.peer, rank, receive.sequence});
      finish(rank, index);
      work(rank);  // before the next one: a kernel that it allows must not wait for that
    }
  }

  void work(int rank) {
    Rank& r = ranks_[rank];
    while (!r.sends.empty() || !r.locals.empty()) {
      auto& ready = r.sends.empty() ? r.locals : r.sends;
      const int index = *ready.begin();
      ready.erase(ready.begin());
      const Step& done = step(rank, index);
      if (done.verb == Verb::send) sent_.emplace(rank, done.peer, done.sequence);
      finish(rank, index);
    }
  }

  [[noreturn]] void report_stuck(int rank) const {
    const Rank& r = ranks_[rank];
    const int index = r.receives.empty() ? 0 : *r.receives.begin();
    throw ScheduleError("rank " + std::to_string(rank) + ", " + step_name(step(rank, index), index) +
                        ": waits for a message that is never sent");
  }

  std::span<const Schedule> schedules_;
  std::vector<Rank> ranks_;
  std::set<Message> sent_;  // and not yet received
};

}  // namespace

std::vector<std::vector<int>> peer_order(std::span<const Schedule> schedules) {
  return Rehearsal(schedules).run();
}

PeerInboxes::PeerInboxes(std::span<const Schedule> schedules, int packet_elements)
    : inboxes_(schedules.size()) {
  for (std::size_t r = 0; r < schedules.size(); ++r) {
    std::map<std::pair<int, int>, std::int64_t> sizes;
    for (const Step& step : schedules[r].steps())
      if (step.verb == Verb::recv) sizes[{step.peer, step.sequence}] = step.writes[0].bytes() / element_bytes;
    std::int64_t packet = 0;
    int number = 0;
    for (const auto& [message, count] : sizes) {
      inboxes_[r][message] = {message.first, packet, number++};
      packet += (count + packet_elements - 1) / packet_elements;
    }
    packets_ = std::max(packets_, packet);
    messages_ = std::max(messages_, number);
  }
}

PeerMessage PeerInboxes::message(int receiver, int sender, int sequence) const {
  return inboxes_[receiver].at({sender, sequence});
}

}  // namespace baton
