// SPDX-License-Identifier: Apache-2.0
// Exceptions to exit codes, and the end of a run in which one rank meets an error.
#include "harness/process/exit_codes.hpp"

#include <chrono>
#include <cstdio>
#include <exception>
#include <new>
#include <thread>

#include "collectives/executors/stuck_error.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/machine/system.hpp"
#include "harness/process/output.hpp"
#include "harness/process/report.hpp"
#include "harness/process/watchdog.hpp"

namespace baton {
namespace {

int code_of(const std::exception& error) {
  if (dynamic_cast<const UsageError*>(&error) != nullptr) return ExitCode::usage;
  return dynamic_cast<const ScheduleError*>(&error) != nullptr ? ExitCode::schedule : ExitCode::system;
}

int report(const std::exception& error, int code) {
  std::fflush(stdout);
  // A variable of a launcher may be there without one: then nobody says how many ranks there are.
  const bool speaks =
      launched_rank() == 0 || launched_size() == 0 || dynamic_cast<const MeetingError*>(&error) != nullptr;
  // A launcher ends all ranks when the first one ends, so rank 0, which prints, must come first.
  if (!speaks) std::this_thread::sleep_for(std::chrono::seconds(1));
  Report said;
  said.text << one_line(error.what(), code == ExitCode::usage ? 240 : 1000);
  if (speaks) said.send();
  return code;
}

}  // namespace

int exit_code_of(const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return report(SystemError("out of memory: ask for fewer ranks or blocks, or for smaller sizes"),
                  ExitCode::system);
  } catch (const std::exception& error) {
    const int code = code_of(error);
    return code == ExitCode::system && reader_left() && has_lost_output() ? ExitCode::reader_left
                                                                          : report(error, code);
  }
}

void run_in_world(int* argc, char*** argv, const std::function<void(const World&)>& body) {
  World world(argc, argv);
  try {
    body(world);
  } catch (const std::exception& error) {
    if (code_of(error) != ExitCode::system || world.size() == 1) throw;
    Report said{.rank = world.rank()};
    said.text << one_line(error.what(), 900);
    const auto* stuck = dynamic_cast<const StuckError*>(&error);
    if (stuck != nullptr && stuck->step >= 0) said.step = stuck->step;
    report_error(said);
    // Other ranks may be about to report the same failure from their side.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    world.abort(1);
  }
}

}  // namespace baton
