// SPDX-License-Identifier: Apache-2.0
// Native `mpi_exscan`: MPI's own exclusive scan, with composition of maps as a non-commutative
// operator.
//
//   prefix map = MPI_Exscan(own map, compose)
//   into       = its state
//
// One element of the reduction is a whole map: decay [rows], then state [rows, row]. The library
// chooses the algorithm, so no cost is claimed.
#include <mpi.h>

#include <algorithm>
#include <cstdint>

#include "collectives/collective.hpp"
#include "collectives/executors/mpi/communicator.hpp"
#include "collectives/schedule/kernel.hpp"

namespace baton {
namespace {

/// The rows of a map in the running scan. It is global because MPI passes its operator no context.
std::int64_t rows_of_the_scan = 0;

void compose_maps(void* earlier, void* later, int* length, MPI_Datatype* type) {
  int bytes = 0;
  MPI_Type_size(*type, &bytes);
  const std::size_t rows = rows_of_the_scan, count = bytes / sizeof(float);
  for (int i = 0; i < *length; ++i) {
    const std::span<float> first(static_cast<float*>(earlier) + i * count, count);
    const std::span<float> second(static_cast<float*>(later) + i * count, count);
    combine_on_host({{second.first(rows), second.subspan(rows)},
                     {first.first(rows), first.subspan(rows), second.first(rows), second.subspan(rows)}});
  }
}

void run(const MpiCall& call) {
  const auto own = call.operands.reads[0];
  const auto into = call.operands.writes[0], prefix = call.operands.writes[1];
  rows_of_the_scan = static_cast<std::int64_t>(own.size() - into.size());
  MPI_Datatype map;
  MPI_Op compose;
  int rank = 0;
  mpi(MPI_Comm_rank(call.comm, &rank));
  mpi(MPI_Type_contiguous(static_cast<int>(own.size()), MPI_FLOAT, &map));
  mpi(MPI_Type_commit(&map));
  mpi(MPI_Op_create(compose_maps, 0, &compose));
  mpi(MPI_Exscan(own.data(), prefix.data(), 1, map, compose, call.comm));
  mpi(MPI_Op_free(&compose));
  mpi(MPI_Type_free(&map));
  if (rank > 0) std::copy(prefix.end() - into.size(), prefix.end(), into.begin());
}

void build(Schedule& s, const Operands& x) {
  const Slice prefix = s.scratch("prefix", x.own.packed().count);
  s.native("mpi_exscan", x.blocks, {x.into, prefix}, {x.own.packed()});
}

const RegisteredMpiNative native{"mpi_exscan", run};

const Registered registered{{
    .name = "mpi_exscan",
    .kind = Kind::exclusive_scan,
    .summary = "native: MPI_Exscan with a user-defined operator on maps",
    .build = build,
    .claim = [](const Shape&, const Split&) { return std::nullopt; },
}};

}  // namespace
}  // namespace baton
