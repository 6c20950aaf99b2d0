// SPDX-License-Identifier: Apache-2.0
#include "tests/collectives/fuzz/model.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "collectives/executors/host/memory.hpp"

namespace baton {

/// The memory of all ranks, and which steps of a round have happened.
struct Model::State {
  std::vector<HostMemory> memory;
  OfSteps<bool> happened;
  OfSteps<std::vector<float>> sent;  // by sends, in eager plays
  float largest = 0;                 // absolute value that a local step wrote
};

namespace {

bool meet(const std::vector<Slice>& some, const std::vector<Slice>& others) {
  return std::any_of(some.begin(), some.end(), [&](const Slice& one) {
    return std::any_of(others.begin(), others.end(), [&](const Slice& other) { return one.overlaps(other); });
  });
}

bool conflict(const Step& before, const Step& after) {
  return meet(before.writes, after.reads) || meet(before.writes, after.writes) ||
         meet(before.reads, after.writes);
}

}  // namespace

std::vector<float> drawn_input(const Schedule& schedule) {
  std::vector<float> values(static_cast<std::size_t>(schedule.buffers()[0].count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(1 + (i * 5 + static_cast<std::size_t>(schedule.home_rank()) * 3) % 13);
  return values;
}

Model::Model(const DrawnSchedules& drawn) : drawn_(drawn) {
  for (int rank = 0; rank < static_cast<int>(drawn.schedules.size()); ++rank) {
    for (int i = 0; i < static_cast<int>(drawn.schedules[rank].steps().size()); ++i)
      places_.push_back({rank, i});
    find_waits(rank);
    find_groups(rank);
  }
  pair_messages();
}

std::string Model::name(Place at) const {
  return std::string("step ") + std::to_string(at.step) + " (" + to_string(step(at).verb) + ") of rank " +
         std::to_string(at.rank);
}

/// Finds what each step waits for, through any chain too.
void Model::find_waits(int rank) {
  const auto& steps = drawn_.schedules[rank].steps();
  auto& all = waits_for_.emplace_back();
  int fence = 0;
  for (int i = 0; i < static_cast<int>(steps.size()); ++i) {
    for (const int fenced : drawn_.fences[rank])
      if (fenced <= i) fence = std::max(fence, fenced);
    std::vector<bool> waits(steps.size(), false);
    for (int before = 0; before < i; ++before) {
      if (before >= fence && !conflict(steps[before], steps[i])) continue;
      waits[before] = true;
      for (int first = 0; first < before; ++first) waits[first] = waits[first] || all[before][first];
    }
    all.push_back(std::move(waits));
  }
}

void Model::find_groups(int rank) {
  const auto& steps = drawn_.schedules[rank].steps();
  auto& groups = groups_.emplace_back(steps.size(), -1);
  int open = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].is_message()) continue;
    for (std::size_t before = 0; before < i; ++before)
      if (groups[before] == open && waits_for_[rank][i][before]) {
        ++open;
        break;
      }
    groups[i] = open;
  }
}

void Model::pair_messages() {
  using Way = std::tuple<int, int, int>;  // from, to and the number of the message between them
  std::map<std::pair<int, int>, int> sends, receives;
  std::map<Way, Place> sent;
  for (const auto& schedule : drawn_.schedules) partners_.emplace_back(schedule.steps().size());
  for (const Place at : places_)
    if (const int to = step(at).peer; step(at).verb == Verb::send)
      sent[{at.rank, to, sends[{at.rank, to}]++}] = at;
  for (const Place at : places_) {
    if (step(at).verb != Verb::recv) continue;
    const int from = step(at).peer;
    const auto found = sent.find({from, at.rank, receives[{from, at.rank}]++});
    if (found == sent.end()) continue;
    partners_[at.rank][at.step] = found->second;
    partners_[found->second.rank][found->second.step] = at;
  }
}

bool Model::has_waited(const State& state, Place at) const {
  for (int before = 0; before < at.step; ++before)
    if (waits_for_[at.rank][at.step][before] && !state.happened[at.rank][before]) return false;
  return true;
}

/// True if the group of a message has started.
bool Model::has_started(const State& state, Place at) const {
  const auto& groups = groups_[at.rank];
  const int group = groups[at.step];
  for (int i = 0; i < static_cast<int>(groups.size()); ++i) {
    if (groups[i] >= 0 && groups[i] < group && !state.happened[at.rank][i]) return false;
    if (groups[i] == group && !has_waited(state, {at.rank, i})) return false;
  }
  return true;
}

bool Model::can_happen(const State& state, Place at, Passing passing) const {
  if (state.happened[at.rank][at.step] || !has_waited(state, at)) return false;
  if (!step(at).is_message()) return true;
  const Place other = partner(at);
  if (passing == Passing::eager)
    return step(at).verb == Verb::send || (other.rank >= 0 && state.happened[other.rank][other.step]);
  if (other.rank < 0 || !has_waited(state, other)) return false;
  return passing == Passing::rendezvous || (has_started(state, at) && has_started(state, other));
}

/// Runs a local step on a copy of what it reads, so that what it writes changes no operand.
void Model::run_local(State& state, Place at) const {
  HostOperands operands = state.memory[at.rank].operands(step(at));
  std::vector<std::vector<float>> read;
  for (const auto& operand : operands.reads) read.emplace_back(operand.begin(), operand.end());
  for (std::size_t i = 0; i < read.size(); ++i) operands.reads[i] = read[i];
  run_on_host(drawn_.schedules[at.rank], step(at), operands);
  for (const auto& written : operands.writes)
    for (const float value : written) state.largest = std::max(state.largest, std::abs(value));
}

void Model::happen(State& state, Place at, Passing passing) const {
  state.happened[at.rank][at.step] = true;
  if (!step(at).is_message()) return run_local(state, at);
  if (passing != Passing::eager) {
    const Place other = partner(at), send = step(at).verb == Verb::send ? at : other,
                recv = send == at ? other : at;
    state.memory[recv.rank].write(step(recv).writes[0], state.memory[send.rank].view(step(send).reads[0]));
    state.happened[other.rank][other.step] = true;
  } else if (step(at).verb == Verb::send) {
    const auto view = state.memory[at.rank].view(step(at).reads[0]);
    state.sent[at.rank][at.step] = {view.begin(), view.end()};
  } else {
    state.memory[at.rank].write(step(at).writes[0], state.sent[partner(at).rank][partner(at).step]);
  }
}

/// Lets all steps happen that can. Returns what goes wrong.
std::string Model::round(State& state, Passing passing, std::mt19937_64& random) const {
  for (;;) {
    std::vector<Place> possible;
    for (const Place at : places_)
      if (can_happen(state, at, passing)) possible.push_back(at);
    if (possible.empty()) break;
    const Place next = possible[random() % possible.size()];
    if (const Place other = partner(next); other.rank >= 0) {
      const Slice& mine = step(next).verb == Verb::send ? step(next).reads[0] : step(next).writes[0];
      const Slice& its = step(next).verb == Verb::send ? step(other).writes[0] : step(other).reads[0];
      if (mine.count != its.count || mine.dtype != its.dtype)
        return name(next) + " does not fit " + name(other);
    }
    happen(state, next, passing);
  }
  for (const Place at : places_) {
    if (!state.happened[at.rank][at.step]) return name(at) + " waits for ever";
    if (step(at).is_message() && partner(at).rank < 0) return name(at) + " is never received";
  }
  return {};
}

Played Model::play(Passing passing, int rounds, std::mt19937_64& random) const {
  State state;
  for (const Schedule& schedule : drawn_.schedules) {
    state.memory.emplace_back(schedule);
    const auto input = drawn_input(schedule);
    state.memory.back().write({0, 0, static_cast<std::int64_t>(input.size())}, input);
  }
  Played played;
  for (int number = 0; number < rounds; ++number) {
    state.happened.clear();
    state.sent.clear();
    for (const Schedule& schedule : drawn_.schedules) {
      state.happened.emplace_back(schedule.steps().size(), false);
      state.sent.emplace_back(schedule.steps().size());
    }
    played.trouble = round(state, passing, random);
    played.largest = state.largest;
    if (!played.trouble.empty()) return played;
    auto& ranks = played.rounds.emplace_back();
    for (std::size_t rank = 0; rank < state.memory.size(); ++rank)
      ranks.push_back(elements(drawn_.schedules[rank], [&](std::span<float> into, const Slice& from) {
        state.memory[rank].read(into, from);
      }));
  }
  return played;
}

std::string Model::uncovered() const {
  for (const Schedule& schedule : drawn_.schedules)
    for (int b = 0; b < static_cast<int>(schedule.buffers().size()); ++b) {
      const Buffer& buffer = schedule.buffers()[b];
      std::vector<bool> is_written(static_cast<std::size_t>(buffer.count), false);
      for (const Step& step : schedule.steps())
        for (const Slice& slice : step.writes)
          for (std::int64_t i = slice.offset; i < slice.end() && slice.buffer == b; ++i) is_written[i] = true;
      const bool is_whole = std::all_of(is_written.begin(), is_written.end(), [](bool is) { return is; });
      if (buffer.role == Role::output && buffer.covered && !is_whole)
        return "an output of rank " + std::to_string(schedule.home_rank()) + " is not written";
    }
  return {};
}

}  // namespace baton
