// SPDX-License-Identifier: Apache-2.0
// Executor `mpi`: one process a rank, host memory, non-blocking sends and receives.
//
// The ranks are the first ones of MPI_COMM_WORLD. Needs MPI to be initialised. Message number n from a to b
// carries tag n, so that messages match in the order of recording whatever order they are started in.
#include "collectives/executors/executor.hpp"

#include <mpi.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "collectives/executors/mpi/engine.hpp"
#include "collectives/executors/mpi/error.hpp"

namespace baton {
namespace {

/// A communicator of the first `ranks` processes of the world.
class Communicator {
 public:
  enum class Use { in_order, in_reverse, control };

  Communicator(int ranks, Use use) {
    std::vector<int> members(ranks);
    std::iota(members.begin(), members.end(), 0);
    if (use == Use::in_reverse) std::reverse(members.begin(), members.end());
    MPI_Group world, group;
    mpi(MPI_Comm_group(MPI_COMM_WORLD, &world));
    mpi(MPI_Group_incl(world, ranks, members.data(), &group));
    mpi(MPI_Comm_create_group(MPI_COMM_WORLD, group, static_cast<int>(use), &comm_));
    mpi(MPI_Group_free(&group));
    mpi(MPI_Group_free(&world));
  }
  ~Communicator() { MPI_Comm_free(&comm_); }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  MPI_Comm get() const { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

class MpiExecutor : public Executor {
 public:
  explicit MpiExecutor(int ranks)
      : ranks_(ranks),
        in_order_(ranks, Communicator::Use::in_order),
        in_reverse_(ranks, Communicator::Use::in_reverse),
        control_(ranks, Communicator::Use::control) {
    mpi(MPI_Comm_rank(in_order_.get(), &rank_));
  }

  std::vector<int> local_ranks() const override { return {rank_}; }

  Refusal unsupported(std::span<const Schedule> schedules) const override {
    for (const Schedule& schedule : schedules) {
      for (const NativeCall& native : schedule.natives())
        if (!find_mpi_native(native.name)) return native.name + " is no native of mpi";
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
    engine_ = std::make_unique<MpiEngine>(std::move(schedules[rank_]), in_order_.get(), in_reverse_.get());
  }

  void write(int, const Slice& into, std::span<const float> from) override {
    std::copy(from.begin(), from.end(), engine_->memory().view(into).begin());
  }

  void read(std::span<float> into, int, const Slice& from) const override {
    const auto view = std::as_const(*engine_).memory().view(from);
    std::copy(view.begin(), view.end(), into.begin());
  }

  void synchronise() override;
  double run() override;
  std::vector<StepTime> run_traced() override;
  double one_way_seconds(std::int64_t bytes, int from, int to) override;

 private:
  static constexpr int barrier_tag = 1;
  static constexpr int ping_pong_tag = 2;

  int ranks_;
  int rank_ = 0;
  Communicator in_order_;
  Communicator in_reverse_;
  Communicator control_;  // barriers and ping-pongs, apart from the schedules' messages
  std::unique_ptr<MpiEngine> engine_;
  std::vector<char> outgoing_;  // of the ping-pongs
  std::vector<char> incoming_;
};

/// A dissemination barrier of our own, so that every MPI library starts rounds in the same way: after
/// ceil(log2 P) exchanges with ranks at distance 1, 2, 4, ... each rank has heard of all others.
void MpiExecutor::synchronise() {
  for (int distance = 1; distance < ranks_; distance *= 2) {
    const int to = (rank_ + distance) % ranks_, from = (rank_ - distance + ranks_) % ranks_;
    mpi(MPI_Sendrecv(nullptr, 0, MPI_BYTE, to, barrier_tag, nullptr, 0, MPI_BYTE, from, barrier_tag,
                     control_.get(), MPI_STATUS_IGNORE));
  }
}

double MpiExecutor::run() {
  const double start = MPI_Wtime();
  engine_->run();
  return MPI_Wtime() - start;
}

/// On one host all ranks count from the earliest of their starts; on several, each from its own.
std::vector<StepTime> MpiExecutor::run_traced() {
  double start = monotonic_seconds();
  std::vector<StepTime> times = engine_->run_traced();
  if (ranks_on_this_host(control_.get()) == ranks_)
    mpi(MPI_Allreduce(MPI_IN_PLACE, &start, 1, MPI_DOUBLE, MPI_MIN, control_.get()));
  for (StepTime& time : times) time.start_seconds -= start, time.finish_seconds -= start;
  return times;
}

double MpiExecutor::one_way_seconds(std::int64_t bytes, int from, int to) {
  if (rank_ != from && rank_ != to) return 0;
  const int peer = rank_ == from ? to : from;
  const auto count = static_cast<int>(bytes);
  // Two buffers, as in an exchange: sending back what has just come would time the caches' quarrel over it.
  outgoing_.resize(bytes, 1);
  incoming_.resize(bytes, 1);
  const auto send = [&] {
    mpi(MPI_Send(outgoing_.data(), count, MPI_BYTE, peer, ping_pong_tag, control_.get()));
  };
  const auto recv = [&] {
    mpi(MPI_Recv(incoming_.data(), count, MPI_BYTE, peer, ping_pong_tag, control_.get(), MPI_STATUS_IGNORE));
  };
  const double start = MPI_Wtime();
  if (rank_ == from) send(), recv();
  if (rank_ == to) recv(), send();
  return (MPI_Wtime() - start) / 2;
}

const RegisteredExecutor registered{{
    .name = "mpi",
    .summary = "one process a rank over MPI, host memory",
    .process_a_rank = true,
    .make = [](int ranks) { return std::make_unique<MpiExecutor>(ranks); },
}};

}  // namespace
}  // namespace baton
