// SPDX-License-Identifier: Apache-2.0
#include "harness/process/conditions.hpp"

#include <gtest/gtest.h>

namespace {

using namespace baton;

TEST(Conditions, AsManyThreadsAsCoresAreNotTooMany) {
  EXPECT_FALSE((Conditions{.cores = 4, .busy_threads = 4, .other_load = {}}.oversubscribed()));
  EXPECT_TRUE((Conditions{.cores = 4, .busy_threads = 5, .other_load = {}}.oversubscribed()));
}

}  // namespace
