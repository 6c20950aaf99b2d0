// SPDX-License-Identifier: Apache-2.0
// Orders in which messages and steps can run: pairs of send and receive over all ranks, groups of
// one rank's messages, rounds of all ranks' messages, and one order for all steps.
//
// The grouping rule says how a library whose point-to-point calls run in groups, one group after
// the other, must issue a rank's messages so that none waits for a later one:
//
//   walk the steps in the order of recording
//   a message joins the open group, unless it waits (through any chain of steps) for a member of it
//   otherwise it opens the next group
#pragma once

#include <span>
#include <string>
#include <vector>

#include "collectives/schedule/schedule.hpp"
#include "collectives/schedule/step_graph.hpp"

namespace baton {

/// The steps of all ranks under one numbering, and the pairs of messages among them.
class Matching {
 public:
  /// Throws ScheduleError if a send or receive has no partner or the sizes differ.
  Matching(const std::string& collective, std::span<const Schedule> schedules);

  /// The number of all steps.
  int steps() const { return first_.back(); }
  /// The number of step `index` of `rank` among all steps.
  int number(int rank, int index) const { return first_[rank] + index; }
  /// The partner of a message step, -1 for any other step.
  int partner(int number) const { return partner_[number]; }
  /// The rank of a step.
  int rank(int number) const;
  const Step& step(int number) const;
  /// The name of a step in errors: "collective: rank 1, step 4 (recv, all_scan.cpp:31)".
  std::string name(int number) const;

 private:
  void pair_messages();

  std::string collective_;
  std::span<const Schedule> schedules_;
  std::vector<int> first_;
  std::vector<int> partner_;
};

/// The group of each message, 0 or above, and -1 for every other step.
std::vector<int> message_groups(const Schedule& schedule);

/// For each rank of matching schedules the groups of `message_groups`, cut where another embedded
/// collective begins whose messages wait for another kernel of their sender, or come from another
/// sender. A state that is ready then does not wait for the gradients that follow it.
std::vector<std::vector<int>> ready_groups(std::span<const Schedule> schedules);

/// Cuts `groups` into smaller groups that run one after the other: the i-th of a group holds the
/// i-th send to, and the i-th receive from, each peer. They are numbered from 0 across all groups.
std::vector<int> parts_of(const Schedule& schedule, const std::vector<int>& groups);

/// The node of a step in a graph of all ranks' steps. It is the step's number, but a receive shares
/// the node of its send, since both happen together.
int node_of(const Matching& matching, int number, const Step& step);

/// Adds to `graph` that every step waits for those it depends on.
void add_dependencies(Graph& graph, const Matching& matching, std::span<const Schedule> schedules);

/// For each rank of checked schedules the round of each message, and -1 for every other step. Both
/// ends of a message are in the same round of all ranks. That round is later than those of the
/// messages that it waits for and of the previous message between the same ranks, so ranks that run
/// round after round never wait for a later one. Empty if messages would have to overtake one
/// another.
std::vector<std::vector<int>> message_rounds(std::span<const Schedule> schedules);

/// A step and its rank, in the order of `run_order`.
struct Turn {
  int rank = 0;
  int step = 0;
  /// The destination of a send: the slice of its receive, on the other rank.
  Slice into;
};

/// The steps of checked schedules in one order, without receives, which happen with their sends.
/// Throws ScheduleError on a deadlock.
std::vector<Turn> run_order(std::span<const Schedule> schedules);

}  // namespace baton
