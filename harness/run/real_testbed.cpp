// SPDX-License-Identifier: Apache-2.0
// Cases that really run: prove, prepare, verify, time. Beside each the time that the model of this machine predicts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/measure/link.hpp"
#include "harness/measure/rounds.hpp"
#include "harness/model/calibration.hpp"
#include "harness/model/prediction.hpp"
#include "harness/process/files.hpp"
#include "harness/process/machine.hpp"
#include "harness/run/testbed.hpp"
#include "harness/run/traffic.hpp"

namespace baton {
namespace {

/// Bytes of the buffers of all ranks.
double buffer_bytes(const std::vector<Schedule>& schedules) {
  double bytes = 0;
  for (const Schedule& schedule : schedules)
    for (const Buffer& buffer : schedule.buffers()) bytes += static_cast<double>(buffer.bytes());
  return bytes;
}

/// Why the buffers do not fit, or an empty string. Ranks of other hosts are counted too: a safe guess.
Refusal lacks_memory(const std::vector<Schedule>& schedules) {
  const double needed = buffer_bytes(schedules), free = static_cast<double>(available_bytes());
  if (needed <= 0.6 * free) return {};  // the oracle needs some too
  return fmt::format("needs {:.1f} GiB of memory, {:.1f} are free", needed / (1 << 30), free / (1 << 30));
}

/// The times of all processes, on each of them. Processes have different numbers of steps, so rows are filled up.
std::vector<StepTime> gather(const std::vector<StepTime>& mine, const Team& team) {
  constexpr double filler = -1;
  const auto most = static_cast<std::size_t>(team.max(static_cast<double>(mine.size())));
  std::vector<double> row;
  for (const StepTime& time : mine)
    for (double value : {double(time.rank), double(time.step), time.start_seconds, time.finish_seconds})
      row.push_back(value);
  row.resize(4 * most, filler);
  std::vector<StepTime> all;
  for (const auto& values : team.gather(row))
    for (std::size_t i = 0; i < values.size() && values[i] != filler; i += 4)
      all.push_back(
          {static_cast<int>(values[i]), static_cast<int>(values[i + 1]), values[i + 2], values[i + 3]});
  return all;
}

class RealTestbed : public Testbed {
 public:
  RealTestbed(const Options& options, const ExecutorEntry& entry, int ranks, Team team)
      : Testbed(std::move(team)), options_(options), name_(entry.name), ranks_(ranks) {
    if (!this->team().is_member()) return;
    executor_ = entry.make(ranks);
    link_ = measure_link(*executor_, this->team(), ranks);
    topology_ = options.topology;
    if (calibrates()) calibrate();
    if (executor_->device() == nullptr) start_skew_seconds_ = measure_start_skew(*executor_, this->team());
  }

  std::string description() const override {
    if (Device* device = executor_->device()) return describe(*device);
    if (ranks_ < 2) return {};
    const std::string skew = std::isnan(start_skew_seconds_)
                                 ? "unknown (several hosts)"
                                 : fmt::format("{:.2f} us", start_skew_seconds_ * 1e6);
    return fmt::format("# {}, {} ranks: alpha {:.2f} us, beta {:.2f} GB/s, start skew {}\n", name_, ranks_,
                       link_.alpha_seconds * 1e6, link_.beta * 1e-9, skew);
  }
  double start_skew_seconds() const override { return start_skew_seconds_; }

  std::string prepare(Record& record) override;
  void verify(Record& record) override;
  void time(Record& record, benchmark::State& state) override;
  std::vector<StepTime> run_traced(const Record& record) override;

 private:
  bool calibrates() const { return !options_.calibrate.empty() && ranks_ > 1; }
  std::string describe(const Device& device) const;
  Refusal lacks_cadence(Cadence cadence) const;
  void calibrate();
  std::string ranks_machine() const;
  void calibrate_kernels_of(const std::vector<Schedule>& schedules);
  void keep_calibration() const;

  const Options& options_;
  std::string name_;
  int ranks_;
  std::unique_ptr<Executor> executor_;
  Link link_;
  std::optional<Topology> topology_;                                      // what predictions stand on
  double start_skew_seconds_ = std::numeric_limits<double>::quiet_NaN();  // nobody sees a device's start
};

std::string RealTestbed::describe(const Device& device) const {
  std::string text =
      fmt::format("# {}, {} ranks: empty round {:.2f} us", name_, ranks_, link_.floor_seconds * 1e6);
  if (ranks_ > 1)
    text += fmt::format(", alpha {:.2f} us, beta {:.1f} GB/s", link_.alpha_seconds * 1e6, link_.beta * 1e-9);
  if (link_.message_beta > 0)
    text += fmt::format(" (its own messages {:.2f} us, {:.1f} GB/s)", link_.message_alpha_seconds * 1e6,
                        link_.message_beta * 1e-9);
  text += device.starts_on_device() ? "; rounds start by flags between the GPUs\n"
                                    : "; rounds start by a barrier\n";
  std::string facts = "#";
  for (const auto& [name, value] : device.facts()) facts += fmt::format(" {} {};", name, value);
  facts.back() = '\n';
  return text + facts;
}

Refusal RealTestbed::lacks_cadence(Cadence cadence) const {
  if (cadence != Cadence::graph) return {};
  const Device* device = executor_->device();
  return device == nullptr ? name_ + " records no graphs" : device->replay_unsupported();
}

/// Of the accelerators where the ranks are such, else of the processor.
std::string RealTestbed::ranks_machine() const {
  if (executor_->device() != nullptr)
    for (const auto& [name, value] : executor_->device()->facts())
      if (name == "gpu") return value;
  return machine_name();
}

void RealTestbed::calibrate() {
  const std::string machine = ranks_machine();
  topology_ = baton::calibrate(
      *executor_, team(), ranks_,
      fmt::format("{}, executor {}, {} ranks, commit {}, {}", machine, name_, ranks_, commit(), utc_now()));
  topology_->name = fmt::format("{}, {}", machine, name_);  // tells machines apart in figures
  keep_calibration();
}

void RealTestbed::calibrate_kernels_of(const std::vector<Schedule>& schedules) {
  const auto is_known = [this](const Schedule& schedule) {
    const auto& known = topology_->device.kernels;
    return std::all_of(schedule.kernels().begin(), schedule.kernels().end(),
                       [&known](const Kernel& kernel) { return known.contains(kernel.name); });
  };
  if (std::all_of(schedules.begin(), schedules.end(), is_known)) return;
  calibrate_kernels(*topology_, *executor_, team(), schedules);
  keep_calibration();
}

/// The file gets what the most ranks showed.
void RealTestbed::keep_calibration() const {
  if (team().rank() == 0 && ranks_ == options_.calibrated_ranks())
    write_text(options_.calibrate, write_topology(*topology_));
}

std::string RealTestbed::prepare(Record& record) {
  const Case& question = record.question;
  record.link = link_;
  if (const Device* device = executor_->device()) record.device_facts = device->facts();
  if (const Refusal refusal = question.workload->unsupported(question.ranks)) return refusal.reason();
  record.blocks = blocks_of(question, link_);
  auto schedules = question.workload->build(question.split(record.blocks));
  record.implementation = implementation_of(schedules);
  record.traffic = traffic_of(question, record.blocks, schedules);
  record.wire = executor_->wire_dtype();
  if (record.traffic)
    record.traffic->sent_bytes = record.traffic->sent_bytes * bytes_of(record.wire) / element_bytes;
  Refusal refusal = lacks_cadence(question.cadence);
  if (!refusal) refusal = executor_->unsupported(schedules);
  // The memory of a device is its executor's to look after.
  if (!refusal && executor_->device() == nullptr) refusal = lacks_memory(schedules);
  refusal = team().first(refusal.reason());
  if (refusal) return refusal.reason();
  if (calibrates()) calibrate_kernels_of(schedules);
  // A file's machine has an f32 wire; one that was just measured has this executor's.
  if (topology_ && (calibrates() || record.wire == Dtype::f32)) predict(record, *topology_);
  executor_->prepare(std::move(schedules));
  return {};
}

void RealTestbed::verify(Record& record) {
  const Case& question = record.question;
  for (int i = 0; i < options_.checks; ++i)
    note(record, question.workload->verify(*executor_, question.split(record.blocks), options_.seed + i));
}

void RealTestbed::time(Record& record, benchmark::State& state) {
  const Case& question = record.question;
  // Inputs that no verified run has seen: what is right after the rounds was computed in them.
  const std::uint64_t seed = options_.seed + options_.checks;
  question.workload->load(*executor_, question.ranks, seed);
  Rounds rounds(*executor_, team(), question.cadence, options_.rounds);
  rounds.warm_up(options_.warmup);
  for (auto _ : state) state.SetIterationTime(rounds.next());
  record.samples = rounds.samples();
  note(record, question.workload->verify_timed(*executor_, question.ranks, seed));
  if (record.wrong > 0) record.samples = {};
}

std::vector<StepTime> RealTestbed::run_traced(const Record&) {
  // Links that rested during the verification take a tenth of a millisecond to wake.
  for (int round = 0; round < options_.warmup; ++round) {
    executor_->synchronise();
    executor_->run();
  }
  executor_->synchronise();
  return gather(executor_->run_traced(), team());
}

}  // namespace

std::unique_ptr<Testbed> real_testbed(const Options& options, const ExecutorEntry& entry, int ranks,
                                      Team team) {
  return std::make_unique<RealTestbed>(options, entry, ranks, std::move(team));
}

}  // namespace baton
