// SPDX-License-Identifier: Apache-2.0
// Executor `mpi`: one process a rank, host memory, non-blocking sends and receives.
//
// The ranks are the first processes of MPI_COMM_WORLD; MPI must be initialised. Message n from a to
// b carries tag n, so messages match in the order of recording even if they start in another order.
#include "collectives/executors/executor.hpp"

#include <mpi.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "collectives/executors/mpi/communicator.hpp"
#include "collectives/executors/mpi/engine.hpp"

namespace baton {
namespace {

class MpiExecutor : public Executor {
 public:
  explicit MpiExecutor(int ranks)
      : in_order_(ranks, Communicator::Use::in_order),
        in_reverse_(ranks, Communicator::Use::in_reverse),
        control_(ranks, Communicator::Use::control),
        ranks_on_host_(control_.host().size) {}

  std::vector<int> local_ranks() const override { return {in_order_.rank()}; }

  Refusal unsupported(std::span<const Schedule> schedules) const override {
    for (const Schedule& schedule : schedules) {
      for (const NativeCall& native : schedule.natives())
        if (mpi_natives().find(native.name) == nullptr) return native.name + " is no native of mpi";
      for (const Step& step : schedule.steps()) {
        if (!step.is_message() && step.verb != Verb::native) continue;
        for (const auto* side : {&step.writes, &step.reads})
          for (const Slice& slice : *side)
            if (slice.count > std::numeric_limits<int>::max())
              return "a message has more than 2^31-1 elements";
      }
    }
    return unsupported_on_host(schedules);
  }

  void prepare(std::vector<Schedule> schedules) override {
    engine_.reset();  // its memory first: two cases need not fit at once
    engine_ = std::make_unique<MpiEngine>(std::move(schedules[in_order_.rank()]), in_order_.handle(),
                                          in_reverse_.handle(), ranks_on_host_);
  }

  void write(int, const Slice& into, std::span<const float> from) override {
    std::copy(from.begin(), from.end(), engine_->memory().view(into).begin());
  }

  void read(std::span<float> into, int, const Slice& from) const override {
    const auto view = std::as_const(*engine_).memory().view(from);
    std::copy(view.begin(), view.end(), into.begin());
  }

  void synchronise() override { control_.barrier(); }
  double run() override;
  std::vector<StepTime> run_traced() override;
  double one_way_seconds(std::int64_t bytes, int from, int to) override;
  ClockOffset clock_offset(int from, int to) override;

 private:
  Communicator in_order_;
  Communicator in_reverse_;
  Communicator control_;  // for barriers and ping-pongs, apart from the schedules' messages
  int ranks_on_host_;
  std::unique_ptr<MpiEngine> engine_;
  std::vector<char> outgoing_;  // of the ping-pongs
  std::vector<char> incoming_;
};

double MpiExecutor::run() {
  const double start = MPI_Wtime();
  engine_->run();
  return MPI_Wtime() - start;
}

/// On one host all ranks count from the earliest start; on several, each rank counts from its own.
std::vector<StepTime> MpiExecutor::run_traced() {
  double start = monotonic_seconds();
  std::vector<StepTime> times = engine_->run_traced();
  if (ranks_on_host_ == control_.size()) start = control_.min(start);
  for (StepTime& time : times) time.start_seconds -= start, time.finish_seconds -= start;
  return times;
}

double MpiExecutor::one_way_seconds(std::int64_t bytes, int from, int to) {
  constexpr int ping_pong_tag = 2;
  const int rank = control_.rank();
  if (rank != from && rank != to) return 0;
  const int peer = rank == from ? to : from;
  const auto count = static_cast<int>(bytes);
  // Two buffers are used as in an exchange. With one buffer the time would include cache lines that
  // move back and forth.
  outgoing_.resize(bytes, 1);
  incoming_.resize(bytes, 1);
  const auto send = [&] {
    mpi(MPI_Send(outgoing_.data(), count, MPI_BYTE, peer, ping_pong_tag, control_.handle()));
  };
  const auto recv = [&] {
    mpi(MPI_Recv(incoming_.data(), count, MPI_BYTE, peer, ping_pong_tag, control_.handle(),
                 MPI_STATUS_IGNORE));
  };
  const double start = MPI_Wtime();
  if (rank == from) send(), recv();
  if (rank == to) recv(), send();
  return (MPI_Wtime() - start) / 2;
}

ClockOffset MpiExecutor::clock_offset(int from, int to) {
  constexpr int clock_tag = 3;
  const int rank = control_.rank();
  const MPI_Comm comm = control_.handle();
  double there = 0;
  const double sent = monotonic_seconds();
  if (rank == from) {
    mpi(MPI_Send(nullptr, 0, MPI_DOUBLE, to, clock_tag, comm));
    mpi(MPI_Recv(&there, 1, MPI_DOUBLE, to, clock_tag, comm, MPI_STATUS_IGNORE));
    const double received = monotonic_seconds();
    return {there - (sent + received) / 2, (received - sent) / 2};
  }
  if (rank == to) {
    mpi(MPI_Recv(nullptr, 0, MPI_DOUBLE, from, clock_tag, comm, MPI_STATUS_IGNORE));
    there = monotonic_seconds();
    mpi(MPI_Send(&there, 1, MPI_DOUBLE, from, clock_tag, comm));
  }
  return {};
}

const RegisteredExecutor registered{{
    .name = "mpi",
    .summary = "one process a rank over MPI, host memory",
    .process_a_rank = true,
    .make = [](int ranks) { return std::make_unique<MpiExecutor>(ranks); },
    .runs_native = [](const std::string& name) { return mpi_natives().find(name) != nullptr; },
}};

}  // namespace
}  // namespace baton
