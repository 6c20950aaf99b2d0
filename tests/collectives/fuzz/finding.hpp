// SPDX-License-Identifier: Apache-2.0
// The checker of schedules, held to account on one draw.
//
//   what check accepts   ends well in the model, whatever its messages do; leaves there, on `local`
//                        and on `tcp` the same elements after each of two rounds; and is simulated
//                        with the bytes and hops that were counted
//   what check rejects   goes wrong in some play of the model; `local` and the simulator refuse it
//                        too, unless groups or an output alone are wrong
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tests/collectives/fuzz/draw.hpp"

namespace baton {

/// A checker of schedules, which throws ScheduleError at what it rejects.
using Checker = std::function<void(std::span<const Schedule> schedules)>;

/// The checker of the product.
void product_check(std::span<const Schedule> schedules);

/// The bytes that seed `seed` stands for.
std::vector<std::uint8_t> bytes_of(std::uint64_t seed);

/// What is wrong with the word of `checker` on the schedules that are drawn from `bytes`, or with
/// an executor, and these schedules; empty if nothing is.
std::string finding(std::span<const std::uint8_t> bytes, const Checker& checker = product_check);

}  // namespace baton
