// SPDX-License-Identifier: Apache-2.0
#include "tests/collectives/fuzz/draw.hpp"

#include <algorithm>
#include <utility>

#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

/// A call of a verb on one rank.
struct Call {
  Verb verb = Verb::copy;
  int peer = -1;
  std::vector<Slice> writes;
  std::vector<Slice> reads;
  Map into, earlier, later;  // of a combine
  bool is_fenced = false;
};

/// Writes numbers that depend on the place and the value of each element that the step reads. They
/// are small, so that sums and products of some of them are exact.
void mix(const HostOperands& operands) {
  std::uint32_t hash = 1;
  for (const auto& read : operands.reads)
    for (const float value : read)
      hash = (hash ^ static_cast<std::uint32_t>(static_cast<std::int32_t>(std::clamp(value, -1e9F, 1e9F)))) *
                 16777619U +
             1;
  for (const auto& written : operands.writes)
    for (float& value : written) value = static_cast<float>((hash = hash * 1664525U + 1013904223U) >> 28) - 7;
}

class Drawing {
 public:
  explicit Drawing(Bytes& bytes);
  DrawnSchedules draw();

 private:
  Slice slice(bool is_written, std::int64_t units, bool may_be_narrow = false);
  std::int64_t units() { return bytes_.once_in(16) ? 0 : bytes_.pick(1, std::min(count_, 4)); }
  Map map(const MapForm& form, std::int64_t heads, std::int64_t row, bool is_state, bool is_written);
  Call combine();
  Call local();
  void add_event();
  void change(std::vector<Call>& calls);
  void draw_anew(Call& call);
  void record(Schedule& schedule, const Call& call) const;

  Bytes& bytes_;
  int ranks_;
  int count_;          // of each buffer, in units
  std::int64_t unit_;  // elements
  bool has_narrow_;    // whether ranks have a buffer of bf16
  std::vector<std::vector<Call>> calls_;
};

constexpr int own = 0, into = 1, scratch = 2, narrow = 3;  // the buffers of every rank

Drawing::Drawing(Bytes& bytes)
    : bytes_(bytes),
      ranks_(bytes.once_in(32) ? 1 : bytes.pick(2, most_drawn_ranks)),
      count_(bytes.pick(2, 12)),
      unit_(bytes.once_in(256) && bytes.once_in(2) ? std::int64_t{1} << 14 : 1),
      has_narrow_(bytes.once_in(32)),
      calls_(ranks_) {}

/// A slice of `units` units. An input is never written, since the verbs refuse that.
Slice Drawing::slice(bool is_written, std::int64_t units, bool may_be_narrow) {
  const bool is_narrow = may_be_narrow && has_narrow_ && bytes_.once_in(4);
  const int buffer = is_narrow ? narrow : bytes_.pick(is_written ? into : own, scratch);
  const int offset = bytes_.pick(0, count_ - static_cast<int>(units));
  return {buffer, offset * unit_, units * unit_, is_narrow ? Dtype::bf16 : Dtype::f32};
}

/// A map, or a state, in f32: its decays and its state lie anywhere but on one another.
Map Drawing::map(const MapForm& form, std::int64_t heads, std::int64_t row, bool is_state, bool is_written) {
  const std::int64_t state = heads * form.share * row, decays = is_state ? 0 : heads * form.unit(row);
  const int buffer = bytes_.pick(is_written ? into : own, scratch);
  const std::int64_t last = std::min<std::int64_t>(count_ * unit_ - state - decays, 255);
  const Slice all{buffer, bytes_.pick(0, static_cast<int>(last)), state + decays};
  return {all.part(0, decays), all.part(decays, state), row, form};
}

/// A combine of maps, or a sum of slices.
Call Drawing::combine() {
  if (bytes_.once_in(4)) {
    const std::int64_t size = units();
    return {Verb::combine, -1, {slice(true, size)}, {slice(false, size), slice(false, size)}};
  }
  MapForm form{.kind = static_cast<MapKind>(bytes_.pick(0, 2)), .transposed = bytes_.once_in(4)};
  if (form.kind != MapKind::diagonal) form.share = bytes_.pick(1, 2);
  const std::int64_t row = bytes_.pick(1, 2), heads = bytes_.pick(1, 2);
  const bool fits = heads * (form.share * row + form.unit(row)) <= count_ * unit_;
  if (!fits) return {Verb::copy, -1, {slice(true, 1)}, {slice(false, 1)}};
  const bool composes = bytes_.once_in(3);
  Call call{.verb = Verb::combine};
  call.earlier = map(form, heads, row, !composes, false);
  call.later = map(form, heads, row, false, false);
  call.into = map(form, heads, row, !composes, true);
  const Map in_place = bytes_.once_in(2) ? call.earlier : composes ? call.later : call.later.only_state();
  if (bytes_.once_in(3) && in_place.state.buffer != own) call.into = in_place;
  return call;
}

Call Drawing::local() {
  const int kind = bytes_.pick(0, 7);
  if (kind < 3) {
    const std::int64_t size = units();
    return {Verb::copy, -1, {slice(true, size)}, {slice(false, size)}};
  }
  if (kind < 5) return combine();
  Call call{bytes_.once_in(256) ? Verb::native : Verb::compute};
  for (int i = bytes_.pick(1, 2); i > 0; --i) call.writes.push_back(slice(true, units()));
  for (int i = bytes_.pick(0, 2); i > 0; --i) call.reads.push_back(slice(false, units()));
  return call;
}

void Drawing::add_event() {
  const int rank = bytes_.pick(0, ranks_ - 1);
  if (ranks_ == 1 || bytes_.once_in(3)) return calls_[rank].push_back(local());
  const int peer = (rank + bytes_.pick(1, ranks_ - 1)) % ranks_;
  const std::int64_t size = units();
  calls_[rank].push_back({.verb = Verb::send, .peer = peer, .reads = {slice(false, size, true)}});
  calls_[peer].push_back({.verb = Verb::recv, .peer = rank, .writes = {slice(true, size, true)}});
}

void Drawing::draw_anew(Call& call) {
  if (call.verb == Verb::send)
    call.reads = {slice(false, units(), true)};
  else if (call.verb == Verb::recv)
    call.writes = {slice(true, units(), true)};
  else
    call = local();
}

void Drawing::change(std::vector<Call>& calls) {
  const int last = static_cast<int>(calls.size()) - 1;
  if (last < 0) return;
  const auto at = calls.begin() + bytes_.pick(0, last), other = calls.begin() + bytes_.pick(0, last);
  switch (bytes_.pick(0, 7)) {
    case 0: calls.erase(at); return;
    case 1: calls.insert(other, Call(*at)); return;
    case 2: std::iter_swap(at, other); return;
    case 3: std::rotate(std::min(at, other), std::min(at, other) + 1, std::max(at, other) + 1); return;
    case 4: std::rotate(std::min(at, other), std::max(at, other), std::max(at, other) + 1); return;
    case 5: draw_anew(*at); return;
    case 6: at->is_fenced = true; return;
    case 7: break;
  }
  const int self = static_cast<int>(&calls - calls_.data());
  if (at->peer >= 0 && ranks_ > 1) at->peer = (self + bytes_.pick(1, ranks_ - 1)) % ranks_;
}

void Drawing::record(Schedule& schedule, const Call& call) const {
  switch (call.verb) {
    case Verb::send: return schedule.send(call.peer, call.reads[0]);
    case Verb::recv: return schedule.recv(call.writes[0], call.peer);
    case Verb::copy: return schedule.copy(call.writes[0], call.reads[0]);
    case Verb::combine:
      if (!call.reads.empty()) return schedule.add(call.writes[0], call.reads[0], call.reads[1]);
      return schedule.combine(call.into, call.earlier, call.later);
    case Verb::native: return schedule.native(unknown_native, 1, call.writes, call.reads);
    case Verb::compute: break;
  }
  schedule.compute({.name = "mix", .body = mix, .flops = 1, .bytes = 8}, call.writes, call.reads);
}

DrawnSchedules Drawing::draw() {
  for (int events = bytes_.pick(0, 15); events > 0; --events) add_event();
  std::vector<bool> covered;
  for (auto& calls : calls_) {
    covered.push_back(bytes_.once_in(2));
    if (covered.back()) calls.push_back({Verb::compute, -1, {{into, 0, count_ * unit_}}, {slice(false, 1)}});
  }
  for (int changes = bytes_.pick(0, 3); changes > 0; --changes) change(calls_[bytes_.pick(0, ranks_ - 1)]);
  DrawnSchedules drawn;
  for (int rank = 0; rank < ranks_; ++rank) {
    Schedule& schedule = drawn.schedules.emplace_back(rank, ranks_);
    schedule.input("own", count_ * unit_);
    schedule.output("into", count_ * unit_, covered[rank]);
    schedule.scratch("scratch", count_ * unit_);
    if (has_narrow_) schedule.scratch("narrow", count_ * unit_, Dtype::bf16);
    auto& fences = drawn.fences.emplace_back();
    for (const Call& call : calls_[rank]) {
      if (call.is_fenced) fences.push_back(static_cast<int>(schedule.steps().size()));
      if (call.is_fenced) schedule.fence();
      try {
        record(schedule, call);
      } catch (const ScheduleError&) {
        if (call.verb != Verb::copy && call.verb != Verb::combine) throw;
      }
    }
  }
  return drawn;
}

}  // namespace

DrawnSchedules draw_schedules(Bytes bytes) { return Drawing(bytes).draw(); }

}  // namespace baton
