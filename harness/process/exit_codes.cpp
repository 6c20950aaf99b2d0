// SPDX-License-Identifier: Apache-2.0
// Exceptions to exit codes, and the end of a run in which one rank meets an error.
#include "harness/process/exit_codes.hpp"

#include <chrono>
#include <cstdio>
#include <exception>
#include <new>
#include <thread>

#include "collectives/schedule/errors.hpp"
#include "harness/process/output.hpp"
#include "harness/process/report_line.hpp"
#include "harness/machine/system.hpp"
#include "harness/process/watchdog.hpp"

namespace baton {
namespace {

int report(const std::exception& error, int code) {
  std::fflush(stdout);
  // A variable of a launcher may be there without one: then nobody says how many ranks there are.
  const bool speaks =
      launched_rank() == 0 || launched_size() == 0 || dynamic_cast<const MeetingError*>(&error) != nullptr;
  // A launcher ends all ranks when the first one ends, so rank 0, which prints, must come first.
  if (!speaks) std::this_thread::sleep_for(std::chrono::seconds(1));
  if (speaks) Line() << one_line(error.what(), code == ExitCode::usage ? 240 : 1000);
  return code;
}

}  // namespace

int exit_code_of(const std::function<int()>& body) {
  try {
    return body();
  } catch (const UsageError& error) {
    return report(error, ExitCode::usage);
  } catch (const ScheduleError& error) {
    return report(error, ExitCode::schedule);
  } catch (const WrongResult& error) {
    return report(error, ExitCode::wrong);
  } catch (const std::bad_alloc&) {
    return report(SystemError("out of memory: ask for fewer ranks or blocks, or for smaller sizes"),
                  ExitCode::system);
  } catch (const std::exception& error) {
    return reader_left() && has_lost_output() ? ExitCode::reader_left : report(error, ExitCode::system);
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
    const bool is_news = !is_failure_reported();
    if (is_news) Line() << "rank " << world.rank() << ": " << one_line(error.what(), 900);
    announce_failure();
    if (is_news) report_results();
    // Other ranks may be about to report the same failure from their side.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    world.abort(1);
  }
}

}  // namespace baton
