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
#include "collectives/executors/tcp/mesh.hpp"
#include "collectives/executors/tcp/native.hpp"
#include "collectives/executors/transport.hpp"

namespace baton::tcp {
namespace {

class TcpExecutor : public EngineExecutor {
 public:
  explicit TcpExecutor(int ranks) : EngineExecutor(ranks), mesh_(team()) {}

  Refusal unsupported(std::span<const Schedule> schedules) const override {
    for (const Schedule& schedule : schedules)
      for (const NativeCall& native : schedule.natives()) {
        if (natives().find(native.name) == nullptr) return native.name + " is no native of tcp";
        if (schedule.steps().size() > 1) return native.name + " must be the only step, as a native of tcp";
      }
    return unsupported_on_host(schedules);
  }

  void prepare(std::vector<Schedule> schedules) override {
    prepare_engine(std::move(schedules), mesh_,
                   [this](const NativeCall& native, const HostOperands& operands) {
                     Call call(mesh_, native, operands, team().rank(), team().size());
                     natives().at(native.name)(call);
                   });
  }
  void synchronise() override { mesh_.barrier(); }
  double one_way_seconds(std::int64_t bytes, int from, int to) override;
  ClockOffset clock_offset(int from, int to) override;

 private:
  Mesh mesh_;
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
    .runs_native = [](const std::string& name) { return natives().find(name) != nullptr; },
    .most_threads = 2,
}};

const RegisteredTransport transport("tcp", [] { return std::string("sockets"); });

}  // namespace
}  // namespace baton::tcp
