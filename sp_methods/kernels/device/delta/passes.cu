// SPDX-License-Identifier: Apache-2.0
// The device bodies of the forward pass under a delta rule: each makes the records of all chunks and
// sweeps over them.
//
//   map:          rows of values from zero, rows of the matrix from the identity
//   output:       rows of values from the incoming state
//   correction:   rows from the identity without values; their output is the correction
//
// Cost: that of delta_factors and of forward_sweep.
#include "sp_methods/kernels/device/delta/layer.cuh"

namespace baton {
namespace {

/// Makes the records in the workspace, then sweeps.
cudaError_t sweep(cudaStream_t stream, const ForwardSweepOutputs& out, const DeltaInputs<OnDevice>& in,
                  const float* incoming, const Chunks& p) {
  char* const records = reinterpret_cast<char*>(Workspace::shared().get());
  const RecordParts parts{.queries = out.o != nullptr || out.correction != nullptr};
  const cudaError_t code = delta_factors(stream, records, in, p, parts);
  return code == cudaSuccess ? forward_sweep(stream, out, records, incoming, p) : code;
}

const RegisteredCudaKernel registered[]{
    device_body<DeltaMap>(delta_map, nullptr, delta_room_lacks<false>),
    device_body<DeltaOutput>(delta_output, nullptr, delta_room_lacks<false>),
    device_body<DeltaCorrection>(delta_correction, nullptr, delta_room_lacks<false>),
};

}  // namespace

cudaError_t delta_map(cudaStream_t stream, const DeltaMap::Operands<OnDevice>& x, const Chunks& p) {
  return sweep(stream, {.map_state = x.map_state, .map_matrix = x.map_matrix}, x.in, nullptr, p);
}

cudaError_t delta_output(cudaStream_t stream, const DeltaOutput::Operands<OnDevice>& x, const Chunks& p) {
  return sweep(stream, {.o = x.o}, x.in, x.incoming, p);
}

cudaError_t delta_correction(cudaStream_t stream, const DeltaCorrection::Operands<OnDevice>& x,
                             const Chunks& p) {
  return sweep(stream, {.correction = x.correction}, x.in, nullptr, p);
}

}  // namespace baton
