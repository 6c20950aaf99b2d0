// SPDX-License-Identifier: Apache-2.0
// `doctor_readings`: takes the readings that `./run doctor` judges, and writes them as JSON. It
// starts its ranks as the benches do, or takes the readings of ranks that another launcher started.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "collectives/executors/cores.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/doctor/examine.hpp"
#include "harness/machine/system.hpp"
#include "harness/options/checks.hpp"
#include "harness/options/flags.hpp"
#include "harness/options/names.hpp"
#include "harness/process/exit_codes.hpp"
#include "harness/process/launch.hpp"
#include "harness/process/obstacles.hpp"
#include "harness/process/output.hpp"
#include "harness/process/report.hpp"
#include "harness/process/shared_folder.hpp"
#include "harness/process/watchdog.hpp"
#include "harness/process/world.hpp"
#include "harness/record/cells.hpp"

namespace baton::doctor {
namespace {

constexpr const char* reports = ".reports";  // follows the name of the answer's file

struct Settings {
  Plan plan;
  int ranks = 0;       // 0: as many as there are cores or GPUs
  std::string answer;  // the file for the readings, in ranks that this program started
};

/// The settings; nothing if the user asked for --help. Throws UsageError.
std::optional<Settings> parse(int argc, char** argv) {
  Settings settings;
  Flags flags("doctor_readings",
              "Takes the readings that ./run doctor judges, and writes them as JSON to the standard output.");
  settings.ranks = launched_size();
  flags.add("--ranks", settings.ranks, "ranks; 0: one a core, at most 8, or one a GPU if there are more")
      .range(0, 1024);
  bool names_executors = false;
  flags
      .add("--executor,--executors", settings.plan.executors,
           "executors whose links are measured, if they can run")
      .list()
      .sets(names_executors);
  flags.add("--repeats", settings.plan.repeats, "how often everything is read").range(3, 100);
  flags.add("--answer", settings.answer, "for ranks that this program starts itself").hidden();
  if (!flags.parse({argv, argv + argc})) return std::nullopt;
  std::vector<std::string> known;
  for (const ExecutorEntry* entry : executors())
    if (entry->process_per_rank) known.push_back(entry->name);
  // The default ones may be missing, which is a finding where there are GPUs.
  if (names_executors) settings.plan.executors = resolve_names("executor", settings.plan.executors, known);
  return settings;
}

/// The default number of ranks: one for each core that may be used, at most 8; more where there are
/// more GPUs.
int default_ranks(const Plan& plan) {
  constexpr int most = 8, most_devices = 16;
  int ranks = std::min(usable_cores().count(), most);
  for (const std::string& name : plan.executors)
    if (const ExecutorEntry* entry = executor_registry().find(name);
        entry != nullptr && entry->tensors == Dtype::bf16)  // on GPUs
      ranks = std::max(ranks, most_ranks(*entry, most_devices));
  return ranks;
}

std::string text_in(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Why a launch ended before all readings were taken.
std::string failure_of(const LaunchEnd& end) {
  const std::string said = one_line(end.cause(), 800);
  const std::string obstacle = obstacle_to_launches(end.exit_code, said, mpi_library());
  const std::string cause = obstacle.empty() ? said : obstacle;
  return printable(cause.empty() ? fmt::format("the launcher ended with exit code {}", end.exit_code)
                                 : cause);
}

/// Starts the ranks, writes their readings and returns the exit code. If they fail, it writes the
/// failure alone.
int start_ranks(const Settings& settings, char** argv) {
  const LaunchFolder folder;
  const std::string answer = folder.path() + "/answer";
  const int ranks = settings.ranks > 0 ? settings.ranks : default_ranks(settings.plan);
  refuse_too_many_processes(ranks, "");
  std::vector<std::string> command = launch_command(ranks, 1, argv);
  command.insert(command.end(), {"--answer", answer});
  if (isatty(STDERR_FILENO) != 0)
    fmt::print(stderr, "examining {}, well below a minute ...\n", quantity(ranks, "rank"));
  const LaunchEnd end = run_launch(command, {.file = answer + reports, .go_on = [](bool) { return true; }});
  if (end.interrupted) return ExitCode::interrupted;
  if (end.refused()) throw UsageError(end.cause());
  std::string text = text_in(answer);
  if (text.empty())
    text = text_of(Readings{.machine = machine_name(),
                            .build = {.type = this_machine(mpi_library()).build, .commit = commit()},
                            .failure = failure_of(end)});
  fmt::print("{}\n", text);
  return end.exit_code == 0 ? 0 : ExitCode::system;
}

/// Takes part in the readings as one rank; rank 0 writes them.
void examine_as_rank(const Settings& settings, const World& world) {
  constexpr int limit_seconds = 300;
  world.require(settings.ranks);
  Watchdog watchdog(world, limit_seconds, "");
  const Readings readings =
      examine(world, settings.plan, [&](const std::string& part) { watchdog.enter(part); });
  if (world.rank() != 0) return;
  settings.answer.empty() ? fmt::print("{}\n", text_of(readings))
                          : write_text(settings.answer, text_of(readings));
}

int run(int argc, char** argv) {
  const std::optional<Settings> settings = parse(argc, argv);
  if (!settings) return 0;
  if (!is_launched()) return start_ranks(*settings, argv);
  if (!settings->answer.empty()) report_into(settings->answer + reports);
  run_in_world(&argc, &argv, [&](const World& world) { examine_as_rank(*settings, world); });
  return 0;
}

}  // namespace
}  // namespace baton::doctor

int main(int argc, char** argv) {
  baton::keep_streams_open();
  return baton::exit_code_of([&] {
    const int code = baton::doctor::run(argc, argv);
    baton::require_output();
    return code;
  });
}
