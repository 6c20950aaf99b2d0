// SPDX-License-Identifier: Apache-2.0
// What a case is called, alone and among those that it competes with.
#pragma once

#include <array>

#include "harness/schema/field.hpp"

namespace baton::schema::part {

using enum Role;
using enum Type;
using enum Written;

inline constexpr std::array of_names = std::to_array<Field>({
    {.key = "schema", .role = identity, .type = whole, .absent = "1", .help = "The version of these keys."},
    {.key = "case",
     .role = identity,
     .type = text,
     .help = "The name of the case without its cycle, with the blocks as asked. Two records with the same "
             "one are of the same case, in whatever run."},
    {.key = "family",
     .role = identity,
     .type = text,
     .help = "What executors compete on: GPUs for all of them on GPUs with an f32 wire, else the executor by "
             "itself."},
    {.key = "contest",
     .role = identity,
     .type = text,
     .help = "All that cases share which compete: their axes with the family in place of the executor. It "
             "has neither the cycle nor the machine: on one machine, records with the same text compete."},
    {.key = "bench", .role = axis, .type = text, .help = "The bench: collective, operator or model."},
    {.key = "name",
     .role = axis,
     .type = text,
     .flag = "--collectives, --methods",
     .help = "The collective or the method."},
    {.key = "kind", .role = axis, .type = text, .help = "The kind of a collective."},
});

}  // namespace baton::schema::part
