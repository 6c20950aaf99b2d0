// SPDX-License-Identifier: Apache-2.0
// Native `mpi_alltoall`: MPI's own all-to-all.
//
//   into = MPI_Alltoall(own)
//
// The library chooses the algorithm, so no cost is claimed.
#include <mpi.h>

#include "collectives/collective.hpp"
#include "collectives/executors/mpi/communicator.hpp"
#include "collectives/executors/mpi/engine.hpp"

namespace baton {
namespace {

void run(const MpiCall& call) {
  const auto own = call.operands.reads[0];
  int ranks = 1;
  mpi(MPI_Comm_size(call.comm, &ranks));
  const auto count = static_cast<int>(own.size() / ranks);
  mpi(MPI_Alltoall(own.data(), count, MPI_FLOAT, call.operands.writes[0].data(), count, MPI_FLOAT,
                   call.comm));
}

void build(Schedule& s, const Operands& x) { s.native("mpi_alltoall", x.blocks, {x.into}, {x.own.state}); }

const RegisteredMpiNative native{"mpi_alltoall", run};

const Registered registered{{
    .name = "mpi_alltoall",
    .kind = Kind::all_to_all,
    .summary = "native: MPI_Alltoall",
    .build = build,
    .claim = [](const Shape&, const Split&) { return std::nullopt; },
}};

}  // namespace
}  // namespace baton
