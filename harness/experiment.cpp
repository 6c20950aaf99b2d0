// SPDX-License-Identifier: Apache-2.0
// The life of one case.
#include "harness/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "collectives/schedule/check.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/columns.hpp"
#include "harness/machine.hpp"
#include "harness/verify.hpp"

namespace baton {
namespace {

Subject subject_of(const Case& question, std::uint64_t seed) {
  return {question.collective->kind, question.shape, question.ranks, question.direction, seed};
}

std::vector<Schedule> build_schedules(const Case& question, int blocks) {
  return build_all(*question.collective, question.shape, question.ranks, blocks, question.direction);
}

/// Bytes of the buffers of the ranks that `host_ranks` tells.
double buffer_bytes(const std::vector<Schedule>& schedules) {
  double bytes = 0;
  for (const Schedule& schedule : schedules)
    for (const Buffer& buffer : schedule.buffers())
      bytes += static_cast<double>(buffer.count * element_bytes);
  return bytes;
}

/// Why the buffers do not fit, or an empty string. Ranks of other hosts are counted too: a safe guess.
std::string lacks_memory(const std::vector<Schedule>& schedules) {
  const double needed = buffer_bytes(schedules), free = static_cast<double>(available_bytes());
  if (needed <= 0.8 * free) return {};
  return fmt::format("needs {:.1f} GiB of memory, {:.1f} are free", needed / (1 << 30), free / (1 << 30));
}

std::string new_run_name() {
  std::random_device random;
  return fmt::format("{}-{:08x}", utc_now(), random());
}

/// Runs the iterations of a process that has no part in the case.
void sit_out(benchmark::State& state) {
  for (auto _ : state) state.SetIterationTime(0);
}

}  // namespace

Experiment::Experiment(const Options& options, const World& world, int cases)
    : options_(options),
      world_(world),
      journal_(world.rank() == 0 ? options.journal : ""),
      watchdog_(world, options.time_limit_seconds),
      progress_(world.rank() == 0, cases) {
  provenance_ = {.machine = describe_machine(world.library()),
                 .commit = commit(),
                 .run = new_run_name(),
                 .seed = options.seed,
                 .baseline = options.axes.baseline};
}

void Experiment::run(benchmark::State& state, const Case& question) {
  watchdog_.enter(question.name());
  progress_.enter(question.name());
  world_.all().wait_asleep();
  Bench& bench = this->bench(question.executor, question.ranks);
  if (!bench.team.is_member()) return sit_out(state);
  Record record{
      .question = question, .warmup = options_.warmup, .rounds = options_.rounds, .link = bench.link};
  answer(record, bench, state);
  keep(record, bench.start_skew_seconds);
}

std::string Experiment::take_output() { return std::exchange(output_, {}); }

void Experiment::throw_if_wrong() const {
  if (!wrong_.empty()) throw WrongResult(wrong_);
}

Experiment::Bench& Experiment::bench(const std::string& executor, int ranks) {
  const auto found = benches_.find({executor, ranks});
  if (found != benches_.end()) return found->second;
  const ExecutorEntry& entry = find_executor(executor);
  Bench bench{.team = world_.team(entry.process_a_rank ? ranks : 1), .executor = nullptr, .link = {}};
  if (bench.team.is_member()) {
    bench.executor = entry.make(ranks);
    bench.link = measure_link(*bench.executor, bench.team, ranks);
    bench.start_skew_seconds = measure_start_skew(*bench.executor, bench.team);
    if (ranks > 1)
      output_ += fmt::format("# {}, {} ranks: alpha {:.2f} us, beta {:.2f} GB/s, start skew {}\n", executor,
                             ranks, bench.link.alpha_seconds * 1e6, bench.link.beta * 1e-9,
                             std::isnan(bench.start_skew_seconds)
                                 ? "unknown (several hosts)"
                                 : fmt::format("{:.2f} us", bench.start_skew_seconds * 1e6));
  }
  return benches_.emplace(std::pair{executor, ranks}, std::move(bench)).first->second;
}

void Experiment::answer(Record& record, Bench& bench, benchmark::State& state) {
  record.skipped = prepare(record, bench);
  if (!record.skipped.empty()) return state.SkipWithError(record.skipped.c_str());
  verify(record, bench);
  if (record.wrong > 0) return state.SkipWithError("wrong result");
  Rounds rounds(*bench.executor, bench.team, record.question.cadence, options_.rounds);
  rounds.warm_up(options_.warmup);
  for (auto _ : state) state.SetIterationTime(rounds.next());
  record.samples = rounds.samples();
  record.summary = summarise(record.samples.seconds);
  // Once more on what the timed rounds left: a race may spare the first check.
  compare_outputs(record, bench, options_.seed + options_.checks - 1);
  compare_with_baseline(record);
}

std::string Experiment::prepare(Record& record, Bench& bench) {
  record.blocks = blocks_of(record.question, bench.link);
  auto schedules = build_schedules(record.question, record.blocks);
  record.implementation = implementation_of(schedules);
  record.traffic = traffic_of(record.question, record.blocks, schedules);
  std::string reason = bench.executor->supports(schedules);
  if (reason.empty()) reason = lacks_memory(schedules);
  reason = bench.team.first(reason);
  if (reason.empty()) bench.executor->prepare(std::move(schedules));
  return reason;
}

void Experiment::verify(Record& record, Bench& bench) {
  for (int i = 0; i < options_.checks; ++i) {
    const std::uint64_t seed = options_.seed + i;
    write_inputs(*bench.executor, subject_of(record.question, seed));
    bench.executor->synchronise();
    bench.executor->run();
    compare_outputs(record, bench, seed);
  }
}

void Experiment::compare_outputs(Record& record, Bench& bench, std::uint64_t seed) {
  const Comparison comparison = compare(*bench.executor, subject_of(record.question, seed));
  const std::string first = bench.team.first(comparison.first);
  record.wrong += bench.team.sum(comparison.wrong);
  if (record.first_wrong.empty()) record.first_wrong = first;
}

void Experiment::compare_with_baseline(Record& record) {
  const std::string contest = record.question.contest();
  if (record.question.collective->name == options_.axes.baseline) baselines_.emplace(contest, record);
  const auto [first, last] = baselines_.equal_range(contest);
  if (first == last) return;
  // Where the baseline ran with several block counts: the same count, or else its fastest.
  auto best = first;
  for (auto other = first; other != last; ++other) {
    if (other->second.question.blocks == record.question.blocks) {
      best = other;
      break;
    }
    if (other->second.summary.median < best->second.summary.median) best = other;
  }
  record.ratio = ratio_of_medians(record.samples.seconds, best->second.samples.seconds);
}

void Experiment::keep(const Record& record, double start_skew_seconds) {
  if (record.wrong > 0 && wrong_.empty())
    wrong_ = fmt::format("{}: {} wrong elements, first {}", record.question.name(), record.wrong,
                         record.first_wrong);
  if (world_.rank() != 0) return;
  provenance_.start_skew_seconds = start_skew_seconds;
  journal_.append(to_json(record, provenance_));
  output_ += table_row(record);
}

std::string Experiment::header() const {
  const auto& machine = provenance_.machine;
  const double timer = timer_overhead_seconds();
  return fmt::format(
      "# baton {} · {} · {} cores · {} · {} · {} · {}\n"
      "# {} warm-up and {} measured rounds; a round is the slowest rank's time; mean is the papers' figure\n"
      "# start of a round: a dissemination barrier; timer {:.0f} ns a reading; seed {}\n"
      "# bound = hops alpha + busiest rank's bytes / beta, measured below; * blocks chosen by the model; "
      "ratio to {}\n",
      provenance_.commit, machine["cpu"].get<std::string>(), machine["cores"].get<int>(),
      machine["system"].get<std::string>(), machine["mpi"].get<std::string>(),
      machine["compiler"].get<std::string>(), machine["build"].get<std::string>(), options_.warmup,
      options_.rounds, timer * 1e9, options_.seed,
      options_.axes.baseline.empty() ? "nothing (--baseline)" : options_.axes.baseline);
}

int blocks_of(const Case& question, const Link& link) {
  if (question.blocks != auto_blocks) return question.blocks;
  return link.best_blocks(question.ranks, question.shape.state_bytes(), question.shape.rows());
}

std::string implementation_of(const std::vector<Schedule>& schedules) {
  for (const Schedule& schedule : schedules)
    for (const NativeCall& native : schedule.natives()) return native.name;
  return "schedule";
}

std::optional<Claim> traffic_of(const Case& question, int blocks, const std::vector<Schedule>& schedules) {
  const Counts counts = check(question.collective->name, schedules);
  const auto claim = question.collective->claim(question.shape, question.ranks, blocks);
  if (implementation_of(schedules) != "schedule") return claim;
  const Claim counted{counts.busiest_sent_bytes(), counts.hops};
  if (claim && (claim->sent_bytes != counted.sent_bytes || claim->hops != counted.hops))
    throw ScheduleError(fmt::format("{} claims {} bytes and {} hops, but its schedules have {} and {}",
                                    question.name(), claim->sent_bytes, claim->hops, counted.sent_bytes,
                                    counted.hops));
  return counted;
}

}  // namespace baton
