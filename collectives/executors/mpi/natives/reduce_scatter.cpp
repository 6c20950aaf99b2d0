// SPDX-License-Identifier: Apache-2.0
// Native `mpi_reduce_scatter`: MPI's own reduce-scatter.
//
//   into = MPI_Reduce_scatter_block(own, sum)
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
  const auto into = call.operands.writes[0];
  mpi(MPI_Reduce_scatter_block(own.data(), into.data(), static_cast<int>(into.size()), MPI_FLOAT, MPI_SUM,
                               call.comm));
}

void build(Schedule& s, const Operands& x) {
  s.native("mpi_reduce_scatter", x.blocks, {x.into}, {x.own.packed()});
}

const RegisteredMpiNative native{"mpi_reduce_scatter", run};

const Registered registered{{
    .name = "mpi_reduce_scatter",
    .kind = Kind::reduce_scatter,
    .summary = "native: MPI_Reduce_scatter_block",
    .build = build,
    .claim = [](const Shape&, const Split&) { return std::nullopt; },
}};

}  // namespace
}  // namespace baton
