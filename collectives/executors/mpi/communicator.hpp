// SPDX-License-Identifier: Apache-2.0
// A communicator of the first processes of the world, for teams and for the messages of executor
// `mpi`; and MPI's return codes as exceptions.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <source_location>
#include <string>
#include <utility>

#include "collectives/executors/team.hpp"
#include "collectives/schedule/kernel.hpp"
#include "collectives/schedule/registry.hpp"

namespace baton {

/// Throws SystemError with MPI's own text and the caller's line unless `code` is MPI_SUCCESS.
void mpi(int code, std::source_location where = std::source_location::current());

/// The first processes of MPI_COMM_WORLD. MPI must be initialised. Every call but `handle`, `rank`
/// and `size` is collective over them and throws SystemError if MPI fails.
class Communicator : public TeamTransport {
 public:
  /// The purpose of a communicator. Communicators that are made at the same time must differ in it.
  /// `in_reverse` gives process P-1 the rank 0.
  enum class Use { in_order, in_reverse, control, team };

  /// Makes the communicator of the first `ranks` processes of the world. They must all call it, and
  /// no other process may.
  Communicator(int ranks, Use use);
  ~Communicator() override;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  MPI_Comm handle() const { return comm_; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void gather(void* all, const void* mine, std::size_t bytes) const override;
  void broadcast(void* data, std::size_t bytes, int from) const override;
  /// A dissemination barrier, so that rounds start in the same way with every MPI library: after
  /// ceil(log2 P) exchanges with ranks at distance 1, 2, 4, ... each rank has heard of all others.
  void barrier() const override;
  /// Waits for all members: polls every half millisecond, and sleeps in between.
  void barrier_asleep() const override;

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_;
};

/// The arguments of a native: its operands and a communicator whose ranks are in scan order.
struct MpiCall {
  MPI_Comm comm;
  int blocks = 1;
  const HostOperands& operands;
};

using MpiNative = std::function<void(const MpiCall&)>;

/// The natives that are built in, by name.
inline Registry<MpiNative>& mpi_natives() {
  static Registry<MpiNative> all("native of mpi");
  return all;
}

/// Adds a native to the registry, before `main`. If its name is taken, the program ends with exit
/// code 2 and a text that says so.
struct RegisteredMpiNative {
  RegisteredMpiNative(const std::string& name, MpiNative body) {
    add_or_exit([&] { mpi_natives().add(name, std::move(body)); });
  }
};

}  // namespace baton
