// SPDX-License-Identifier: Apache-2.0
// Executor `nccl`: one process a GPU, messages as grouped ncclSend and ncclRecv, local steps as
// kernels.
//
// The ranks are the first processes of the run, whose team carries NCCL's identifier and nothing
// else. Groups are cut by the rule that `check` proves, or finer where NCCL needs it (plan.hpp).
// Buffers lie in memory of ncclMemAlloc, as those of nccl-tests do: NCCL registers it by itself
// where a graph is recorded. They lie in a symmetric window if a native asks for one.
#include <nccl.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "collectives/executors/cuda/executor.cuh"
#include "collectives/executors/cuda/nccl_library.cuh"
#include "collectives/executors/device_names.hpp"
#include "collectives/executors/nccl/plan.hpp"
#include "collectives/executors/nccl/round.cuh"
#include "collectives/executors/routine.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

/// The memory that the most demanding native of `schedule` needs.
NcclMemory memory_for(const Schedule& schedule) {
  NcclMemory most = NcclMemory::plain;
  for (const NativeCall& native : schedule.natives())
    if (!has_routine(schedule)) most = std::max(most, nccl_natives().at(native.name).memory);
  return most;
}

/// True if a native of `schedule` is a collective of NCCL rather than a group of messages.
bool calls_collectives(const Schedule& schedule) {
  const auto& natives = schedule.natives();
  return !has_routine(schedule) && std::any_of(natives.begin(), natives.end(), [](const NativeCall& native) {
    return !nccl_natives().at(native.name).is_of_messages;
  });
}

/// A communicator, and the window with the buffers of the last schedule that needed one.
struct Connection {
  Connection(const CudaRanks& ranks, int cta_policy) : comm(ranks, cta_policy) {}

  NcclComm comm;
  std::unique_ptr<NcclWindow> window;
};

class NcclExecutor : public CudaExecutor {
 public:
  explicit NcclExecutor(int ranks) : CudaExecutor(ranks) {
    messages_ = std::make_unique<Connection>(this->ranks(), NCCL_CTA_POLICY_DEFAULT);
  }
  ~NcclExecutor() override { drop_at_end(); }

  Refusal unsupported(std::span<const Schedule> schedules) const override;
  void prepare(std::vector<Schedule> schedules) override;
  void write(int rank, const Slice& into, std::span<const float> from) override;
  void scatter(int rank, const Slice& into, std::int64_t stride, float value) override;
  void read(std::span<float> into, int rank, const Slice& from) const override;
  std::uint64_t checksum(int rank, std::span<const Slice> slices) const override;
  void synchronise() override;
  double run() override;
  double one_way_seconds(std::int64_t bytes, int from, int to) override;
  bool groups_messages() const override { return true; }
  std::vector<std::pair<std::string, std::string>> facts() const override;

 protected:
  /// Bytes of the arena or the window that `prepare` reuses or frees for `schedule`.
  std::size_t held_bytes(const Schedule& schedule) const override;

 private:
  void prepare_routine(const Schedule& schedule);
  void hand_over() const;
  Connection& connection_of_natives(NcclMemory memory);
  void* arena_for(const Schedule& schedule);
  void* window_of(Connection& connection, const std::vector<Schedule>& schedules);
  std::string try_window() const;

  // NCCL's collectives have communicators of their own, made when one first asks, because NCCL
  // keeps by communicator the memory that it registered while it recorded. Before 2.29.2, a
  // collective that is recorded in memory still registered for an ncclRecv takes its peers'
  // addresses of that memory for known and uses zeros: https://github.com/NVIDIA/nccl/issues/1859
  std::unique_ptr<Connection> messages_;
  std::unique_ptr<Connection> natives_;
  std::unique_ptr<Connection> copy_engines_;
  RoutineTurns turns_;
  mutable std::optional<std::string> lacks_windows_;  // set when a native first asks for one
  std::unique_ptr<NcclBytes> arena_;                  // of buffers that lie in no window
  Stopwatch ping_pong_;
  std::unique_ptr<DeviceBytes> ping_pong_buffer_;  // the message that goes, then the one that comes
};

Refusal NcclExecutor::unsupported(std::span<const Schedule> schedules) const {
  Refusal refusal;  // of this rank alone: below, all ranks agree
  for (const Schedule& schedule : schedules) {
    for (const NativeCall& native : schedule.natives())
      if (nccl_natives().find(native.name) == nullptr && !has_routine(schedule))
        return native.name + " is no native of nccl";
    if (!refusal) refusal = lacks_device_body(schedule);
  }
  if (!refusal) refusal = lacks_memory(schedules);
  if (!refusal && nccl_groups(schedules).empty())
    refusal = "messages of one rank to another would have to overtake one another";
  if (memory_for(schedules[0]) == NcclMemory::plain) return refusal;
  refusal = ranks().first(refusal.reason());  // all try a window, or none
  if (refusal) return refusal;
  if (!lacks_windows_) lacks_windows_ = ranks().first(try_window());
  return *lacks_windows_;
}

std::size_t NcclExecutor::held_bytes(const Schedule& schedule) const {
  const NcclMemory need = memory_for(schedule);
  if (need == NcclMemory::plain) return arena_ ? arena_->bytes() : 0;
  const auto& over = need == NcclMemory::window ? natives_ : copy_engines_;
  return over && over->window ? over->window->bytes() : 0;
}

/// Makes a small window and tests it. Returns the reason of a failure, or an empty string.
/// Collective.
std::string NcclExecutor::try_window() const {
  Refusal refusal = ranks().first(lacks_matching_nccl().reason());
  if (!refusal) refusal = lacks_peer_access(ranks());
  if (refusal) return refusal.reason();
  std::unique_ptr<NcclWindow> window;  // outlives the exception, while which no memory is freed
  try {
    window = std::make_unique<NcclWindow>(ranks(), messages_->comm, 1 << 16);
  } catch (const SystemError& error) {
    return error.what();
  }
  return window->self_test();
}

void NcclExecutor::prepare(std::vector<Schedule> schedules) {
  turns_ = {};
  drop_prepared();
  if (has_routine(schedules[ranks().rank()])) return prepare_routine(schedules[ranks().rank()]);
  const NcclMemory need = memory_for(schedules[0]);
  Connection& natives = std::any_of(schedules.begin(), schedules.end(), calls_collectives)
                            ? connection_of_natives(need)
                            : *messages_;
  void* arena =
      need == NcclMemory::plain ? arena_for(schedules[ranks().rank()]) : window_of(natives, schedules);
  const std::vector<int> groups = nccl_groups(schedules)[ranks().rank()];
  Schedule& mine = schedules[ranks().rank()];
  auto memory = std::make_unique<DeviceMemory>(mine, arena);
  auto round = std::make_unique<NcclRound>(std::move(mine), groups, *memory, messages_->comm.get(),
                                           natives.comm.get());
  take_prepared(std::move(memory), std::move(round));
}

/// A routine's messages are its own, so it needs no communicator.
void NcclExecutor::prepare_routine(const Schedule& schedule) {
  auto memory = std::make_unique<DeviceMemory>(schedule, arena_for(schedule));
  RoutineCall call = routine_call(schedule, [&](const Slice& slice) { return memory->at(slice); });
  call.stream = main_stream();
  cuda(cudaGetDevice(&call.device));
  turns_ = RoutineTurns(schedule, call);
  auto round = std::make_unique<NcclRound>(schedule, *memory, turns_);
  take_prepared(std::move(memory), std::move(round));
}

/// Lets the routine hand over the results of its last round, and waits.
void NcclExecutor::hand_over() const {
  if (!turns_) return;
  turns_.before_read();
  cuda(cudaStreamSynchronize(main_stream()));
}

void NcclExecutor::write(int rank, const Slice& into, std::span<const float> from) {
  hand_over();
  turns_.before_write(into);
  CudaExecutor::write(rank, into, from);
}

void NcclExecutor::scatter(int rank, const Slice& into, std::int64_t stride, float value) {
  hand_over();
  turns_.before_write(into);
  CudaExecutor::scatter(rank, into, stride, value);
}

void NcclExecutor::read(std::span<float> into, int rank, const Slice& from) const {
  hand_over();
  CudaExecutor::read(into, rank, from);
}

std::uint64_t NcclExecutor::checksum(int rank, std::span<const Slice> slices) const {
  hand_over();
  return CudaExecutor::checksum(rank, slices);
}

void NcclExecutor::synchronise() {
  if (turns_.must_prepare()) {
    turns_.prepare();
    cuda(cudaStreamSynchronize(main_stream()));
  }
  CudaExecutor::synchronise();
}

double NcclExecutor::run() {
  const double seconds = CudaExecutor::run();
  if (!turns_) return seconds;
  constexpr double most = 1e-4;  // seconds of an idle device's answer, with a margin
  const double ended = monotonic_seconds();
  cuda(cudaDeviceSynchronize());
  if (const double late = monotonic_seconds() - ended; late > most) {
    const auto microseconds = static_cast<std::int64_t>(late * 1e6);
    throw SystemError("its work goes on for " + std::to_string(microseconds) +
                      " us behind the stream of the call: queue it on that stream");
  }
  return seconds;
}

Connection& NcclExecutor::connection_of_natives(NcclMemory memory) {
  const bool by_copy_engines = memory == NcclMemory::copy_engine_window;
  std::unique_ptr<Connection>& natives = by_copy_engines ? copy_engines_ : natives_;
  const int cta_policy = by_copy_engines ? NCCL_CTA_POLICY_ZERO : NCCL_CTA_POLICY_DEFAULT;
  if (!natives) natives = std::make_unique<Connection>(ranks(), cta_policy);
  return *natives;
}

/// Plain memory large enough for this rank's buffers; it only grows.
void* NcclExecutor::arena_for(const Schedule& schedule) {
  const std::size_t bytes = std::max<std::size_t>(DeviceMemory::bytes(schedule), 1);
  if (!arena_ || arena_->bytes() < bytes) {
    arena_.reset();  // first: both need not fit at once
    arena_ = std::make_unique<NcclBytes>(bytes);
  }
  return arena_->get();
}

/// A window large enough for every rank's buffers; it only grows, since NCCL's registrations are
/// slow.
void* NcclExecutor::window_of(Connection& over, const std::vector<Schedule>& schedules) {
  std::size_t bytes = 4096;
  for (const Schedule& schedule : schedules) bytes = std::max(bytes, DeviceMemory::bytes(schedule));
  if (!over.window || over.window->bytes() < bytes) {
    over.window.reset();
    over.window = std::make_unique<NcclWindow>(ranks(), over.comm, bytes);
  }
  return over.window->own();
}

/// Seconds of a message one way: half a ping-pong of ncclSend and ncclRecv.
double NcclExecutor::one_way_seconds(std::int64_t bytes, int from, int to) {
  const int mine = ranks().rank();
  if (mine != from && mine != to) return 0;
  const auto size = static_cast<std::size_t>(bytes);
  if (!ping_pong_buffer_ || ping_pong_buffer_->bytes() < 2 * size)
    ping_pong_buffer_ = std::make_unique<DeviceBytes>(2 * size);
  const int other = mine == from ? to : from;
  const auto send = [&] {
    nccl(ncclSend(ping_pong_buffer_->get(), size, ncclChar, other, messages_->comm.get(), main_stream()));
  };
  const auto recv = [&] {
    nccl(ncclRecv(ping_pong_buffer_->get() + size, size, ncclChar, other, messages_->comm.get(),
                  main_stream()));
  };
  return ping_pong_.time(main_stream(), [&] { mine == from ? (send(), recv()) : (recv(), send()); }) / 2;
}

std::vector<std::pair<std::string, std::string>> NcclExecutor::facts() const {
  auto all = CudaExecutor::facts();
  all.emplace_back("nccl", nccl_version());
  return all;
}

Refusal lacks_a_gpu_each(int ranks) {
  if (executor_choices().share_gpus())
    return "NCCL takes one rank a GPU, and --ranks-per-gpu asks for more: take --executor peer";
  return lacks_gpus(ranks);
}

const RegisteredExecutor registered{{
    .name = nccl_name,
    .summary = "one process a GPU, NCCL's send and receive between them",
    .process_per_rank = true,
    .make = [](int ranks) { return std::make_unique<NcclExecutor>(ranks); },
    .lacks = lacks_a_gpu_each,
    .tensors = Dtype::bf16,
    .runs_native =
        [](const std::string& name) {
          return nccl_natives().find(name) != nullptr || routines().find(name) != nullptr;
        },
}};

}  // namespace
}  // namespace baton
