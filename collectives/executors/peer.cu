// SPDX-License-Identifier: Apache-2.0
// Executors `peer`, `peer_fenced` and `peer_bf16`: one process a GPU of one host, each rank's schedule as one kernel that
// stores into the memory of the others.
//
// What a wire of bf16 rounds is what crosses a link; every rank computes and keeps f32.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "collectives/executors/cuda_error.cuh"
#include "collectives/executors/cuda_executor.cuh"
#include "collectives/executors/cuda_gpu.cuh"
#include "collectives/executors/peer_exchange.cuh"
#include "collectives/executors/peer_native.cuh"
#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

/// Ranks that a bit mask of receivers has room for.
constexpr int most_ranks = 64;

/// The native that stands for all of a rank's schedule, or a null pointer.
const Step* only_native(const Schedule& schedule) {
  const bool is_one = schedule.steps().size() == 1 && schedule.steps()[0].verb == Verb::native;
  return is_one ? &schedule.steps()[0] : nullptr;
}

unsigned multiprocessors(int gpu) {
  int count = 0;
  cuda(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, gpu));
  return static_cast<unsigned>(count);
}

/// One prepared case.
struct PeerCase {
  PeerCase(Schedule mine) : schedule(std::move(mine)), memory(schedule) {}

  Schedule schedule;
  DeviceMemory memory;
  std::unique_ptr<PeerKernel> kernel;  // where the schedule is run step by step
  const PeerNative* native = nullptr;  // where one native stands for it
  DeviceOperands operands;             // the native's
  std::vector<std::byte*> inboxes;
};

class PeerExecutor : public CudaExecutor {
 public:
  PeerExecutor(int ranks, PeerWire wire, PeerTransport transport)
      : CudaExecutor(ranks),
        wire_(wire),
        transport_(transport),
        lacks_(ranks > most_ranks ? "has room for 64 ranks" : lacks_peer_access(this->ranks())) {
    if (lacks_.empty()) exchange_ = std::make_unique<PeerExchange>(this->ranks());
  }
  ~PeerExecutor() override { forget_recording(); }

  std::string supports(std::span<const Schedule> schedules) const override;
  void prepare(std::vector<Schedule> schedules) override;
  double one_way_seconds(std::int64_t bytes, int from, int to) override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

 protected:
  void enqueue_round() override;
  DeviceMemory& memory() override { return case_->memory; }
  const DeviceMemory& memory() const override { return case_->memory; }
  void throw_if_failed() override;

 private:
  void prepare_program(std::span<const Schedule> schedules);
  void prepare_native(std::span<const Schedule> schedules, const Step& step);
  const LinkLimits& link();

  PeerWire wire_;
  PeerTransport transport_;
  std::string lacks_;  // why there are no peers
  std::unique_ptr<PeerExchange> exchange_;
  std::unique_ptr<PeerCase> case_;
  std::optional<LinkLimits> link_;
  std::optional<double> floor_;
};

std::string PeerExecutor::supports(std::span<const Schedule> schedules) const {
  if (!lacks_.empty()) return lacks_;
  const Step* step = only_native(schedules[0]);
  const bool is_native =
      step != nullptr && find_peer_native(schedules[0].natives()[step->body].name) != nullptr;
  if (is_native && transport_ == PeerTransport::fenced) return "natives have no fenced form";
  const std::string reason = is_native ? std::string{} : peer_program_refuses(schedules);
  return reason.empty() ? lacks_device_memory(schedules) : reason;
}

void PeerExecutor::prepare(std::vector<Schedule> schedules) {
  forget_recording();
  case_.reset();  // its memory first: two cases need not fit at once
  const Step* step = only_native(schedules[0]);
  if (step != nullptr) {
    const PeerNative& native = *find_peer_native(schedules[0].natives()[step->body].name);
    if (native.instead) return prepare(native.instead(schedules, link()));
  }
  case_ = std::make_unique<PeerCase>(schedules[ranks().rank()]);
  if (step != nullptr)
    prepare_native(schedules, *only_native(case_->schedule));
  else
    prepare_program(schedules);
  warm_up();
}

void PeerExecutor::prepare_program(std::span<const Schedule> schedules) {
  const PeerProgramOptions options{packet_elements(wire_), transport_ == PeerTransport::packets};
  const PeerProgram program = compile_peer_program(schedules, ranks().rank(), options);
  const unsigned ctas = multiprocessors(gpu());
  std::int64_t widest = 0;
  for (std::int64_t packets : ranks().gather(program.widest())) widest = std::max(widest, packets);
  // A small case runs on all multiprocessors too, in smaller blocks.
  const auto wanted = static_cast<unsigned>((widest + ctas - 1) / ctas);
  const PeerLaunch launch{wire_, transport_, std::clamp((wanted + 31) / 32 * 32, 64u, 512u)};
  exchange_->reset(program.inbox_packets, program.messages, ctas);
  case_->kernel = std::make_unique<PeerKernel>(program, case_->memory, exchange_->route(),
                                               exchange_->heap().all(), exchange_->layout(), launch);
}

void PeerExecutor::prepare_native(std::span<const Schedule> schedules, const Step& step) {
  case_->native = find_peer_native(case_->schedule.natives()[step.body].name);
  case_->operands = case_->memory.operands(step);
  std::int64_t packets = 0;
  for (const Schedule& schedule : schedules)
    packets = std::max(
        packets, case_->native->packets(*only_native(schedule), ranks().size(), packet_elements(wire_)));
  exchange_->reset(packets, 0, case_->native->ctas(multiprocessors(gpu())));
  for (std::byte* heap : exchange_->heap().all()) case_->inboxes.push_back(heap + exchange_->layout().inbox);
}

void PeerExecutor::enqueue_round() {
  if (case_->kernel) return case_->kernel->enqueue(main_stream());
  const NativeCall& call = case_->schedule.natives()[0];
  const int rank = ranks().rank();
  case_->native->body({.stream = main_stream(),
                       .route = exchange_->route(),
                       .inboxes = case_->inboxes,
                       .wire = wire_,
                       .place = call.reversed ? ranks().size() - 1 - rank : rank,
                       .reversed = call.reversed,
                       .blocks = call.blocks,
                       .operands = case_->operands});
}

void PeerExecutor::throw_if_failed() {
  if (!case_) return;
  const std::string fault = exchange_->fault(case_->schedule);
  if (!fault.empty()) throw SystemError(fault);
}

/// A message from a common start to its arrival, what an empty round takes taken off. Forgets what was prepared.
double PeerExecutor::one_way_seconds(std::int64_t bytes, int from, int to) {
  if (!lacks_.empty()) return 0;
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
  const double seconds = run() - *floor_;
  return ranks().rank() == to ? std::max(seconds, 0.0) : 0;
}

const LinkLimits& PeerExecutor::link() {
  if (!link_) link_ = measure_link_limits(ranks(), main_stream(), floor_seconds());
  return *link_;
}

std::vector<std::pair<std::string, std::string>> PeerExecutor::facts() const {
  auto all = CudaExecutor::facts();
  all.emplace_back("peer_memory", exchange_ ? exchange_->heap().description() : lacks_);
  return all;
}

RegisteredExecutor add(const char* name, const char* summary, PeerWire wire, PeerTransport transport) {
  return RegisteredExecutor{{
      .name = name,
      .summary = summary,
      .process_a_rank = true,
      .make = [=](int ranks) { return std::make_unique<PeerExecutor>(ranks, wire, transport); },
      .lacks = lacks_gpus,
  }};
}

const RegisteredExecutor packets = add("peer", "one kernel a round that stores into the other GPUs' memory",
                                       PeerWire::f32, PeerTransport::packets);
const RegisteredExecutor fenced = add("peer_fenced", "peer with fences and flags: slower, formally simple",
                                      PeerWire::f32, PeerTransport::fenced);
const RegisteredExecutor bf16 = add("peer_bf16", "peer with bf16 on the wire: half the bytes, rounded",
                                    PeerWire::bf16, PeerTransport::packets);

}  // namespace
}  // namespace baton
