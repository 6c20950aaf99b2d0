// SPDX-License-Identifier: Apache-2.0
// In which order messages and steps can run: pairs of send and receive over all ranks, groups of one rank's
// messages, rounds of all ranks' messages, and one order for all steps.
//
// The grouping rule says how a library whose point-to-point calls run in groups, one group after the other,
// must issue a rank's messages so that none waits for a later one:
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

/// Steps of all ranks counted through, and the message pairs among them.
class Matching {
 public:
  /// Throws ScheduleError where a send or receive has no partner or the sizes differ.
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
  /// "collective: rank 1, step 4 (recv, all_scan.cpp:31)".
  std::string name(int number) const;

 private:
  void pair_messages();

  std::string collective_;
  std::span<const Schedule> schedules_;
  std::vector<int> first_;
  std::vector<int> partner_;
};

/// For each step its group, 0 or above, and -1 for a step that is not a message.
std::vector<int> message_groups(const Schedule& schedule);

/// The groups cut into parts that run one after the other: part i of a group holds the i-th send to, and the i-th receive
/// from, each peer. Numbered through.
std::vector<int> parts_of(const Schedule& schedule, const std::vector<int>& groups);

/// The node of a step in a graph of all ranks' steps: its number, but a receive shares the node of its send,
/// since both happen together.
int node_of(const Matching& matching, int number, const Step& step);

/// Adds to `graph` that every step waits for those it depends on.
void add_dependencies(Graph& graph, const Matching& matching, std::span<const Schedule> schedules);

/// For each rank the rounds of its messages, numbered through, -1 for a step that is no message. Both ends of a message
/// are in one round of all ranks, later than the rounds of all it waits for and than that of the message that went the
/// same way before it: ranks that run round after round never wait for a later one. Empty where messages would have to
/// overtake one another. For checked schedules.
std::vector<std::vector<int>> message_rounds(std::span<const Schedule> schedules);

/// One step's place in the order.
struct Turn {
  int rank = 0;
  int step = 0;
  /// Where a send's message goes: the slice of its receive, on the other rank.
  Slice into;
};

/// The steps of checked schedules, receives left out: each happens with its send. Throws ScheduleError on a
/// deadlock.
std::vector<Turn> run_order(std::span<const Schedule> schedules);

}  // namespace baton
