// SPDX-License-Identifier: Apache-2.0
// The grouping rule: how a library whose point-to-point calls run in groups, one group after the other, must
// issue a rank's messages so that none waits for a later one.
//
//   walk the steps in the order of recording
//   a message joins the open group, unless it waits (through any chain of steps) for a member of it
//   otherwise it opens the next group
#pragma once

#include <vector>

#include "collectives/schedule/schedule.hpp"

namespace baton {

/// For each step its group, 0 or above, and -1 for a step that is not a message.
std::vector<int> message_groups(const Schedule& schedule);

/// The groups cut into parts that run one after the other: part i of a group holds the i-th send to, and the i-th receive
/// from, each peer. Numbered through.
std::vector<int> parts_of(const Schedule& schedule, const std::vector<int>& groups);

}  // namespace baton
