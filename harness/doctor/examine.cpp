// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/examine.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "collectives/executors/control_group.hpp"
#include "collectives/executors/timing.hpp"
#include "harness/doctor/host.hpp"
#include "harness/doctor/links_probe.hpp"
#include "harness/machine/system.hpp"
#include "harness/measure/hosts.hpp"
#include "harness/process/world.hpp"

namespace baton::doctor {
namespace {

/// Runs `steps` steps of a generator of random numbers. Each needs the one before, so that their
/// time depends on the clock of the core alone.
std::uint64_t compute(std::int64_t steps, std::uint64_t number) {
  for (std::int64_t i = 0; i < steps; ++i) number = number * 6364136223846793005u + 1442695040888963407u;
  return number;
}

/// The processor time of this thread in seconds.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// This process's part of an examination.
class Examination {
 public:
  Examination(const World& world, const Plan& plan);

  void rest();
  void compute_together();
  std::vector<LinkProbe>& links() { return links_; }
  Readings gathered(const Plan& plan);

 private:
  void note_others(double seconds, const std::map<int, ProcessTime>& before);
  std::int64_t steps_of_milliseconds(double milliseconds) const;
  BuildReadings build(const Plan& plan) const;

  const World& world_;
  bool is_first_of_host_ = true;
  RankReadings rank_;
  HostReadings host_;
  std::int64_t stops_before_;
  std::int64_t heat_before_ = 0;
  std::unique_ptr<Executor> start_;  // the executor of hosts, for its barrier; null for a process alone
  std::int64_t steps_ = 0;
  volatile std::uint64_t number_ = 1;  // what it computes must be kept somewhere
  std::map<int, ProcessTime> others_;  // seconds while all ranks slept
  double slept_ = 0;
  std::vector<LinkProbe> links_;
};

Examination::Examination(const World& world, const Plan& plan)
    : world_(world), host_(facts_of_host()), stops_before_(processor_quota().stops) {
  const auto hosts = world.all().gather({static_cast<double>(host_number())});
  for (int rank = 0; rank < world.rank(); ++rank)
    if (hosts[rank] == hosts[world.rank()]) is_first_of_host_ = false;
  host_.host = rank_.host = host_number();
  host_.timer_seconds = timer_overhead_seconds();
  rank_.rank = world.rank();
  rank_.cores = allowed_hardware_threads();
  std::vector<char> touched(1 << 22, 1);
  rank_.memory_node = node_of(touched.data() + touched.size() / 2);
  if (is_launched()) start_ = find_executor(host_executor()).make(world.size());
  steps_ = steps_of_milliseconds(5);
  heat_before_ = heat_events_of(current_core());
  for (const std::string& name : plan.executors) {
    const ExecutorEntry* entry = executor_registry().find(name);
    if (entry == nullptr || !is_launched()) continue;
    const int ranks = static_cast<int>(-world.all().max(-most_ranks(*entry, world.size())));
    if (ranks > 0) links_.emplace_back(world.team(ranks), *entry, ranks);
  }
}

/// The number of steps that take the fastest rank `milliseconds`; the same on all ranks.
std::int64_t Examination::steps_of_milliseconds(double milliseconds) const {
  constexpr std::int64_t trial = 200000;
  double least = 1;
  for (int i = 0; i < 20; ++i) {
    const double start = monotonic_seconds();
    const volatile std::uint64_t result = compute(trial, static_cast<std::uint64_t>(i));
    static_cast<void>(result);
    least = std::min(least, monotonic_seconds() - start);
  }
  least = -world_.all().max(-least);
  return static_cast<std::int64_t>(milliseconds * 1e-3 / least * trial);
}

void Examination::note_others(double seconds, const std::map<int, ProcessTime>& before) {
  slept_ += seconds;
  for (const auto& [number, now] : process_times()) {
    const auto then = before.find(number);
    if (then == before.end()) continue;
    others_[number].name = now.name;
    others_[number].seconds += now.seconds - then->second.seconds;
  }
}

void Examination::rest() {
  constexpr std::chrono::milliseconds nap(800), margin(100);
  world_.all().wait_asleep();
  if (!is_first_of_host_) {
    std::this_thread::sleep_for(nap + margin);
    return;
  }
  const auto processes = process_times();
  const auto before = core_ticks();
  const double start = monotonic_seconds();
  std::this_thread::sleep_for(nap);
  add_shares(host_.cores, before, core_ticks(), &Core::busy, &CoreTicks::busy);
  note_others(monotonic_seconds() - start, processes);
}

void Examination::compute_together() {
  constexpr int rounds = 60;
  world_.all().wait_asleep();
  const auto before = core_ticks();
  double seconds = 0, had = 0;
  for (int round = 0; round < rounds; ++round) {
    if (start_) start_->synchronise();
    const double start = monotonic_seconds(), start_had = thread_seconds();
    number_ = compute(steps_, number_);
    had += thread_seconds() - start_had;
    seconds += monotonic_seconds() - start;
  }
  rank_.core = current_core();
  add_clock(rank_, rank_.core);
  add_shares(host_.cores, before, core_ticks(), &Core::stolen, &CoreTicks::stolen);
  rank_.spin_seconds.push_back(seconds / rounds);
  rank_.waited.push_back(std::max(0.0, 1 - had / seconds));
  if (rank_.cores.size() == 1) rank_.heat_events = heat_events_of(rank_.core) - heat_before_;
}

BuildReadings Examination::build(const Plan& plan) const {
  const std::string mpi = mpi_library();
  BuildReadings build{.type = this_machine(mpi).build, .commit = commit(), .mpi = mpi};
  for (const std::string& name : plan.executors)
    if (const ExecutorEntry* entry = executor_registry().find(name))
      build.executors.push_back({name, entry->lacking(1).reason()});
  return build;
}

Readings Examination::gathered(const Plan& plan) {
  host_.quota_stops = processor_quota().stops - stops_before_;
  for (const auto& [number, process] : others_)
    if (slept_ > 0 && process.seconds > 0)
      host_.others.push_back({number, process.name, process.seconds / slept_});
  std::sort(host_.others.begin(), host_.others.end(),
            [](const OtherProcess& a, const OtherProcess& b) { return a.cores > b.cores; });
  host_.others.resize(std::min<std::size_t>(host_.others.size(), 5));
  Readings all{.machine = machine_name(), .build = build(plan)};
  for (LinkProbe& link : links_) {
    if (link.readings().ranks > 1) all.links.push_back(link.readings());
    if (link.has_device()) rank_.devices.push_back(link.device());
  }
  const auto from_each = [&](const std::string& mine) {
    std::vector<std::string> texts;
    for (int rank = 0; rank < world_.size(); ++rank)
      texts.push_back(world_.all().first(rank == world_.rank() ? mine : ""));
    return texts;
  };
  all.ranks = from_each(text_of(rank_));
  all.hosts = from_each(is_first_of_host_ ? text_of(host_) : "");
  std::erase(all.hosts, "");
  return all;
}

}  // namespace

int most_ranks(const ExecutorEntry& entry, int most) {
  if (!entry.process_per_rank) return 0;
  while (most > 0 && entry.lacking(most)) --most;
  return most;
}

Readings examine(const World& world, const Plan& plan, const std::function<void(const std::string&)>& enter) {
  Examination examination(world, plan);
  for (int repeat = 1; repeat <= plan.repeats; ++repeat) {
    const auto begin = [&](const std::string& part) {
      enter(fmt::format("repeat {} of {}: {}", repeat, plan.repeats, part));
    };
    begin("rest");
    examination.rest();
    begin("computation");
    examination.compute_together();
    for (LinkProbe& link : examination.links()) {
      begin("links of " + link.readings().executor);
      link.measure();
      world.all().wait_asleep();
    }
  }
  return examination.gathered(plan);
}

}  // namespace baton::doctor
