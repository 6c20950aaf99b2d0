// SPDX-License-Identifier: Apache-2.0
// Natives of executor `mpi`: library calls and hand-written loops that stand in for a schedule, and
// their registry. A native gets its operands and a communicator whose ranks are in scan order; it
// runs as a single step, on the thread that communicates, and times of rounds contain all of it.
#pragma once

#include <mpi.h>

#include <functional>
#include <string>
#include <utility>

#include "collectives/schedule/kernel.hpp"
#include "collectives/schedule/registry.hpp"

namespace baton {

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

/// Adds a native to the registry, before `main`. Throws UsageError if the name is taken.
struct RegisteredMpiNative {
  RegisteredMpiNative(const std::string& name, MpiNative body) { mpi_natives().add(name, std::move(body)); }
};

}  // namespace baton
