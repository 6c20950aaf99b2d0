// SPDX-License-Identifier: Apache-2.0
// What came of a case: its failure, its messages, its bound and its proof.
#pragma once

#include <array>

#include "harness/record/fields/field.hpp"

namespace baton::schema::part {

using enum Role;
using enum Type;
using enum Written;

// key, role, type, written, unit, title, flag, absent, help, is named
inline constexpr std::array of_verdict = std::to_array<Field>({
    {"failed", result, text, always, "", "", "", "", "Why the case failed; then there are no times."},
    {"failed_rank", result, whole, or_null, "", "", "", "null", "The rank that failed."},
    {"failed_step", result, whole, or_null, "", "", "", "null",
     "The step of its schedule at which it failed."},
    {"exit_code", result, whole, always, "", "", "", "",
     "The exit code of the failed launch; 3 for a wrong schedule."},
    {"failed_after_seconds", result, real, always, "seconds", "", "", "",
     "The time from the start of the launch to the failure."},
    {"skipped", result, text, always, "", "", "", "", "Why the case could not run; then there are no times."},
    {"sent_bytes", result, whole, or_null, "bytes", "sent", "", "null",
     "Bytes sent by the rank that sends most, counted from the schedules."},
    {"sent_matrix_bytes", result, whole, if_any, "bytes", "", "", "null",
     "The part of them that is matrices of affine maps."},
    {"sent_state_bytes", result, whole, if_any, "bytes", "", "", "null",
     "The part of them that is states, under affine maps."},
    {"product_flops", result, real, if_any, "flop", "", "", "null",
     "Operations in products of affine maps on the rank that has most of them."},
    {"product_flops_per_second", machine, real, if_any, "flop per second", "", "", "null",
     "The measured rate of such products."},
    {"hops", result, whole, or_null, "", "hops", "", "null",
     "The most messages on any chain of steps that wait for one another, also to reuse a buffer."},
    {"messages", result, whole, or_null, "", "", "", "null",
     "The messages of all ranks together, counted as a simulated round runs."},
    {"tensor_bytes", result, whole, or_null, "bytes", "memory", "", "null",
     "Bytes of the inputs and outputs of the rank that has most buffers."},
    {"scratch_bytes", result, whole, or_null, "bytes", "", "", "null",
     "Bytes of all else that its steps work in."},
    {"wire_dtype", result, text, always, "", "", "", "", "The type of f32 elements within messages."},
    {"bound_seconds", result, real, or_null, "seconds", "bound", "", "null",
     "The least time for the row's own traffic."},
    {"alpha_seconds", machine, real, always, "seconds", "", "", "null",
     "The time of an empty message between neighbours, within a host if two ranks share one."},
    {"beta_bytes_per_second", machine, real, always, "bytes per second", "", "", "null",
     "The rate of large messages between neighbours, within a host if two ranks share one."},
    {"floor_seconds", machine, real, if_any, "seconds", "", "", "null",
     "The reading of an empty round on a GPU."},
    {"message_alpha_seconds", machine, real, if_any, "seconds", "", "", "null",
     "The time of an empty message of the executor on GPUs."},
    {"message_beta_bytes_per_second", machine, real, if_any, "bytes per second", "", "", "null",
     "The rate of its large messages."},
    {"wrong", result, whole, always, "", "wrong", "", "",
     "Elements that differ from the oracle's, or rounds that left other results than the first."},
    {"first_wrong", result, text, if_any, "", "", "", "\"\"", "The first of them, in words."},
    {"relative_error", result, real, always, "", "error", "", "",
     "The largest error of a rank's result, relative to the result."},
    {"tolerance", result, real, always, "", "", "", "0",
     "The most that rounding can cause; 0 where the comparison is exact."},
    {"verification_seconds", result, real, always, "seconds", "", "", "null",
     "The time of the slowest process that went into verifying."},
    {"verified_elements", result, whole, if_any, "", "verified", "", "0",
     "Elements of a collective's results that were compared, over all ranks."},
    {"verified_tokens", result, whole, if_any, "tokens", "", "", "0",
     "Tokens a rank that were compared with the recurrence."},
    {"verified_heads", result, whole, if_any, "", "", "", "0", "The number of heads that were."},
    {"verified_head_numbers", result, list, if_any, "", "", "", "[]", "Which heads were."},
    {"verified_d_k", result, whole, if_any, "", "", "", "null",
     "The key channels of the smaller case that was verified in a simulated row's place."},
    {"verified_d_v", result, whole, if_any, "", "", "", "null", "Its value channels."},
    {"verified_chunk", result, whole, if_any, "tokens", "", "", "null", "Its tokens of a chunk."},
    {"verified_dtype", result, text, if_any, "", "", "", "null", "Its type of tensors."},
    {"verified_blocks", result, whole, if_any, "", "", "", "null", "Its blocks."},
    {"verified_ranks", result, whole, if_any, "", "", "", "null", "Its ranks."},
});

}  // namespace baton::schema::part
