// SPDX-License-Identifier: Apache-2.0
// Native `nccl_reduce_scatter`: NCCL's own reduce-scatter, to be compared with nccl-tests.
//
//   into = ncclReduceScatter(own, sum)
//
// The library chooses the algorithm, so no cost is claimed.
#include <nccl.h>

#include "collectives/collective.hpp"
#include "collectives/executors/cuda/nccl_library.cuh"
#include "collectives/executors/nccl/round.cuh"

namespace baton {
namespace {

void run(const NcclCall& call) {
  const auto own = call.operands.reads[0];
  const auto into = call.operands.writes[0];
  nccl(ncclReduceScatter(own.data(), into.data(), into.size(), ncclFloat, ncclSum, call.comm, call.stream));
}

void build(Schedule& s, const Operands& x) {
  s.native("nccl_reduce_scatter", x.blocks, {x.into}, {x.own.packed()});
}

const RegisteredNcclNative native{"nccl_reduce_scatter", {run}};

const Registered registered{{
    .name = "nccl_reduce_scatter",
    .kind = Kind::reduce_scatter,
    .summary = "native: ncclReduceScatter",
    .build = build,
    .claim = [](const Shape&, const Split&) { return std::nullopt; },
}};

}  // namespace
}  // namespace baton
