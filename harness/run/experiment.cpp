// SPDX-License-Identifier: Apache-2.0
// The life of one case.
#include "harness/run/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "collectives/schedule/errors.hpp"
#include "harness/process/machine.hpp"
#include "harness/report/columns.hpp"
#include "harness/run/traced_round.hpp"
#include "harness/run/traffic.hpp"

namespace baton {
namespace {

std::string new_run_name() {
  std::random_device random;
  return fmt::format("{}-{:08x}", utc_now(), random());
}

/// Runs the iterations of a process that has no part in the case.
void sit_out(benchmark::State& state) {
  for (auto _ : state) state.SetIterationTime(0);
}

}  // namespace

Experiment::Experiment(const Options& options, const World& world, const Table& table)
    : options_(options),
      world_(world),
      table_(table),
      journal_(world.rank() == 0 ? options.journal : ""),
      watchdog_(world, options.time_limit_seconds, options.journal),
      progress_(world.rank() == 0, static_cast<int>(options.cases.size())) {
  provenance_ = {.machine = describe_machine(world.library()),
                 .commit = commit(),
                 .run = new_run_name(),
                 .seed = options.seed,
                 .baseline = options.baseline};
}

void Experiment::run(benchmark::State& state, const Case& question) {
  watchdog_.enter(question.name());
  progress_.enter(question.name());
  Testbed& testbed = this->testbed(question.executor, question.ranks);
  std::string error;
  if (testbed.team().is_member()) {
    Record record{.question = question,
                  .ranks_a_node = question.ranks_a_node,
                  .warmup = options_.warmup,
                  .rounds = options_.rounds};
    try {
      answer(record, testbed, state);
      keep(record, testbed.start_skew_seconds());
      output_ += trace_round(options_.trace, record, testbed);
    } catch (const ScheduleError& wrong) {
      error = wrong.what();
    }
  } else {
    sit_out(state);
  }
  // Those who sat out wait here, asleep; what the members found wrong with a schedule is everybody's end.
  world_.all().wait_asleep();
  error = world_.all().first(error);
  if (!error.empty()) throw ScheduleError(error);
}

std::string Experiment::take_output() { return std::exchange(output_, {}); }

void Experiment::throw_if_wrong() const {
  if (!wrong_.empty()) throw WrongResult(wrong_);
}

Testbed& Experiment::testbed(const std::string& executor, int ranks) {
  auto& testbed = testbeds_[{executor, ranks}];
  if (testbed) return *testbed;
  const ExecutorEntry& entry = find_executor(executor);
  Team team = world_.team(entry.process_a_rank ? ranks : 1);
  const std::string lack = world_.all().first(entry.lacking(ranks).reason());
  testbed = !lack.empty() ? absent_testbed(lack, std::move(team))
            : entry.make  ? real_testbed(options_, entry, ranks, std::move(team))
                          : simulated_testbed(options_, ranks, std::move(team));
  if (testbed->team().is_member()) output_ += testbed->description();
  return *testbed;
}

void Experiment::answer(Record& record, Testbed& testbed, benchmark::State& state) {
  record.skipped = testbed.prepare(record);
  if (!record.skipped.empty()) return state.SkipWithError(record.skipped.c_str());
  testbed.verify(record);
  if (record.wrong > 0) return state.SkipWithError("wrong result");
  testbed.time(record, state);
  if (record.wrong > 0) return;
  record.summary = summarise(record.samples.seconds);
  compare_with_others(record);
}

void Experiment::compare_with_others(Record& record) {
  find_hidden_share(record);
  timed_.emplace(record.question.contest(), record);
  compare_with_baseline(record);
}

void Experiment::compare_with_baseline(Record& record) {
  if (record.question.workload->name() == options_.baseline && !record.question.workload->cuts_blocks()) {
    record.ratio = Ratio{1, {1, 1}};
    return;
  }
  // Where the baseline ran with several block counts: the same count if both cut, or else its fastest.
  const Record* best = nullptr;
  const auto [first, last] = timed_.equal_range(record.question.contest());
  for (auto other = first; other != last; ++other) {
    const Record& candidate = other->second;
    if (candidate.question.workload->name() != options_.baseline) continue;
    const bool both_cut =
        candidate.question.workload->cuts_blocks() && record.question.workload->cuts_blocks();
    if (both_cut && candidate.question.blocks == record.question.blocks) {
      best = &candidate;
      break;
    }
    if (best == nullptr || candidate.summary.median < best->summary.median) best = &candidate;
  }
  if (best != nullptr) record.ratio = ratio_of_medians(record.samples.seconds, best->samples.seconds);
}

void Experiment::find_hidden_share(Record& record) const {
  const Workload& workload = *record.question.workload;
  if (workload.variant() != "overlapped") return;
  std::optional<double> exposed, compute_only;
  const auto [first, last] = timed_.equal_range(record.question.contest());
  for (auto other = first; other != last; ++other) {
    const Workload& sibling = *other->second.question.workload;
    if (sibling.name() != workload.name()) continue;
    if (sibling.variant() == "exposed") exposed = other->second.summary.median;
    if (sibling.variant() == "compute_only") compute_only = other->second.summary.median;
  }
  if (exposed && compute_only && *exposed > *compute_only)
    record.hidden = (*exposed - record.summary.median) / (*exposed - *compute_only);
}

void Experiment::keep(const Record& record, double start_skew_seconds) {
  if (record.wrong > 0 && wrong_.empty())
    wrong_ = fmt::format("{}: {} wrong elements, first {}", record.question.name(), record.wrong,
                         record.first_wrong);
  if (world_.rank() != 0) return;
  prediction_errors_.add(record);
  provenance_.start_skew_seconds = start_skew_seconds;
  output_ += table_.row(record);  // first: the row is there even if the journal's disk is full
  journal_.append(to_json(record, provenance_));
}

std::string Experiment::header() const {
  const auto& machine = provenance_.machine;
  const double timer = timer_overhead_seconds();
  return fmt::format(
      "# baton {} · {} · {} cores · {} · {} · {} · {}\n"
      "# {} warm-up and {} measured rounds; a round is the slowest rank's time; mean is the papers' figure\n"
      "# start of a round: a dissemination barrier; timer {:.0f} ns a reading; seed {}\n"
      "# bound = hops alpha + busiest rank's bytes / beta, and on GPUs what an empty round reads, measured "
      "below; "
      "* blocks chosen by the model; "
      "ratio to {}\n",
      provenance_.commit, machine["cpu"].get<std::string>(), machine["cores"].get<int>(),
      machine["system"].get<std::string>(), machine["mpi"].get<std::string>(),
      machine["compiler"].get<std::string>(), machine["build"].get<std::string>(), options_.warmup,
      options_.rounds, timer * 1e9, options_.seed,
      options_.baseline.empty() ? "nothing (--baseline)" : options_.baseline);
}

}  // namespace baton
