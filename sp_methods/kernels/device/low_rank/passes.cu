// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/device/delta/groups/segmented_passes.cuh"
#include "sp_methods/kernels/device/low_rank/gradients.cuh"
#include "sp_methods/kernels/device/low_rank/records.cuh"

namespace baton {
namespace {

struct LowRankRule {
  using Map = LowRankMap;
  using Output = LowRankOutput;
  using Correction = LowRankCorrection;
  using StateGradients = LowRankStateGradients;
  using Gradients = LowRankGradients;
  using Inputs = LowRankInputs<OnDevice>;

  static std::int64_t chunk_bytes(const LayerShape& shape) { return low_rank_chunk_bytes(shape.d_k); }
  static ChunkTensors tensors(const Inputs&, const LayerShape&) { return {.rule = ChunkRule::low_rank}; }
  static cudaError_t put_chunks(cudaStream_t stream, char* chunks, const Inputs& in, const Chunks& p,
                                ChunkParts parts) {
    return low_rank_records(stream, chunks, in, p, parts);
  }
  static cudaError_t put_gradients(cudaStream_t stream, const Gradients::Operands<OnDevice>& x,
                                   const SweptChunks& kept, const Chunks& p) {
    return low_rank_gradients_of_chunks(stream, x, kept, p);
  }
};

using Passes = SegmentedPasses<LowRankRule>;

const RegisteredCudaKernel registered[]{
    device_body<LowRankMap>(Passes::map, nullptr, lacks_low_rank_room),
    device_body<LowRankOutput>(Passes::output, nullptr, lacks_low_rank_room),
    device_body<LowRankCorrection>(Passes::correction, nullptr, lacks_low_rank_room),
    device_body<LowRankStateGradients>(Passes::state_gradients, nullptr, lacks_low_rank_room),
    device_body<LowRankGradients>(Passes::gradients, nullptr, lacks_low_rank_room_of_gradients),
};

}  // namespace

Refusal lacks_low_rank_room(const Chunks& p) { return Passes::lacks_room(p); }
Refusal lacks_low_rank_room_of_gradients(const Chunks& p) { return Passes::lacks_room_of_gradients(p); }

}  // namespace baton
