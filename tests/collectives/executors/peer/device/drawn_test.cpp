// SPDX-License-Identifier: Apache-2.0
// The interpreter of peer programs on drawn schedules, which need not look like any algorithm.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "collectives/schedule/listing.hpp"
#include "tests/collectives/executors/peer/device/host_device.hpp"
#include "tests/collectives/fuzz/finding.hpp"
#include "tests/collectives/fuzz/model.hpp"
#include "tests/held_out_seed.hpp"

namespace {

using namespace baton;

bool is_accepted(const DrawnSchedules& drawn) {
  try {
    product_check(drawn.schedules);
    return true;
  } catch (const ScheduleError&) {
    return false;
  }
}

/// True if no step reads what a later one of its rank is the first to write: such an element holds
/// something else in every round, and a program need not store it.
bool reads_what_is_written(const Schedule& schedule) {
  std::vector<Slice> written, read_first;
  const auto meets = [](const Slice& slice, const std::vector<Slice>& all) {
    return std::any_of(all.begin(), all.end(), [&](const Slice& other) { return slice.overlaps(other); });
  };
  for (const Step& step : schedule.steps()) {
    for (const Slice& slice : step.reads)
      for (std::int64_t i = 0; i < slice.count; ++i)
        if (!meets(slice.part(i, 1), written)) read_first.push_back(slice.part(i, 1));
    for (const Slice& slice : step.writes) {
      if (meets(slice, read_first)) return false;
      written.push_back(slice);
    }
  }
  return true;
}

/// What rank `schedule` of the device leaves in its outputs that the model does not.
std::string difference(const HostDevice& device, const Schedule& schedule, const BufferElements& wanted) {
  std::size_t first = 0;
  for (int b = 0; b < static_cast<int>(schedule.buffers().size()); ++b) {
    const Buffer& buffer = schedule.buffers()[b];
    std::vector<float> found(static_cast<std::size_t>(buffer.count));
    device.read(found, schedule.home_rank(), {b, 0, buffer.count});
    for (std::size_t i = 0; i < found.size() && buffer.role == Role::output; ++i)
      if (found[i] != wanted[first + i])
        return "element " + std::to_string(i) + " of '" + buffer.name + "' on rank " +
               std::to_string(schedule.home_rank()) + " is " + std::to_string(found[i]) + " and not " +
               std::to_string(wanted[first + i]);
    first += found.size();
  }
  return {};
}

TEST(PeerProgram, RightForDrawnSchedules) {
  constexpr float exact = 1 << 22;  // up to here sums and products are the same however they are rounded
  const HostDeviceOptions all_options[] = {{}, {.merges = false, .blocks = 1}, {.blocks = 3, .threads = 8}};
  int checked = 0, messages = 0;
  for (std::uint64_t seed = held_out_seed(); checked < 300; ++seed) {
    const auto bytes = bytes_of(seed);
    const DrawnSchedules drawn = draw_schedules(Bytes(bytes));
    const bool is_fit = std::all_of(drawn.schedules.begin(), drawn.schedules.end(), reads_what_is_written) &&
                        drawn.schedules[0].buffers()[0].count < 1000;
    if (!is_fit || !is_accepted(drawn) || unsupported_by_peer(drawn.schedules)) continue;
    std::mt19937_64 random(seed);
    const Played wanted = Model(drawn).play(Passing::rendezvous, 2, random);
    if (wanted.largest > exact) continue;
    HostDevice device(drawn.schedules, all_options[++checked % 3], seed);
    for (const Schedule& schedule : drawn.schedules)
      device.write(schedule.home_rank(), schedule.buffer("own"), drawn_input(schedule));
    for (const Schedule& schedule : drawn.schedules)
      messages += static_cast<int>(std::count_if(schedule.steps().begin(), schedule.steps().end(),
                                                 [](const Step& step) { return step.verb == Verb::send; }));
    for (const auto& round : wanted.rounds) {
      device.run();
      for (const Schedule& schedule : drawn.schedules)
        ASSERT_EQ(difference(device, schedule, round[schedule.home_rank()]), "")
            << "BATON_SEED=" << seed << "\n"
            << text(schedule);
    }
  }
  EXPECT_GT(messages, checked);
}

}  // namespace
