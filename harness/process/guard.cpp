// SPDX-License-Identifier: Apache-2.0
// The last resort of every program here.
#include "harness/process/guard.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>

#include "collectives/schedule/errors.hpp"
#include "harness/process/watchdog.hpp"

namespace baton {

int guarded(const std::function<void()>& body) {
  const auto fail = [](const std::exception& error, int code) {
    std::fflush(stdout);
    // A launcher ends all ranks when the first one ends: rank 0, which speaks, must not be late.
    if (launched_rank() > 0) std::this_thread::sleep_for(std::chrono::seconds(1));
    if (launched_rank() == 0) fmt::print(stderr, "baton: {}\n", error.what());
    return code;
  };
  try {
    body();
    return 0;
  } catch (const UsageError& error) {
    return fail(error, 2);
  } catch (const ScheduleError& error) {
    return fail(error, 3);
  } catch (const WrongResult& error) {
    return fail(error, 4);
  } catch (const std::exception& error) {
    return fail(error, 1);
  }
}

void run_in_world(int* argc, char*** argv, const std::function<void(const World&)>& body) {
  World world(argc, argv);
  try {
    body(world);
  } catch (const UsageError&) {
    throw;
  } catch (const ScheduleError&) {
    throw;
  } catch (const WrongResult&) {
    throw;
  } catch (const std::exception& error) {
    if (world.size() == 1) throw;
    fmt::print(stderr, "baton: rank {}: {}\n", world.rank(), error.what());
    speak_for_all();
    // The others may be about to find the same from where they stand.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    world.abort(1);
  }
}

}  // namespace baton
