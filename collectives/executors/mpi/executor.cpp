// SPDX-License-Identifier: Apache-2.0
// Executor `mpi`: one process a rank, host memory, non-blocking sends and receives.
//
// The ranks are the first processes of MPI_COMM_WORLD; MPI must be initialised. Message n from a to
// b carries tag n, so messages match in the order of recording even if they start in another order.
#include "collectives/executors/executor.hpp"

#include <mpi.h>

#include <limits>
#include <memory>
#include <utility>

#include "collectives/executors/host/engine.hpp"
#include "collectives/executors/launcher.hpp"
#include "collectives/executors/mpi/communicator.hpp"

namespace baton {
namespace {

/// Messages by MPI_Isend and MPI_Irecv, and MPI_Waitsome for those that finish.
class MpiMessages : public Messages {
 public:
  explicit MpiMessages(MPI_Comm comm) : comm_(comm) {}

  void send(int step, std::span<const std::byte> from, int to, int tag) override {
    const auto count = static_cast<int>(from.size() / sizeof(float));
    mpi(MPI_Isend(from.data(), count, MPI_FLOAT, to, tag, comm_, &add(step)));
  }
  void receive(int step, std::span<std::byte> into, int from, int tag) override {
    const auto count = static_cast<int>(into.size() / sizeof(float));
    mpi(MPI_Irecv(into.data(), count, MPI_FLOAT, from, tag, comm_, &add(step)));
  }
  void finish(std::vector<int>& done, bool wait) override;
  int under_way() const override { return steps_.front(); }

 private:
  MPI_Request& add(int step) {
    steps_.push_back(step);
    return requests_.emplace_back(MPI_REQUEST_NULL);
  }

  MPI_Comm comm_;
  std::vector<MPI_Request> requests_;  // of the messages under way
  std::vector<int> steps_;             // their steps
  std::vector<int> completed_;         // scratch for MPI_Waitsome
};

void MpiMessages::finish(std::vector<int>& done, bool wait) {
  completed_.resize(requests_.size());
  int count = 0;
  const auto some = wait ? MPI_Waitsome : MPI_Testsome;
  mpi(some(static_cast<int>(requests_.size()), requests_.data(), &count, completed_.data(),
           MPI_STATUSES_IGNORE));
  if (count == 0) return;
  for (int i = 0; i < count; ++i) done.push_back(steps_[completed_[i]]);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[i];
    steps_[kept++] = steps_[i];
  }
  requests_.resize(kept);
  steps_.resize(kept);
}

/// The greatest tag of a message (MPI_TAG_UB).
int highest_tag() {
  const int* value = nullptr;
  int is_set = 0;
  mpi(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&value), &is_set));
  constexpr int least = 32767;  // that the standard promises
  return is_set != 0 ? *value : least;
}

class MpiExecutor : public EngineExecutor {
 public:
  explicit MpiExecutor(int ranks)
      : EngineExecutor(ranks),
        in_order_(ranks, Communicator::Use::in_order),
        in_reverse_(ranks, Communicator::Use::in_reverse),
        control_(ranks, Communicator::Use::control),
        messages_(in_order_.handle()) {}

  Refusal unsupported(std::span<const Schedule> schedules) const override {
    for (const Schedule& schedule : schedules) {
      for (const NativeCall& native : schedule.natives())
        if (mpi_natives().find(native.name) == nullptr) return native.name + " is no native of mpi";
      for (const Step& step : schedule.steps()) {
        if (!step.is_message() && step.verb != Verb::native) continue;
        if (step.is_message() && step.sequence > highest_tag())
          return "a rank sends another one more messages than this MPI can number";
        for (const auto* side : {&step.writes, &step.reads})
          for (const Slice& slice : *side)
            if (slice.count > std::numeric_limits<int>::max())
              return "a message has more than 2^31-1 elements";
      }
    }
    return unsupported_on_host(schedules);
  }

  void prepare(std::vector<Schedule> schedules) override {
    prepare_engine(std::move(schedules), messages_,
                   [this](const NativeCall& native, const HostOperands& operands) {
                     const Communicator& comm = native.reversed ? in_reverse_ : in_order_;
                     mpi_natives().at(native.name)({comm.handle(), native.blocks, operands});
                   });
  }

  void synchronise() override { control_.barrier(); }
  double one_way_seconds(std::int64_t bytes, int from, int to) override;
  ClockOffset clock_offset(int from, int to) override;

 private:
  Communicator in_order_;
  Communicator in_reverse_;
  Communicator control_;  // for barriers and ping-pongs, apart from the schedules' messages
  MpiMessages messages_;
  std::vector<char> outgoing_;  // of the ping-pongs
  std::vector<char> incoming_;
};

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
    .process_per_rank = true,
    .make = [](int ranks) { return std::make_unique<MpiExecutor>(ranks); },
    .lacks = [](int) -> Refusal {
      if (launcher().bootstrap != "tcp") return {};
      return "these processes were started without MPI; start them with mpirun, or take --executor tcp";
    },
    .runs_native = [](const std::string& name) { return mpi_natives().find(name) != nullptr; },
    .most_threads = 2,
}};

}  // namespace
}  // namespace baton
