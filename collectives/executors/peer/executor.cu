// SPDX-License-Identifier: Apache-2.0
// Executors `peer` and `peer_bf16`: one process a GPU of one host, each rank's schedule as one
// kernel that stores into the memory of the others. With bf16 messages are rounded; every rank
// computes and keeps f32.
//
// Several ranks may share a GPU. Then their kernels wait for one another on it, and none waits for
// ever: without MPS the driver gives each process the GPU in turn, some milliseconds at a time, and
// a kernel that polls gives way like any other; under MPS the waiting kernels of all ranks fit on
// the GPU at once, since each has its share of the multiprocessors. Memory is shared by cudaIpc.
#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "collectives/executors/cuda/executor.cuh"
#include "collectives/executors/cuda/floor.hpp"
#include "collectives/executors/device_names.hpp"
#include "collectives/executors/peer/compiler/compile.hpp"
#include "collectives/executors/peer/compiler/order.hpp"
#include "collectives/executors/peer/rounds.cuh"

namespace baton {
namespace {

/// Ranks that a bit mask of receivers has room for.
constexpr int most_ranks = 64;

class PeerExecutor : public CudaExecutor {
 public:
  PeerExecutor(int ranks, ElementFormat format)
      : CudaExecutor(ranks),
        format_(format),
        lacks_(ranks > most_ranks ? Refusal("has room for 64 ranks") : lacks_peer_access(this->ranks())) {
    if (!lacks_) exchange_ = std::make_unique<PeerExchange>(this->ranks());
  }
  ~PeerExecutor() override { drop_at_end(); }

  Refusal unsupported(std::span<const Schedule> schedules) const override;
  void prepare(std::vector<Schedule> schedules) override;
  double one_way_seconds(std::int64_t bytes, int from, int to) override;
  Dtype wire_dtype() const override { return format_ == ElementFormat::bf16 ? Dtype::bf16 : Dtype::f32; }
  bool streams_messages() const override { return true; }
  std::vector<std::pair<std::string, std::string>> facts() const override;
  std::vector<Reading> readings() const override;

 private:
  std::size_t heap_growth(std::span<const Schedule> schedules) const;
  void prepare_native(const std::vector<Schedule>& schedules);
  void prepare_program(const Schedule& schedule, const PeerProgram& program, unsigned overlap_ctas);
  void keep_fastest(std::size_t candidates, const std::function<void(std::size_t)>& prepare_candidate);

  ElementFormat format_;
  Refusal lacks_;  // peer access
  std::unique_ptr<PeerExchange> exchange_;
  std::optional<double> floor_;
  int candidate_ = -1;  // that was the fastest of those that do the same
};

Refusal PeerExecutor::unsupported(std::span<const Schedule> schedules) const {
  if (lacks_) return lacks_;
  if (only_peer_native(schedules[0]) != nullptr) return lacks_memory(schedules, heap_growth(schedules));
  for (const Schedule& schedule : schedules)
    if (Refusal refusal = lacks_device_body(schedule)) return refusal;
  if (Refusal refusal = unsupported_by_peer(schedules, format_ == ElementFormat::bf16)) return refusal;
  return lacks_memory(schedules, heap_growth(schedules));
}

/// Bytes by which the heap has to grow for the inboxes of these schedules.
std::size_t PeerExecutor::heap_growth(std::span<const Schedule> schedules) const {
  const int elements = packet_elements(format_), ranks = static_cast<int>(schedules.size());
  const PeerNative* native = only_peer_native(schedules[0]);
  if (native != nullptr && native->candidates) {
    std::size_t growth = 0;
    for (const auto& candidate : native->candidates(schedules))
      growth = std::max(growth, heap_growth(candidate));
    return growth;
  }
  std::int64_t packets = 0;
  if (native != nullptr) {
    for (const Schedule& schedule : schedules)
      packets = std::max(packets, native->packets(schedule.steps()[0], ranks, elements));
  } else {
    packets = PeerInboxes(schedules, elements).packets();
  }
  const std::size_t held = exchange_->heap().bytes(), needed = allocated_heap(ranks, packets);
  return needed > held ? needed - held : 0;
}

void PeerExecutor::prepare(std::vector<Schedule> schedules) {
  candidate_ = -1;
  const PeerNative* native = only_peer_native(schedules[0]);
  if (native != nullptr && native->candidates) {
    const auto candidates = native->candidates(schedules);
    return keep_fastest(candidates.size(), [&](std::size_t i) { prepare(candidates[i]); });
  }
  if (native != nullptr) return prepare_native(schedules);
  const PeerProgramOptions options{packet_elements(format_)};
  const Schedule& own = schedules[ranks().rank()];
  const PeerProgram program = compile_peer_programs(schedules, options)[ranks().rank()];
  // Few blocks of an exchange leave the multiprocessors to the compute steps that it overlaps; many
  // end sooner.
  constexpr std::array<unsigned, 3> ctas{4, 16, std::numeric_limits<unsigned>::max()};
  if (!program.overlaps_compute) return prepare_program(own, program, ctas[0]);
  keep_fastest(ctas.size(), [&](std::size_t i) { prepare_program(own, program, ctas[i]); });
}

void PeerExecutor::prepare_native(const std::vector<Schedule>& schedules) {
  drop_prepared();
  const int rank = ranks().rank();
  auto memory = std::make_unique<DeviceMemory>(schedules[rank]);
  auto round = std::make_unique<NativeRound>(schedules, rank, *memory, *exchange_, format_);
  take_prepared(std::move(memory), std::move(round));
}

void PeerExecutor::prepare_program(const Schedule& schedule, const PeerProgram& program,
                                   unsigned overlap_ctas) {
  drop_prepared();
  auto memory = std::make_unique<DeviceMemory>(schedule);
  auto round = std::make_unique<ScheduleRound>(schedule, program, *memory, *exchange_, format_, overlap_ctas);
  take_prepared(std::move(memory), std::move(round));
}

/// Prepares candidates that do the same, one by one, and keeps the fastest, by the median of 21
/// rounds over zeros, each that of its slowest rank.
void PeerExecutor::keep_fastest(std::size_t candidates,
                                const std::function<void(std::size_t)>& prepare_candidate) {
  std::vector<double> medians;
  for (std::size_t i = 0; i < candidates; ++i) {
    prepare_candidate(i);
    std::vector<double> seconds(21);
    for (double& round : seconds) {
      const auto all = ranks().gather(run());
      round = *std::max_element(all.begin(), all.end());
    }
    medians.push_back(median(std::move(seconds)));
  }
  const auto fastest = std::min_element(medians.begin(), medians.end()) - medians.begin();
  prepare_candidate(static_cast<std::size_t>(fastest));
  candidate_ = static_cast<int>(fastest);
}

/// Seconds of a message from a common start to its arrival, less those of an empty round; unknown
/// where that is less than nothing. Prepares a case of its own.
double PeerExecutor::one_way_seconds(std::int64_t bytes, int from, int to) {
  if (lacks_) return 0;
  if (!floor_) floor_ = floor_seconds();
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < ranks().size(); ++rank) {
    Schedule& schedule = schedules.emplace_back(rank, ranks().size());
    const Slice message = schedule.scratch("message", (bytes + element_bytes - 1) / element_bytes);
    const Slice arrived = schedule.output("arrived", message.count, false);
    if (rank == from) schedule.send(to, message);
    if (rank == to) schedule.recv(arrived, from);
  }
  prepare(std::move(schedules));
  const double seconds = run();
  return ranks().rank() == to ? seconds_above_floor(seconds, *floor_) : 0;
}

std::vector<std::pair<std::string, std::string>> PeerExecutor::facts() const {
  auto all = CudaExecutor::facts();
  all.emplace_back("peer_memory", exchange_ ? exchange_->heap().description() : lacks_.reason());
  return all;
}

/// The readings of the GPU, and the candidate that was prepared as the fastest, since launches of
/// one case may choose different ones. 0, 1 and 2 stand for 4 blocks, 16 and all, or for a native's
/// candidates in their order, and -1 for a program without a choice.
std::vector<Reading> PeerExecutor::readings() const {
  auto all = CudaExecutor::readings();
  all.push_back({"fastest_candidate", static_cast<double>(candidate_)});
  return all;
}

RegisteredExecutor registered(const char* name, const char* summary, ElementFormat format) {
  return RegisteredExecutor{{
      .name = name,
      .summary = summary,
      .process_per_rank = true,
      .make = [=](int ranks) { return std::make_unique<PeerExecutor>(ranks, format); },
      .lacks = lacks_gpus,
      .tensors = Dtype::bf16,
      .runs_native = [](const std::string& name) { return peer_natives().find(name) != nullptr; },
      .wire = format == ElementFormat::bf16 ? Dtype::bf16 : Dtype::f32,
      .shares_gpus = true,
  }};
}

const RegisteredExecutor f32 =
    registered(peer_name, "one kernel a round that stores into the other GPUs' memory", ElementFormat::f32);
const RegisteredExecutor bf16 =
    registered(peer_bf16_name, "peer with bf16 on the wire: half the bytes, rounded", ElementFormat::bf16);

}  // namespace
}  // namespace baton
