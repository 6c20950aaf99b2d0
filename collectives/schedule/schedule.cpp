// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/schedule.hpp"

#include <algorithm>
#include <utility>

#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

std::vector<Slice> slices(const Map& map) {
  return map.is_state() ? std::vector{map.state} : std::vector{map.decay, map.state};
}

/// True if a step that makes `into` would write elements of `operand` that it may still read. An
/// operand may be made in its own place, element by element.
bool spoils(const Map& into, const Map& operand) {
  return (into.state.overlaps(operand.state) && into.state != operand.state) ||
         (into.decay.overlaps(operand.decay) && into.decay != operand.decay) ||
         into.state.overlaps(operand.decay) || into.decay.overlaps(operand.state);
}

/// The most elements of a buffer. Up to here sizes are exact in a double and in a 64-bit byte
/// count.
constexpr std::int64_t most_elements = std::int64_t{1} << 50;

}  // namespace

Schedule::Schedule(int rank, int ranks, int ranks_per_node)
    : rank_(rank),
      ranks_(ranks),
      ranks_per_node_(ranks_per_node),
      index_(rank),
      sent_(ranks > 0 ? ranks : 0),
      received_(sent_) {
  if (ranks < 1 || rank < 0 || rank >= ranks)
    throw UsageError("rank " + std::to_string(rank) + " is not one of " + std::to_string(ranks) + " ranks");
  if (ranks_per_node < 0) throw UsageError("a node cannot have " + std::to_string(ranks_per_node) + " ranks");
}

Slice Schedule::input(std::string name, std::int64_t count, Dtype dtype) {
  return add_buffer({std::move(name), Role::input, count, true, dtype});
}

Slice Schedule::output(std::string name, std::int64_t count, bool covered, Dtype dtype) {
  return add_buffer({std::move(name), Role::output, count, covered, dtype});
}

Slice Schedule::scratch(std::string name, std::int64_t count, Dtype dtype) {
  if (pool_ == nullptr) return lasting_scratch(std::move(name), count, dtype);
  for (ScratchPool::Entry& entry : pool_->entries_)
    if (!entry.is_taken && entry.name == name && entry.slice.count == count && entry.slice.dtype == dtype) {
      entry.is_taken = true;
      return entry.slice;
    }
  const Slice slice = lasting_scratch(name, count, dtype);
  pool_->entries_.push_back({std::move(name), slice, true});
  return slice;
}

Slice Schedule::lasting_scratch(std::string name, std::int64_t count, Dtype dtype) {
  return add_buffer({std::move(name), Role::scratch, count, true, dtype});
}

Map Schedule::scratch_map(std::string name, const Map& like) {
  const std::int64_t decays = like.decay_count();
  const Slice all = scratch(std::move(name), decays + like.state.count);
  return {all.part(0, decays), all.part(decays, like.state.count), like.row, like.form};
}

void Schedule::send(int to, const Slice& from, Source source) { add_message(Verb::send, to, from, source); }

void Schedule::recv(const Slice& into, int from, Source source) {
  add_message(Verb::recv, from, into, source);
}

void Schedule::copy(const Slice& into, const Slice& from, Source source) {
  if (into.count != from.count)
    fail("copies " + std::to_string(from.count) + " elements into " + std::to_string(into.count), source);
  if (into.dtype != from.dtype) fail("copies elements of one type into those of another", source);
  if (into.overlaps(from) && into != from) fail("copies a slice onto a part of itself", source);
  if (!into.empty()) add_step(Verb::copy, {into}, {from}, source);
}

void Schedule::send(int to, const Map& from, Source source) {
  send(to, from.decay, source);
  send(to, from.state, source);
}

void Schedule::recv(const Map& into, int from, Source source) {
  recv(into.decay, from, source);
  recv(into.state, from, source);
}

void Schedule::copy(const Map& into, const Map& from, Source source) {
  copy(into.decay, from.decay, source);
  copy(into.state, from.state, source);
}

void Schedule::combine(const Map& into, const Map& earlier, const Map& later, Source source) {
  if (into.state.empty() && earlier.state.empty() && later.state.empty()) return;
  const std::int64_t decays = later.decay_count();
  const auto fits = [&](const Map& map) {
    return map.state.count == later.state.count && (map.is_state() || map.decay.count == decays) &&
           map.state.dtype == Dtype::f32;
  };
  const bool is_whole = later.state.count % later.row == 0 && later.decay.count == decays;
  if (!is_whole || !fits(into) || !fits(earlier) || !fits(later) || into.is_state() != earlier.is_state())
    fail("combines maps of different shapes, or not of f32", source);
  if (!into.is_state() && (later.form.first > 0 || later.rows() % later.form.share > 0))
    fail("composes maps that are cut within a head", source);
  if (spoils(into, into) || spoils(into, earlier) || spoils(into, later))
    fail("combines into a part of its operands: it may write in the place of one, or beside them", source);
  std::vector<Slice> reads;
  if (!earlier.is_state()) reads.push_back(earlier.decay);
  reads.insert(reads.end(), {earlier.state, later.decay, later.state});
  add_step(Verb::combine, slices(into), std::move(reads), source).combine = {later.form, later.row};
}

void Schedule::add(const Slice& into, const Slice& earlier, const Slice& later, Source source) {
  if (one_.empty()) one_ = add_buffer({.name = "one", .count = 1, .start = 1});
  const auto state = [](const Slice& slice) { return Map{{}, slice, slice.count}; };
  combine(state(into), state(earlier), {one_, later, later.count}, source);
}

void Schedule::compute(Kernel kernel, std::vector<Slice> writes, std::vector<Slice> reads, Source source) {
  add_step(Verb::compute, std::move(writes), std::move(reads), source).body =
      static_cast<int>(kernels_.size());
  kernels_.push_back(std::move(kernel));
}

void Schedule::native(std::string name, int blocks, std::vector<Slice> writes, std::vector<Slice> reads,
                      Source source) {
  if (!among_.empty()) fail("a native runs on all ranks, not among some", source);
  Step& step = add_step(Verb::native, std::move(writes), std::move(reads), source);
  step.body = static_cast<int>(natives_.size());
  natives_.push_back({std::move(name), blocks, reversed_});
  int before = static_cast<int>(steps_.size()) - 2;  // ranks must call a library in the same order
  while (before >= fenced_ && steps_[before].verb != Verb::native) --before;
  const auto at = std::ranges::lower_bound(step.waits_for, before);
  if (before >= fenced_ && (at == step.waits_for.end() || *at != before)) step.waits_for.insert(at, before);
}

void Schedule::native_scan(std::string name, int blocks, const Slice& into, const Map& own, Source source) {
  native(std::move(name), blocks, std::vector{into}, std::vector{own.packed()}, source);
  natives_.back().row = own.row;
  natives_.back().form = own.form;
}

void Schedule::fence() {
  if (fenced_ == static_cast<int>(steps_.size())) return;
  std::vector<bool> is_waited_for(steps_.size(), false);
  for (std::size_t i = fenced_; i < steps_.size(); ++i)
    for (int before : steps_[i].waits_for) is_waited_for[before] = true;
  last_.clear();
  for (int i = fenced_; i < static_cast<int>(steps_.size()); ++i)
    if (!is_waited_for[i]) last_.push_back(i);
  fenced_ = static_cast<int>(steps_.size());
}

void Schedule::wait_for_fence(std::vector<int>& waits_for) const {
  // A step that waits for one after the fence waits through it for all before the fence.
  if (!waits_for.empty() && waits_for.back() >= fenced_) return;
  if (waits_for.empty()) {  // of many steps behind a fence of many, most
    waits_for = last_;
    return;
  }
  waits_for.insert(waits_for.end(), last_.begin(), last_.end());
  std::sort(waits_for.begin(), waits_for.end());
  waits_for.erase(std::unique(waits_for.begin(), waits_for.end()), waits_for.end());
}

Slice Schedule::buffer(const std::string& name) const {
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    if (buffers_[i].name == name) return {static_cast<int>(i), 0, buffers_[i].count, buffers_[i].dtype};
  throw ScheduleError("there is no buffer '" + name + "'");
}

Slice Schedule::add_buffer(Buffer buffer) {
  if (buffer.count < 0 || buffer.count > most_elements)
    throw UsageError("buffer '" + buffer.name + "' would have " + std::to_string(buffer.count) + " elements");
  buffers_.push_back(std::move(buffer));
  return {static_cast<int>(buffers_.size()) - 1, 0, buffers_.back().count, buffers_.back().dtype};
}

Step& Schedule::add_step(Verb verb, std::vector<Slice> writes, std::vector<Slice> reads,
                         const Source& source) {
  for (const auto* side : {&writes, &reads})
    for (const Slice& slice : *side) {
      if (slice.empty()) continue;
      const bool known = slice.buffer >= 0 && slice.buffer < static_cast<int>(buffers_.size());
      if (!known || slice.offset < 0 || slice.end() > buffers_[slice.buffer].count)
        fail(std::string("a ") + to_string(verb) + " reaches outside its buffer", source);
    }
  for (const Slice& slice : writes)
    if (!slice.empty() && buffers_[slice.buffer].role == Role::input)
      fail("writes the input '" + buffers_[slice.buffer].name + "'", source);
  auto waits_for = dependencies_.record(static_cast<int>(steps_.size()), writes, reads);
  wait_for_fence(waits_for);
  steps_.push_back(
      {verb, -1, 0, -1, region_, {}, std::move(writes), std::move(reads), std::move(waits_for), source});
  return steps_.back();
}

void Schedule::add_message(Verb verb, int peer, const Slice& slice, const Source& source) {
  if (slice.empty()) return;
  if (peer < 0 || peer >= ranks() || peer == rank())
    fail(std::string("a ") + to_string(verb) + " names rank " + std::to_string(peer), source);
  const int home = home_of(peer);
  const bool sends = verb == Verb::send;
  Step& step = sends ? add_step(verb, {}, {slice}, source) : add_step(verb, {slice}, {}, source);
  step.peer = home;
  step.sequence = (sends ? sent_ : received_)[home]++;
}

void Schedule::fail(const std::string& what, const Source& source) const {
  throw ScheduleError("rank " + std::to_string(rank_) + ", step " + std::to_string(steps_.size()) + ": " +
                      what + " (" + source.file_name() + ":" + std::to_string(source.line()) + ")");
}

Among::Among(Schedule& schedule, const std::vector<int>& ranks)
    : schedule_(schedule), index_before_(schedule.index_), reversed_before_(schedule.reversed_) {
  const auto own = std::find(ranks.begin(), ranks.end(), schedule.rank());
  if (own == ranks.end())
    throw ScheduleError("rank " + std::to_string(schedule.rank()) + " is not among those that take part");
  std::vector<int> homes;
  for (int rank : ranks) homes.push_back(schedule.home_of(rank));
  before_ = std::exchange(schedule.among_, std::move(homes));
  schedule.index_ = static_cast<int>(own - ranks.begin());
  schedule.reversed_ = false;
}

Among::~Among() {
  schedule_.among_ = std::move(before_);
  schedule_.index_ = index_before_;
  schedule_.reversed_ = reversed_before_;
}

const char* to_string(Verb verb) {
  switch (verb) {
    case Verb::send: return "send";
    case Verb::recv: return "recv";
    case Verb::copy: return "copy";
    case Verb::combine: return "combine";
    case Verb::compute: return "compute";
    case Verb::native: return "native";
  }
  return "?";
}

std::string where(const Step& step) {
  const std::string_view path = step.source.file_name();
  return std::string(path.substr(path.find_last_of('/') + 1)) + ":" + std::to_string(step.source.line());
}

std::string step_name(const Step& step, int index) {
  return "step " + std::to_string(index) + " (" + to_string(step.verb) + ", " + where(step) + ")";
}

}  // namespace baton
