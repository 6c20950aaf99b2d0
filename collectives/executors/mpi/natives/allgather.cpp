// SPDX-License-Identifier: Apache-2.0
// Native `mpi_allgather`: LASP-2 with MPI's own all-gather.
//
//   maps   = MPI_Allgather(own map)
//   into   = state of map 0
//   for j = 1 .. r-1:  into = map j applied to into
//
// The library chooses the algorithm of the all-gather, so no cost is claimed.
#include <mpi.h>

#include <algorithm>

#include "collectives/collective.hpp"
#include "collectives/executors/mpi/communicator.hpp"
#include "collectives/schedule/kernel.hpp"

namespace baton {
namespace {

void run(const MpiCall& call) {
  const auto own = call.operands.reads[0];
  const auto into = call.operands.writes[0], maps = call.operands.writes[1];
  const std::size_t rows = own.size() - into.size();
  const auto count = static_cast<int>(own.size());
  int rank = 0;
  mpi(MPI_Comm_rank(call.comm, &rank));
  mpi(MPI_Allgather(own.data(), count, MPI_FLOAT, maps.data(), count, MPI_FLOAT, call.comm));
  const auto decay = [&](int j) { return maps.subspan(j * own.size(), rows); };
  const auto state = [&](int j) { return maps.subspan(j * own.size() + rows, into.size()); };
  if (rank == 1) std::copy_n(state(0).data(), into.size(), into.data());
  for (int j = 1; j < rank; ++j) combine_on_host({{into}, {j == 1 ? state(0) : into, decay(j), state(j)}});
}

void build(Schedule& s, const Operands& x) {
  const Slice own = x.own.packed(), maps = s.scratch("maps", s.ranks() * own.count);
  s.native("mpi_allgather", x.blocks, {x.into, maps}, {own});
}

const RegisteredMpiNative native{"mpi_allgather", run};

const Registered registered{{
    .name = "mpi_allgather",
    .kind = Kind::exclusive_scan,
    .summary = "native: LASP-2 as MPI_Allgather of the maps and a local fold",
    .build = build,
    .claim = [](const Shape&, const Split&) { return std::nullopt; },
}};

}  // namespace
}  // namespace baton
