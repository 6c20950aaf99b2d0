// SPDX-License-Identifier: Apache-2.0
// The life of one case.
#include "harness/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "collectives/schedule/errors.hpp"
#include "harness/columns.hpp"
#include "harness/machine.hpp"
#include "harness/traffic.hpp"

namespace baton {
namespace {

/// Bytes of the buffers of all ranks.
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
  if (needed <= 0.6 * free) return {};  // the oracle needs some too
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

Experiment::Experiment(const Options& options, const World& world, const Table& table)
    : options_(options),
      world_(world),
      table_(table),
      journal_(world.rank() == 0 ? options.journal : ""),
      watchdog_(world, options.time_limit_seconds),
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
  Bench& bench = this->bench(question.executor, question.ranks);
  std::string error;
  if (bench.team.is_member()) {
    Record record{
        .question = question, .warmup = options_.warmup, .rounds = options_.rounds, .link = bench.link};
    try {
      answer(record, bench, state);
      keep(record, bench.start_skew_seconds);
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
  time(record, bench, state);
  if (record.wrong > 0) return;
  record.summary = summarise(record.samples.seconds);
  compare_with_others(record);
}

void Experiment::time(Record& record, Bench& bench, benchmark::State& state) {
  const Case& question = record.question;
  // Inputs that no verified run has seen: what is right after the rounds was computed in them.
  const std::uint64_t seed = options_.seed + options_.checks;
  question.workload->load(*bench.executor, question.ranks, seed);
  Rounds rounds(*bench.executor, bench.team, question.cadence, options_.rounds);
  rounds.warm_up(options_.warmup);
  for (auto _ : state) state.SetIterationTime(rounds.next());
  record.samples = rounds.samples();
  note(record, bench, question.workload->verify_timed(*bench.executor, question.ranks, seed));
  if (record.wrong > 0) record.samples = {};
}

std::string Experiment::prepare(Record& record, Bench& bench) {
  const Case& question = record.question;
  std::string reason = question.workload->refuses(question.ranks);
  if (!reason.empty()) return reason;
  record.blocks = blocks_of(question, bench.link);
  auto schedules = question.workload->build(question.ranks, record.blocks);
  record.implementation = implementation_of(schedules);
  record.traffic = traffic_of(question, record.blocks, schedules);
  reason = bench.executor->supports(schedules);
  if (reason.empty()) reason = lacks_memory(schedules);
  reason = bench.team.first(reason);
  if (reason.empty()) bench.executor->prepare(std::move(schedules));
  return reason;
}

void Experiment::verify(Record& record, Bench& bench) {
  const Case& question = record.question;
  for (int i = 0; i < options_.checks; ++i)
    note(record, bench,
         question.workload->verify(*bench.executor, question.ranks, record.blocks, options_.seed + i));
}

void Experiment::note(Record& record, Bench& bench, const Comparison& comparison) const {
  const std::string first = bench.team.first(comparison.first);
  record.wrong += bench.team.sum(comparison.wrong);
  record.relative_error = std::max(record.relative_error, bench.team.max(comparison.relative_error));
  if (record.first_wrong.empty()) record.first_wrong = first;
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
      "# bound = hops alpha + busiest rank's bytes / beta, measured below; * blocks chosen by the model; "
      "ratio to {}\n",
      provenance_.commit, machine["cpu"].get<std::string>(), machine["cores"].get<int>(),
      machine["system"].get<std::string>(), machine["mpi"].get<std::string>(),
      machine["compiler"].get<std::string>(), machine["build"].get<std::string>(), options_.warmup,
      options_.rounds, timer * 1e9, options_.seed,
      options_.baseline.empty() ? "nothing (--baseline)" : options_.baseline);
}

}  // namespace baton
