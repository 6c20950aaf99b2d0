// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/host/compute_worker.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>

namespace {

using namespace baton;

TEST(ComputeWorker, RunsInOrderBesideTheCaller) {
  std::promise<void> go;
  std::vector<int> ran;
  ComputeWorker worker([&, started = go.get_future().share()](int step) {
    started.wait();
    ran.push_back(step);
  });
  for (int step : {3, 1, 2}) worker.submit(step);
  EXPECT_TRUE(worker.finished(false).empty());  // the caller is here, the worker waits for it
  go.set_value();
  std::vector<int> finished;
  while (worker.is_busy())
    for (int step : worker.finished(true)) finished.push_back(step);
  EXPECT_EQ(finished, (std::vector<int>{3, 1, 2}));
  EXPECT_EQ(ran, finished);
}

TEST(ComputeWorker, HandsOnWhatAStepThrows) {
  ComputeWorker worker([](int) { throw std::runtime_error("a step failed"); });
  worker.submit(0);
  EXPECT_THROW(worker.finished(true), std::runtime_error);
}

TEST(ComputeWorker, EndsWithoutRunningWhatIsQueued) {
  std::promise<void> go;
  int ran = 0;
  std::thread opener;
  {
    ComputeWorker worker([&, opened = go.get_future().share()](int) {
      opened.wait();
      ++ran;
    });
    for (int step = 0; step < 100; ++step) worker.submit(step);
    // The first step is let go only when the worker is long being ended, with the others still in
    // its queue.
    opener = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      go.set_value();
    });
  }
  opener.join();
  EXPECT_LE(ran, 1);
}

}  // namespace
