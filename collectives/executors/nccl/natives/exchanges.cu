// SPDX-License-Identifier: Apache-2.0
// Natives `nccl_all_to_all` and `nccl_reduce_scatter`: NCCL's own exchanges, to be compared with
// nccl-tests.
//
//   into = ncclAlltoAll(own)        into = ncclReduceScatter(own, sum)
//
// Their rows are in rows.cpp.
#include <nccl.h>

#include "collectives/executors/cuda/nccl_library.cuh"
#include "collectives/executors/nccl/round.cuh"

namespace baton {
namespace {

void all_to_all(const NcclCall& call) {
  const auto own = call.operands.reads[0];
  nccl(ncclAlltoAll(own.data(), call.operands.writes[0].data(), own.size() / call.ranks, ncclFloat, call.comm,
                    call.stream));
}

void reduce_scatter(const NcclCall& call) {
  const auto own = call.operands.reads[0];
  const auto into = call.operands.writes[0];
  nccl(ncclReduceScatter(own.data(), into.data(), into.size(), ncclFloat, ncclSum, call.comm, call.stream));
}

const RegisteredNcclNative natives[]{{"nccl_all_to_all", {.body = all_to_all, .is_of_messages = true}},
                                     {"nccl_reduce_scatter", {reduce_scatter}}};

}  // namespace
}  // namespace baton
