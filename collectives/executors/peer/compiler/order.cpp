// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>
#include <tuple>

#include "collectives/executors/peer/compiler/compile.hpp"
#include "collectives/schedule/check.hpp"
#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/step_graph.hpp"

namespace baton {
namespace {

/// A list scheduler over all ranks' steps, sweep by sweep. In each sweep a rank receives the
/// messages of earlier sweeps, and runs after each one all that is ready, sends first. So every
/// step comes after what it waits for, on any rank.
class ListScheduler {
 public:
  explicit ListScheduler(std::span<const Schedule> schedules)
      : schedules_(schedules), ranks_(schedules.size()) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const StepGraph& graph = ranks_[r].graph = StepGraph(schedules[r].steps());
      ranks_[r].blockers = graph.blockers();
      for (int i = 0; i < graph.size(); ++i)
        if (graph.blockers()[i] == 0) make_ready(static_cast<int>(r), i);
    }
  }

  std::vector<std::vector<int>> run() {
    std::vector<std::vector<int>> orders;
    while (sweep()) {
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
    StepGraph graph;
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
    for (int after : r.graph.waiters(index))
      if (--r.blockers[after] == 0) make_ready(rank, after);
  }

  /// True if some step ran.
  bool sweep() {
    const std::set<Message> sent = sent_;
    std::size_t ran = 0;
    for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) {
      const std::size_t before = ranks_[r].order.size();
      receive(r, sent);
      work(r);
      ran += ranks_[r].order.size() - before;
    }
    return ran > 0;
  }

  void receive(int rank, const std::set<Message>& sent) {
    const std::set<int> ready = ranks_[rank].receives;
    for (int index : ready) {
      const Step& receive = step(rank, index);
      if (!sent.contains({receive.peer, rank, receive.sequence})) continue;
      ranks_[rank].receives.erase(index);
      sent_.erase({receive.peer, rank, receive.sequence});
      finish(rank, index);
      work(rank);  // before the next receive, so that a kernel that is ready does not wait for it
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
  std::set<Message> sent_;  // not yet received
};

}  // namespace

std::vector<std::vector<int>> order_peer_steps(std::span<const Schedule> schedules) {
  return ListScheduler(schedules).run();
}

}  // namespace baton
