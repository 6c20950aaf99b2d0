// SPDX-License-Identifier: Apache-2.0
// Natives of the `mpi` executor: library calls and hand-written loops that stand in for a schedule.
#pragma once

#include <mpi.h>

#include <functional>
#include <string>

#include "collectives/schedule/kernel.hpp"

namespace baton {

/// What a native gets: its operands and a communicator whose ranks are in scan order.
struct MpiCall {
  MPI_Comm comm;
  int blocks = 1;
  const HostOperands& operands;
};

using MpiNative = std::function<void(const MpiCall&)>;

/// Adds a native to the registry, before `main`. Throws UsageError if the name is taken.
struct RegisteredMpiNative {
  RegisteredMpiNative(const std::string& name, MpiNative body);
};

/// The native called `name`, or an empty function.
MpiNative find_mpi_native(const std::string& name);

}  // namespace baton
