// SPDX-License-Identifier: Apache-2.0
// Fusing.
#include "collectives/executors/peer/compiler/fuse.hpp"

#include <algorithm>
#include <utility>

#include "collectives/executors/peer/compiler/columns.hpp"

namespace baton {
namespace {

enum class Action { receive, send, copy, fold, compute };

/// What the device sees of a slice: words of 32 bits. Two bf16 travel as one; where such a slice begins or ends within a
/// word, which only a compute step's may, the word counts.
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

/// A step, or one half of a combine that composes: its state, then its decay.
struct Part {
  Action action = Action::copy;
  int step = 0;
  Slice from;  // what is sent or copied; the earlier operand of a fold
  Slice into;
  PeerMessage message;
  PeerFold fold;
  std::vector<Slice> reads;  // of a compute step
  std::vector<Slice> writes;
};

bool contains(const Slice& all, const Slice& part) {
  return all.buffer == part.buffer && all.offset <= part.offset && part.end() <= all.end();
}

bool overlap(const Slice& a, const Slice& b) {
  return a.buffer == b.buffer && a.offset < b.end() && b.offset < a.end();
}

/// The steps of one rank as parts, and what each part waits for.
class Parts {
 public:
  Parts(const Schedule& schedule, const std::vector<int>& order, const PeerInboxes& inboxes)
      : schedule_(schedule), inboxes_(inboxes), first_(schedule.steps().size(), -1), last_(first_) {
    for (int step : order) {
      first_[step] = static_cast<int>(all_.size());
      add(step);
      last_[step] = static_cast<int>(all_.size());
    }
  }

  int size() const { return static_cast<int>(all_.size()); }
  const Part& operator[](int index) const { return all_[index]; }

  /// Calls `visit` with every part that part `index` waits for.
  template <typename Visit>
  void each_before(int index, Visit visit) const {
    for (int before : schedule_.steps()[all_[index].step].waits_for)
      for (int part = first_[before]; part < last_[before]; ++part) visit(part);
    for (int part = first_[all_[index].step]; part < index; ++part) visit(part);
  }

 private:
  void add(int index) {
    Step step = schedule_.steps()[index];
    step.reads = words(step.reads), step.writes = words(step.writes);
    const int home = schedule_.home_rank();
    if (step.verb == Verb::recv) {
      all_.push_back({Action::receive,
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
      all_.push_back({Action::send, index, step.reads[0], {}, message, {}});
    } else if (step.verb == Verb::copy) {
      all_.push_back({Action::copy, index, step.reads[0], step.writes[0], {}, {}});
    } else if (step.verb == Verb::combine) {
      add_combine(index, step);
    } else if (step.verb == Verb::compute) {
      all_.push_back({Action::compute, index, {}, {}, {}, {}, step.reads, step.writes});
    }
  }

  void add_combine(int index, const Step& step) {
    const bool composes = step.writes.size() == 2;
    const Slice earlier = step.reads[composes ? 1 : 0], decay = step.reads[composes ? 2 : 1],
                later = step.reads[composes ? 3 : 2];
    PeerFold state{.decay = decay, .arrived = {}, .other = later, .row = later.count / decay.count};
    state.arrived = where_it_arrived(decay, step);
    all_.push_back({Action::fold, index, earlier, step.writes.back(), {}, state});
    if (!composes) return;
    // The decay comes last: in place it overwrites what the state has just been made with.
    const PeerFold product{.decay = decay, .arrived = {}, .other = {}, .row = 1};
    all_.push_back({Action::fold, index, step.reads[0], step.writes[0], {}, product});
  }

  /// The message that brought `decay`, if one step received all of it and it can be read where it lies.
  std::optional<PeerDecays> where_it_arrived(const Slice& decay, const Step& reader) const {
    std::optional<PeerDecays> arrived;
    for (int before : reader.waits_for) {
      const Step& step = schedule_.steps()[before];
      for (const Slice& written : step.writes) {
        if (!overlap(written, decay)) continue;
        if (step.verb != Verb::recv || !contains(written, decay)) return {};
        arrived = PeerDecays{all_[first_[before]].message, decay.offset - written.offset};
      }
    }
    return arrived;
  }

  const Schedule& schedule_;
  const PeerInboxes& inboxes_;
  std::vector<Part> all_;
  std::vector<int> first_, last_;  // by step: its parts
};

/// An instruction that grows. x and y stay in registers: whoever uses the slices that hold them can join.
class Growing {
 public:
  explicit Growing(const Part& head) {
    instruction_.steps = {head.step};
    instruction_.count = head.action == Action::receive ? head.into.count : head.from.count;
    if (head.action == Action::compute) {
      instruction_.computes = true;
      instruction_.reads = head.reads;
      instruction_.writes = head.writes;
    } else if (head.action == Action::receive) {
      instruction_.arrival = head.message;
      instruction_.keep = {head.into};
      x_ = {head.into};
    } else {
      instruction_.from = head.from;
      x_ = {head.from};
      join(head);
    }
  }

  /// True if `part` has become a part of the instruction.
  bool join(const Part& part) {
    if (instruction_.computes) return false;
    const Growing before = *this;
    const bool joined = part.action == Action::send   ? join_send(part)
                        : part.action == Action::copy ? join_copy(part)
                        : part.action == Action::fold ? join_fold(part)
                                                      : false;
    if (joined && is_sound()) {
      if (instruction_.steps.back() != part.step) instruction_.steps.push_back(part.step);
      return true;
    }
    *this = before;
    return false;
  }

  PeerInstruction take() { return std::move(instruction_); }

 private:
  static bool holds(const std::vector<Slice>& value, const Slice& slice) {
    return std::find(value.begin(), value.end(), slice) != value.end();
  }

  /// True where memory holds `slice` only once the instruction is done.
  bool stores(const Slice& slice) const {
    return std::any_of(instruction_.keep.begin(), instruction_.keep.end(),
                       [&](const Slice& kept) { return overlap(kept, slice); });
  }

  bool join_send(const Part& part) {
    const bool of_x = holds(x_, part.from);
    if (!of_x && !holds(y_, part.from)) return false;
    instruction_.sends.push_back({part.message, !of_x});
    return instruction_.sends.size() <= PeerLimits::sends;
  }

  bool join_copy(const Part& part) {
    const bool of_x = holds(x_, part.from);
    if (!of_x && !holds(y_, part.from)) return false;
    (of_x ? x_ : y_).push_back(part.into);
    auto& stores = of_x ? instruction_.keep : instruction_.results;
    stores.push_back(part.into);
    return stores.size() <= PeerLimits::stores;
  }

  bool join_fold(const Part& part) {
    if (instruction_.fold) return false;
    PeerFold fold = part.fold;
    if (holds(x_, part.from)) {
      fold.x_is_later = false;
    } else if (holds(x_, fold.other)) {
      fold.x_is_later = true;
      fold.other = part.from;
    } else {
      return false;
    }
    if (stores(fold.other) || (!fold.arrived && stores(fold.decay))) return false;
    // In place: what x's slice is to hold is y.
    std::erase(x_, part.into);
    std::erase(instruction_.keep, part.into);
    y_ = {part.into};
    instruction_.fold = fold;
    instruction_.results = {part.into};
    return true;
  }

  /// No element is written twice, and none is written by one thread and read by another.
  bool is_sound() const {
    const auto accesses = peer_accesses(instruction_);
    for (std::size_t i = 0; i < accesses.size(); ++i)
      for (std::size_t j = 0; j < accesses.size(); ++j) {
        const PeerAccess &a = accesses[i], &b = accesses[j];
        if (i == j || !a.writes || !overlap(a.slice, b.slice)) continue;
        if (b.writes || b.shared || a.slice.offset != b.slice.offset) return false;
      }
    return true;
  }

  PeerInstruction instruction_;
  std::vector<Slice> x_, y_;
};

std::vector<PeerInstruction> fuse(const Parts& parts) {
  constexpr int reach = 256;  // parts that are looked at for one instruction
  std::vector<int> instruction_of(parts.size(), -1);
  std::vector<PeerInstruction> instructions;
  for (int head = 0; head < parts.size(); ++head) {
    if (instruction_of[head] >= 0) continue;
    const int number = static_cast<int>(instructions.size());
    instruction_of[head] = number;
    Growing growing(parts[head]);
    for (int next = head + 1; next < std::min(parts.size(), head + reach); ++next) {
      bool ready = instruction_of[next] < 0;
      parts.each_before(next, [&](int before) { ready = ready && instruction_of[before] >= 0; });
      if (ready && growing.join(parts[next])) instruction_of[next] = number;
    }
    instructions.push_back(growing.take());
  }
  return instructions;
}

/// True where no instruction reads any of `slice` from memory.
bool is_unread(const Slice& slice, const std::vector<PeerInstruction>& instructions) {
  for (const PeerInstruction& instruction : instructions)
    for (const PeerAccess& access : peer_accesses(instruction))
      if (!access.writes && overlap(access.slice, slice)) return false;
  return true;
}

void drop_unread_stores(const Schedule& schedule, std::vector<PeerInstruction>& instructions) {
  const auto is_useless = [&](const Slice& slice) {
    return schedule.buffers()[slice.buffer].role == Role::scratch && is_unread(slice, instructions);
  };
  for (PeerInstruction& instruction : instructions) {
    std::erase_if(instruction.keep, is_useless);
    std::erase_if(instruction.results, is_useless);
  }
}

/// Receives that only bring decays need no instruction: those who fold with them wait for them.
void drop_idle_receives(std::vector<PeerInstruction>& instructions) {
  std::vector<PeerMessage> left_out;
  std::erase_if(instructions, [&](const PeerInstruction& instruction) {
    const bool idle = instruction.arrival && instruction.keep.empty() && instruction.sends.empty() &&
                      instruction.results.empty();
    const bool is_read = std::any_of(instructions.begin(), instructions.end(), [&](const auto& other) {
      return instruction.arrival && other.fold && other.fold->arrived &&
             other.fold->arrived->from == *instruction.arrival;
    });
    if (idle && is_read) left_out.push_back(*instruction.arrival);
    return idle && is_read;
  });
  for (PeerInstruction& instruction : instructions)
    if (instruction.fold && instruction.fold->arrived)
      instruction.fold->arrived->clears =
          std::find(left_out.begin(), left_out.end(), instruction.fold->arrived->from) != left_out.end();
}

}  // namespace

std::vector<PeerInstruction> fuse_peer_steps(const Schedule& schedule, const std::vector<int>& order,
                                             const PeerInboxes& inboxes) {
  auto instructions = fuse(Parts(schedule, order, inboxes));
  drop_unread_stores(schedule, instructions);
  drop_idle_receives(instructions);
  return instructions;
}

}  // namespace baton
