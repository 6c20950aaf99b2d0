// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/peer/compiler/order.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "collectives/executors/cuda/matrices.hpp"
#include "collectives/schedule/check.hpp"
#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/step_graph.hpp"

namespace baton {
namespace {

/// A list scheduler over all ranks' steps, sweep by sweep. In each sweep a rank receives the
/// messages of earlier sweeps in the order of recording, and runs after each one all that is ready,
/// sends first. So every step comes after what it waits for, on any rank.
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
    std::set<int>& ready = ranks_[rank].receives;
    const auto message = [&](int index) -> Message {
      return {step(rank, index).peer, rank, step(rank, index).sequence};
    };
    for (;;) {
      const auto next =
          std::find_if(ready.begin(), ready.end(), [&](int index) { return sent.contains(message(index)); });
      if (next == ready.end()) return;
      const int index = *next;
      ready.erase(next);
      sent_.erase(message(index));
      finish(rank, index);
      work(rank);  // which may make an earlier receive ready, and must not wait for a later one
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

/// The 32-bit words of a slice, which is all that the device sees of it. Two bf16 travel as one
/// word. Only slices of compute steps may begin or end within a word, which then counts whole.
Slice words(const Slice& slice) {
  if (slice.dtype == Dtype::f32) return slice;
  const std::int64_t first = slice.offset / 2;
  return {slice.buffer, first, (slice.end() + 1) / 2 - first};
}

std::vector<Slice> words(const std::vector<Slice>& slices) {
  std::vector<Slice> all;
  for (const Slice& slice : slices) all.push_back(words(slice));
  return all;
}

bool contains(const Slice& all, const Slice& part) {
  return all.buffer == part.buffer && all.offset <= part.offset && part.end() <= all.end();
}

}  // namespace

std::vector<std::vector<int>> order_peer_steps(std::span<const Schedule> schedules) {
  return ListScheduler(schedules).run();
}

PeerInboxes::PeerInboxes(std::span<const Schedule> schedules, int packet_elements)
    : inboxes_(schedules.size()) {
  for (std::size_t r = 0; r < schedules.size(); ++r) {
    std::map<std::pair<int, int>, std::int64_t> sizes;
    for (const Step& step : schedules[r].steps())
      if (step.verb == Verb::recv) sizes[{step.peer, step.sequence}] = step.writes[0].bytes() / element_bytes;
    std::int64_t packet = 0;
    for (const auto& [message, count] : sizes) {
      inboxes_[r][message] = {message.first, packet};
      packet += (count + packet_elements - 1) / packet_elements;
    }
    packets_ = std::max(packets_, packet);
  }
}

PeerMessage PeerInboxes::message(int receiver, int sender, int sequence) const {
  return inboxes_[receiver].at({sender, sequence});
}

PeerMicroOps::PeerMicroOps(const Schedule& schedule, const std::vector<int>& order,
                           const PeerInboxes& inboxes)
    : schedule_(schedule), inboxes_(inboxes), first_(schedule.steps().size(), -1), last_(first_) {
  for (int step : order) {
    first_[step] = static_cast<int>(all_.size());
    add(step);
    last_[step] = static_cast<int>(all_.size());
  }
}

void PeerMicroOps::add(int index) {
  Step step = schedule_.steps()[index];
  step.reads = words(step.reads), step.writes = words(step.writes);
  const int home = schedule_.home_rank();
  if (step.verb == Verb::recv) {
    all_.push_back({PeerAction::receive,
                    index,
                    {},
                    step.writes[0],
                    inboxes_.message(home, step.peer, step.sequence),
                    {},
                    {},
                    {}});
  } else if (step.verb == Verb::send) {
    PeerMessage message = inboxes_.message(step.peer, home, step.sequence);
    message.peer = step.peer;
    all_.push_back({PeerAction::send, index, step.reads[0], {}, message, {}});
  } else if (step.verb == Verb::copy) {
    all_.push_back({PeerAction::copy, index, step.reads[0], step.writes[0], {}, {}});
  } else if (step.verb == Verb::combine) {
    add_combine(index, step);
  } else if (step.verb == Verb::compute) {
    all_.push_back({PeerAction::compute, index, {}, {}, {}, {}, step.reads, step.writes});
  }
}

void PeerMicroOps::add_combine(int index, const Step& step) {
  const bool composes = step.writes.size() == 2;
  const Slice earlier = step.reads[composes ? 1 : 0], decay = step.reads[composes ? 2 : 1],
              later = step.reads[composes ? 3 : 2];
  PeerFold state{.decay = decay, .arrived = {}, .other = later, .by = step.combine};
  if (!state.multiplies()) state.arrived = arrived_in(decay, step);
  all_.push_back({PeerAction::fold, index, earlier, step.writes.back(), {}, state});
  if (!composes) return;
  // The decay comes last: in place it overwrites an operand of the state.
  Slice left = step.reads[0];
  PeerFold product{.decay = decay, .arrived = {}, .other = {}};
  if (state.multiplies()) {
    const MatrixProduct matrices = product_of_matrices(step.combine);
    product.by = matrices.by;
    if (matrices.left_is_later) std::swap(left, product.decay);
  }
  all_.push_back({PeerAction::fold, index, left, step.writes[0], {}, product});
}

/// The message that brought `decay`, if one receive wrote all of it and it can be read in the
/// inbox.
std::optional<PeerDecays> PeerMicroOps::arrived_in(const Slice& decay, const Step& reader) const {
  std::optional<PeerDecays> arrived;
  for (int before : reader.waits_for) {
    const Step& step = schedule_.steps()[before];
    for (const Slice& written : step.writes) {
      if (!written.overlaps(decay)) continue;
      if (step.verb != Verb::recv || !contains(written, decay)) return {};
      arrived = PeerDecays{all_[first_[before]].message, decay.offset - written.offset};
    }
  }
  return arrived;
}

}  // namespace baton
