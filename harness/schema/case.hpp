// SPDX-License-Identifier: Apache-2.0
// The axes of how it is run: on what, on how many ranks, in how many blocks and rounds.
#pragma once

#include <array>

#include "harness/schema/field.hpp"

namespace baton::schema::part {

using enum Role;
using enum Type;
using enum Written;

inline constexpr std::array of_case = std::to_array<Field>({
    {.key = "implementation",
     .role = identity,
     .type = text,
     .absent = "\"schedule\"",
     .help = "The word schedule, or the name of the native that ran in its place."},
    {.key = "executor",
     .role = axis,
     .type = text,
     .title = "run by",
     .width = -10,
     .flag = "--executor",
     .help = "What runs the schedules; simulator for virtual time.",
     .flag_help = "--list shows all"},
    {.key = "ranks",
     .role = axis,
     .type = whole,
     .title = "P",
     .width = 5,
     .flag = "--ranks",
     .help = "The number of ranks.",
     .flag_help = "as many processes as the largest needs are started, or must be there under "
                  "your own launcher"},
    {.key = "ranks_per_node",
     .role = axis,
     .type = whole,
     .flag = "--ranks-per-node",
     .absent = "0",
     .help = "The ranks of a full node, as asked or as the hosts or the simulated machine have "
             "them; 0 if all share one.",
     .flag_help = "0: asks the hosts or the machine"},
    {.key = "ranks_per_gpu",
     .role = axis,
     .type = whole,
     .written = if_any,
     .flag = "--ranks-per-gpu",
     .absent = "1",
     .help = "The ranks that take turns on one GPU; with more than one, times are no measure of "
             "a link.",
     .flag_help = "of executor peer, for tests"},
    {.key = "threads_per_rank",
     .role = axis,
     .type = whole,
     .written = if_any,
     .flag = "--threads-per-rank",
     .absent = "2",
     .help = "The busy threads of a rank of a layer on processors: 2 if one computes while the "
             "other exchanges, 1 if one does both by turns.",
     .flag_help = "0: 2 where every rank has two cores, else 1"},
    {.key = "state_bytes",
     .role = axis,
     .type = whole,
     .unit = "bytes",
     .title = "state",
     .width = 7,
     .flag = "--min-bytes",
     .help = "The size of one rank's state, without its decay."},
    {.key = "blocks",
     .type = whole,
     .title = "K",
     .width = 4,
     .help = "The blocks that a state was cut into."},
    {.key = "blocks_asked",
     .role = axis,
     .type = text,
     .flag = "--blocks",
     .help = "The blocks that a state is cut into: a number, or auto for those that the "
             "alpha-beta model chooses."},
    {.key = "cadence",
     .role = axis,
     .type = text,
     .title = "cadence",
     .width = -9,
     .flag = "--cadence",
     .help = "How rounds follow one another: isolated (all ranks start together each time), "
             "streaming (back to back), or graph (back to back from a recording that a GPU "
             "replays)."},
    {.key = "cycle",
     .role = axis,
     .type = whole,
     .flag = "--cycles",
     .absent = "0",
     .help = "The repetition of the sweep, from 1; 0 if there is only one."},
    {.key = "warmup",
     .role = axis,
     .type = whole,
     .flag = "--warmup",
     .help = "The rounds before the measured ones."},
    {.key = "rounds",
     .role = axis,
     .type = whole,
     .flag = "--rounds",
     .help = "The measured rounds of a launch."},
});

}  // namespace baton::schema::part
