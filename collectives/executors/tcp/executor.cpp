// SPDX-License-Identifier: Apache-2.0
// Executor `tcp`: one process a rank, host memory, messages over TCP connections between the ranks.
// It needs no MPI, whatever launched the processes: only their team, to exchange addresses.
#include "collectives/executors/executor.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectives/executors/host/engine.hpp"
#include "collectives/executors/routine.hpp"
#include "collectives/executors/tcp/mesh.hpp"
#include "collectives/executors/transport.hpp"

namespace baton::tcp {
namespace {

/// Messages of a routine over the connections of a schedule's. A routine is the only step of its
/// schedule, so that its messages can be numbered in the order of its calls.
class MessagesOfRoutine : public RoutineMessages {
 public:
  explicit MessagesOfRoutine(Mesh& mesh) : mesh_(mesh) {}

  /// Numbers messages anew, of `ranks` ranks.
  void begin(int ranks, bool reversed) {
    is_reversed_ = reversed;
    sent_.assign(ranks, 0);
    received_.assign(ranks, 0);
  }
  void send(std::span<const float> from, int to) override {
    mesh_.send(0, std::as_bytes(from), home(to), sent_.at(to)++);
    await();
  }
  void receive(std::span<float> into, int from) override {
    mesh_.receive(0, std::as_writable_bytes(into), home(from), received_.at(from)++);
    await();
  }

 private:
  int home(int place) const { return is_reversed_ ? static_cast<int>(sent_.size()) - 1 - place : place; }
  void await() {
    std::vector<int> done;
    mesh_.finish(done, true);
  }

  Mesh& mesh_;
  bool is_reversed_ = false;
  std::vector<int> sent_;  // messages to each place, and from it
  std::vector<int> received_;
};

class TcpExecutor : public EngineExecutor {
 public:
  explicit TcpExecutor(int ranks) : EngineExecutor(ranks), mesh_(team()), messages_(mesh_) {}

  Refusal unsupported(std::span<const Schedule> schedules) const override {
    for (const Schedule& schedule : schedules)
      for (const NativeCall& native : schedule.natives()) {
        if (routines().find(native.name) == nullptr) return native.name + " is no native of tcp";
        if (schedule.steps().size() > 1) return native.name + " must be the only step, as a native of tcp";
      }
    return unsupported_on_host(schedules);
  }

  void prepare(std::vector<Schedule> schedules) override {
    turns_ = {};
    prepare_engine(std::move(schedules), mesh_, [this](const NativeCall& native, const HostOperands&) {
      messages_.begin(team().size(), native.reversed);
      turns_.run();
    });
    if (!has_routine(engine().schedule())) return;
    RoutineCall call = routine_call(
        engine().schedule(), [this](const Slice& slice) { return engine().memory().view(slice).data(); });
    call.messages = &messages_;
    turns_ = RoutineTurns(engine().schedule(), call);
  }
  void write(int rank, const Slice& into, std::span<const float> from) override {
    turns_.before_write(into);
    EngineExecutor::write(rank, into, from);
  }
  void read(std::span<float> into, int rank, const Slice& from) const override {
    turns_.before_read();
    EngineExecutor::read(into, rank, from);
  }
  void synchronise() override {
    if (turns_.must_prepare()) prepare_routine();
    mesh_.barrier();
  }
  double one_way_seconds(std::int64_t bytes, int from, int to) override;
  ClockOffset clock_offset(int from, int to) override;

 private:
  /// Lets the routine get ready for inputs that are new. Its messages are a round of their own.
  void prepare_routine() {
    mesh_.begin_round();
    messages_.begin(team().size(), engine().schedule().natives()[0].reversed);
    turns_.prepare();
  }

  Mesh mesh_;
  MessagesOfRoutine messages_;
  RoutineTurns turns_;
  std::vector<std::byte> outgoing_;  // of the ping-pongs
  std::vector<std::byte> incoming_;
};

double TcpExecutor::one_way_seconds(std::int64_t bytes, int from, int to) {
  constexpr int tag = 0, sends = 0, receives = 1;
  mesh_.begin_round();
  const int rank = team().rank();
  if (rank != from && rank != to) return 0;
  const int peer = rank == from ? to : from;
  // Two buffers are used as in an exchange. With one buffer the time would include cache lines that
  // move back and forth.
  outgoing_.resize(bytes);
  incoming_.resize(bytes);
  std::vector<int> done;
  const auto finish = [&](std::size_t messages) {
    while (done.size() < messages) mesh_.finish(done, true);
  };
  const double start = monotonic_seconds();
  mesh_.receive(receives, incoming_, peer, tag);
  if (rank == to) finish(1);
  mesh_.send(sends, outgoing_, peer, tag);
  finish(2);
  return (monotonic_seconds() - start) / 2;
}

ClockOffset TcpExecutor::clock_offset(int from, int to) {
  constexpr int tag = 0, step = 0;
  mesh_.begin_round();
  const int rank = team().rank();
  if (rank != from && rank != to) return {};
  const int peer = rank == from ? to : from;
  std::array<double, 1> clock{};
  const auto message = std::as_writable_bytes(std::span(clock));
  const auto finish = [&] {
    for (std::vector<int> done; done.empty();) mesh_.finish(done, true);
  };
  const auto send = [&] { mesh_.send(step, message, peer, tag), finish(); };
  const auto receive = [&] { mesh_.receive(step, message, peer, tag), finish(); };
  const double sent = monotonic_seconds();
  if (rank == from) send();
  receive();
  const double received = monotonic_seconds();
  if (rank == from) return {clock[0] - (sent + received) / 2, (received - sent) / 2};
  clock[0] = received;
  send();
  return {};
}

const RegisteredExecutor registered{{
    .name = "tcp",
    .summary = "one process a rank over TCP connections, host memory",
    .process_per_rank = true,
    .make = [](int ranks) { return std::make_unique<TcpExecutor>(ranks); },
    .runs_native = [](const std::string& name) { return routines().find(name) != nullptr; },
    .most_threads = 2,
}};

const RegisteredTransport transport("tcp", [] { return std::string("sockets"); });

}  // namespace
}  // namespace baton::tcp
