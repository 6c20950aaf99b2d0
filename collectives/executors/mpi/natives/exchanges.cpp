// SPDX-License-Identifier: Apache-2.0
// Natives `mpi_alltoall` and `mpi_reduce_scatter`: MPI's own exchanges.
//
//   into = MPI_Alltoall(own)        into = MPI_Reduce_scatter_block(own, sum)
//
// The library chooses the algorithms, so no cost is claimed.
#include <mpi.h>

#include "collectives/collective.hpp"
#include "collectives/executors/mpi/communicator.hpp"

namespace baton {
namespace {

void all_to_all(const MpiCall& call) {
  const auto own = call.operands.reads[0];
  int ranks = 1;
  mpi(MPI_Comm_size(call.comm, &ranks));
  const auto count = static_cast<int>(own.size() / ranks);
  mpi(MPI_Alltoall(own.data(), count, MPI_FLOAT, call.operands.writes[0].data(), count, MPI_FLOAT,
                   call.comm));
}

void reduce_scatter(const MpiCall& call) {
  const auto own = call.operands.reads[0];
  const auto into = call.operands.writes[0];
  mpi(MPI_Reduce_scatter_block(own.data(), into.data(), static_cast<int>(into.size()), MPI_FLOAT, MPI_SUM,
                               call.comm));
}

const RegisteredMpiNative natives[]{{"mpi_alltoall", all_to_all}, {"mpi_reduce_scatter", reduce_scatter}};

const Registered all_to_all_registered{{
    .name = "mpi_alltoall",
    .kind = Kind::all_to_all,
    .summary = "native: MPI_Alltoall",
    .build = [](Schedule& s,
                const Operands& x) { s.native("mpi_alltoall", x.blocks, {x.into}, {x.own.state}); },
    .claim = [](const Shape&, const Split&) { return std::nullopt; },
}};

const Registered reduce_scatter_registered{{
    .name = "mpi_reduce_scatter",
    .kind = Kind::reduce_scatter,
    .summary = "native: MPI_Reduce_scatter_block",
    .build = [](Schedule& s,
                const Operands& x) { s.native("mpi_reduce_scatter", x.blocks, {x.into}, {x.own.packed()}); },
    .claim = [](const Shape&, const Split&) { return std::nullopt; },
}};

}  // namespace
}  // namespace baton
