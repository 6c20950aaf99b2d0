// SPDX-License-Identifier: Apache-2.0
// Natives in Python on executor `nccl`: the function enqueues into the stream of the round. Its
// messages are those of its own library, so it needs no communicator.
#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/nccl/round.cuh"
#include "python/native/natives.hpp"

namespace baton {
namespace {

void call(const PythonBody& body, const NcclCall& call) {
  int gpu = 0;
  cuda(cudaGetDevice(&gpu));
  body({.into = call.operands.writes[0],
        .own = call.operands.reads[0],
        .row = call.row,
        .form = call.form,
        .rank = call.place,
        .ranks = call.ranks,
        .reversed = call.reversed,
        .gpu = gpu,
        .stream = call.stream});
}

void take(const std::string& name, const PythonBody& body) {
  nccl_natives().add(name,
                     {.body = [body](const NcclCall& given) { call(body, given); }, .is_of_messages = true});
}

struct Taken {
  Taken() { python_executors().add("nccl", take); }
} const taken;

}  // namespace
}  // namespace baton
