// SPDX-License-Identifier: Apache-2.0
// Native `nccl_all_gather`: NCCL's own all-gather of the packed maps and nothing else, to be compared with nccl-tests.
//
// Which all-gather runs is the library's choice, so nothing is claimed.
#include <nccl.h>

#include "collectives/collective.hpp"
#include "collectives/executors/cuda/nccl_library.cuh"
#include "collectives/executors/nccl/native.cuh"

namespace baton {
namespace {

void run(const NcclCall& call) {
  const auto own = call.operands.reads[0];
  nccl(ncclAllGather(own.data(), call.operands.writes[0].data(), own.size(), ncclFloat, call.comm,
                     call.stream));
}

const RegisteredNcclNative native{"nccl_all_gather", {run}};

const Registered registered{{
    .name = "nccl_all_gather",
    .kind = Kind::all_gather,
    .summary = "native: ncclAllGather",
    .build = [](Schedule& s,
                const Operands& x) { s.native("nccl_all_gather", x.blocks, {x.into}, {x.own.state}); },
    .claim = [](const Shape&, const Split&) { return std::nullopt; },
}};

}  // namespace
}  // namespace baton
