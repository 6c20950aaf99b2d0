// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/device/delta/groups/gradients.cuh"
#include "sp_methods/kernels/device/delta/groups/inverse.cuh"
#include "sp_methods/kernels/device/delta/groups/passes.cuh"
#include "sp_methods/kernels/device/delta/groups/segmented_passes.cuh"

namespace baton {
namespace {

struct DeltaRule {
  using Map = DeltaMap;
  using Output = DeltaOutput;
  using Correction = DeltaCorrection;
  using StateGradients = DeltaStateGradients;
  using Gradients = DeltaGradients;
  using Inputs = DeltaInputs<OnDevice>;

  static std::int64_t chunk_bytes(const LayerShape& shape) {
    return delta_chunk_bytes(shape.gate, shape.d_k);
  }
  static ChunkTensors tensors(const Inputs& in, const LayerShape& shape) {
    return {.q = in.of.q, .k = in.of.k, .g = in.of.g, .beta = in.beta, .rule = delta_rule(shape.gate)};
  }
  static cudaError_t put_chunks(cudaStream_t stream, char* chunks, const Inputs& in, const Chunks& p,
                                ChunkParts) {
    return chunk_inverses(stream, chunks, tensors(in, p.shape), p);
  }
  static cudaError_t put_gradients(cudaStream_t stream, const Gradients::Operands<OnDevice>& x,
                                   const SweptChunks& kept, const Chunks& p) {
    return delta_gradients_of_chunks(stream, x, kept, p);
  }
};

using Passes = SegmentedPasses<DeltaRule>;

const RegisteredCudaKernel registered[]{
    device_body<DeltaMap>(Passes::map, nullptr, lacks_delta_room),
    device_body<DeltaOutput>(Passes::output, nullptr, lacks_delta_room),
    device_body<DeltaCorrection>(Passes::correction, nullptr, lacks_delta_room),
    device_body<DeltaStateGradients>(Passes::state_gradients, nullptr, lacks_delta_room),
    device_body<DeltaGradients>(Passes::gradients, nullptr, lacks_delta_room_of_gradients),
};

}  // namespace

Refusal lacks_delta_room(const Chunks& p) { return Passes::lacks_room(p); }
Refusal lacks_delta_room_of_gradients(const Chunks& p) { return Passes::lacks_room_of_gradients(p); }

}  // namespace baton
