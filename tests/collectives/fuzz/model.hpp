// SPDX-License-Identifier: Apache-2.0
// What schedules mean, told a second time and as plainly as possible: an interpreter of all ranks
// that shares no analysis with check, the executors or the simulator.
//
//   a step waits for each earlier step of its rank whose slices conflict with its own, and for all
//   steps before the last fence; the n-th send from a to b meets the n-th receive of a on b
//   eager       a send ends at once, and its receive takes what was sent
//   rendezvous  a send and its receive happen together
//   grouped     so too, but a rank's messages run in groups, one after the other: a group starts
//               when all that its messages wait for has happened
//
// Steps happen one after the other in a random order. A step that can happen still can after any
// other one, so a play that is stuck in one order is stuck in all.
#pragma once

#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/collectives/fuzz/draw.hpp"

namespace baton {

enum class Passing { eager, rendezvous, grouped };

/// The elements of all buffers of one rank, one buffer behind the other.
using BufferElements = std::vector<float>;

/// Reads the elements of a rank by `read(into, slice)`.
template <class Read>
BufferElements elements(const Schedule& schedule, const Read& read) {
  BufferElements all;
  for (int b = 0; b < static_cast<int>(schedule.buffers().size()); ++b) {
    const Slice whole{b, 0, schedule.buffers()[b].count};
    all.resize(all.size() + static_cast<std::size_t>(whole.count));
    read(std::span(all).last(static_cast<std::size_t>(whole.count)), whole);
  }
  return all;
}

/// What a rank's input, its first buffer, holds before the first round.
std::vector<float> drawn_input(const Schedule& schedule);

/// What a play came to.
struct Played {
  /// What went wrong first; empty if all ranks finished and their messages fit.
  std::string trouble;
  /// The elements after each round, by rank.
  std::vector<std::vector<BufferElements>> rounds;
  /// The largest absolute value that a local step wrote.
  float largest = 0;
};

class Model {
 public:
  /// `drawn` must outlive the model.
  explicit Model(const DrawnSchedules& drawn);

  /// Runs `rounds` rounds in an order that `random` chooses, or as many as end well.
  Played play(Passing passing, int rounds, std::mt19937_64& random) const;

  /// The output that nothing writes, although it should be; empty if there is none.
  std::string uncovered() const;

 private:
  struct Place {
    int rank = -1;
    int step = -1;
    bool operator==(const Place&) const = default;
  };
  struct State;
  template <class T>
  using OfSteps = std::vector<std::vector<T>>;  // by rank and step

  const Step& step(Place at) const { return drawn_.schedules[at.rank].steps()[at.step]; }
  Place partner(Place at) const { return partners_[at.rank][at.step]; }
  std::string name(Place at) const;
  void find_waits(int rank);
  void find_groups(int rank);
  void pair_messages();
  bool has_waited(const State& state, Place at) const;
  bool has_started(const State& state, Place at) const;
  bool can_happen(const State& state, Place at, Passing passing) const;
  void happen(State& state, Place at, Passing passing) const;
  void run_local(State& state, Place at) const;
  std::string round(State& state, Passing passing, std::mt19937_64& random) const;

  const DrawnSchedules& drawn_;
  std::vector<Place> places_;  // of all steps
  OfSteps<std::vector<bool>> waits_for_;
  OfSteps<int> groups_;  // -1 of what is no message
  OfSteps<Place> partners_;
};

}  // namespace baton
