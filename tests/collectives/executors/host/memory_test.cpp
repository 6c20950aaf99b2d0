// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/host/memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "collectives/schedule/errors.hpp"

namespace {

using namespace baton;

TEST(HostMemory, StartsAsZeros) {
  Schedule s(0, 1);
  const Slice scratch = s.scratch("scratch", 5000);
  HostMemory memory(s);
  const auto view = memory.view(scratch);
  EXPECT_TRUE(std::all_of(view.begin(), view.end(), [](float value) { return value == 0; }));
}

TEST(HostMemory, StartsAsItsBuffersSay) {
  Schedule s(0, 1);
  const Slice a = s.input("a", 3), into = s.output("into", 3);
  s.add(into, a, a);
  HostMemory memory(s);
  memory.write(a, std::vector{1.0F, 2.0F, 3.0F});
  run_on_host(s, s.steps()[0], memory.operands(s.steps()[0]));
  const auto view = memory.view(into);
  EXPECT_EQ(std::vector<float>(view.begin(), view.end()), (std::vector<float>{2, 4, 6}));
}

TEST(HostMemory, RunsComputeStepsOnTheirSlices) {
  Schedule s(0, 1);
  const Slice into = s.output("into", 3);
  s.compute({.name = "fill", .body = [](const HostOperands& x) { std::ranges::fill(x.writes[0], 7.0f); }},
            {into.part(1, 2)}, {});
  HostMemory memory(s);
  run_on_host(s, s.steps()[0], memory.operands(s.steps()[0]));
  const auto view = memory.view(into);
  EXPECT_EQ(std::vector<float>(view.begin(), view.end()), (std::vector<float>{0, 7, 7}));
}

TEST(HostMemory, SaysWhichBufferItCannotHave) {
  Schedule s(0, 1);
  s.scratch("vast", std::int64_t{1} << 49);
  EXPECT_THROW(HostMemory{s}, SystemError);
}

}  // namespace
