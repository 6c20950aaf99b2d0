// SPDX-License-Identifier: Apache-2.0
// Natives `nccl_all_gather`, NCCL's own all-gather of the packed maps and nothing else, to be
// compared with nccl-tests, and `nccl_all_gather_scan*`, LASP-2 with that all-gather and one kernel
// that folds. Their rows are in rows.cpp.
//
//   maps = ncclAllGather(own map)
//   into = state of map 0;  for j = 1 .. r-1:  into = map j applied to into     (in registers)
//
// Source: arXiv 2502.07563 (LASP-2).
#include <nccl.h>

#include <algorithm>
#include <cstdint>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/nccl_library.cuh"
#include "collectives/executors/nccl/round.cuh"

namespace baton {
namespace {

constexpr int threads = 256;

/// Gathered maps in the order of home ranks, each of `rows` decays and then a state of [rows, row]
/// packs.
template <class Pack>
struct Maps {
  const float* first;
  std::int64_t floats;  // from one map to the next
  std::int64_t rows;
  bool reversed;
  int ranks;

  __device__ const float* decay(int place) const {
    return first + (reversed ? ranks - 1 - place : place) * floats;
  }
  __device__ const Pack* state(int place) const { return reinterpret_cast<const Pack*>(decay(place) + rows); }
};

__device__ float apply_to(float x, float decay, float state) { return fmaf(decay, x, state); }

__device__ float4 apply_to(float4 x, float decay, float4 state) {
  return {fmaf(decay, x.x, state.x), fmaf(decay, x.y, state.y), fmaf(decay, x.z, state.z),
          fmaf(decay, x.w, state.w)};
}

/// Applies the maps of the first `place` ranks to a zero state of `count` packs, `row` packs a row.
template <class Pack>
__global__ void __launch_bounds__(threads)
    fold_kernel(Pack* into, Maps<Pack> maps, int place, std::int64_t count, std::int64_t row) {
  const std::int64_t stride = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count; i += stride) {
    const std::int64_t r = i / row;
    Pack x = maps.state(0)[i];
    for (int j = 1; j < place; ++j) x = apply_to(x, maps.decay(j)[r], maps.state(j)[i]);
    into[i] = x;
  }
}

template <class Pack>
void fold(const NcclCall& call, std::int64_t rows) {
  const auto into = call.operands.writes[0].f32(), maps = call.operands.writes[1].f32();
  const auto floats = static_cast<std::int64_t>(call.operands.reads[0].size());
  constexpr std::int64_t width = sizeof(Pack) / sizeof(float);
  const std::int64_t count = static_cast<std::int64_t>(into.size()) / width;
  constexpr std::int64_t most_blocks = 2048;
  const auto blocks =
      static_cast<unsigned>(std::clamp<std::int64_t>((count + threads - 1) / threads, 1, most_blocks));
  fold_kernel<Pack><<<blocks, threads, 0, call.stream>>>(
      reinterpret_cast<Pack*>(into.data()), {maps.data(), floats, rows, call.reversed, call.ranks},
      call.place, count, count / rows);
  cuda_launched();
}

void gather_and_fold(const NcclCall& call) {
  const auto own = call.operands.reads[0];
  const auto into = call.operands.writes[0], maps = call.operands.writes[1];
  nccl(ncclAllGather(own.data(), maps.data(), own.size(), ncclFloat, call.comm, call.stream));
  if (call.place == 0) return;
  const auto rows = static_cast<std::int64_t>(own.size() - into.size());
  // Buffers are aligned for packs; rows and decays decide whether all states are.
  const bool is_wide = rows % 4 == 0 && static_cast<std::int64_t>(into.size()) / rows % 4 == 0;
  (is_wide ? fold<float4> : fold<float>)(call, rows);
}

const RegisteredNcclNative scans[]{
    {"nccl_all_gather_scan", {gather_and_fold, NcclMemory::plain}},
    {"nccl_all_gather_scan_window", {gather_and_fold, NcclMemory::window}},
    {"nccl_all_gather_scan_copy_engine", {gather_and_fold, NcclMemory::copy_engine_window}},
};

void gather(const NcclCall& call) {
  const auto own = call.operands.reads[0];
  nccl(ncclAllGather(own.data(), call.operands.writes[0].data(), own.size(), ncclFloat, call.comm,
                     call.stream));
}

const RegisteredNcclNative gather_native{"nccl_all_gather", {gather}};

}  // namespace
}  // namespace baton
