// SPDX-License-Identifier: Apache-2.0
// The device bodies of both passes under a low-rank rule, apart from gradients: each makes the
// records of all chunks and sweeps over them.
//
//   map:               rows of values from zero, rows of the matrix from the identity
//   output:            rows of values from the incoming state
//   correction:        rows from the identity without values; their output is the correction
//   state gradients:   the sweep from right to left, which needs no values
//
// Cost: that of low_rank_factors and of the sweep.
#include "sp_methods/kernels/device/delta/forward_sweep.cuh"
#include "sp_methods/kernels/device/delta/reverse_sweep.cuh"
#include "sp_methods/kernels/device/low_rank/factors.cuh"

namespace baton {
namespace {

/// Writes the records in the workspace, then sweeps over them.
cudaError_t sweep(cudaStream_t stream, const ForwardSweepOutputs& out, const LowRankInputs<OnDevice>& in,
                  const float* incoming, const Chunks& p) {
  char* const records = delta_workspace();
  const LowRankParts parts{.queries = out.o != nullptr || out.correction != nullptr,
                           .values = out.o != nullptr || out.map_state != nullptr};
  const cudaError_t code = low_rank_factors(stream, records, in, p, parts);
  return code == cudaSuccess ? forward_sweep(stream, out, records, incoming, p, ChunkRule::low_rank) : code;
}

cudaError_t low_rank_map(cudaStream_t stream, const LowRankMap::Operands<OnDevice>& x, const Chunks& p) {
  return sweep(stream, {.map_state = x.map_state, .map_matrix = x.map_matrix}, x.in, nullptr, p);
}

cudaError_t low_rank_output(cudaStream_t stream, const LowRankOutput::Operands<OnDevice>& x,
                            const Chunks& p) {
  return sweep(stream, {.o = x.o}, x.in, x.incoming, p);
}

cudaError_t low_rank_correction(cudaStream_t stream, const LowRankCorrection::Operands<OnDevice>& x,
                                const Chunks& p) {
  return sweep(stream, {.correction = x.correction}, x.in, nullptr, p);
}

cudaError_t low_rank_state_gradients(cudaStream_t stream, const LowRankStateGradients::Operands<OnDevice>& x,
                                     const Chunks& p) {
  char* const records = delta_workspace();
  const cudaError_t code = low_rank_factors(stream, records, x.in, p, {.values = false});
  if (code != cudaSuccess) return code;
  return reverse_sweep(stream, {.d_o = x.d_o, .map_state = x.map_state}, records, p, ChunkRule::low_rank);
}

const RegisteredCudaKernel registered[]{
    device_body<LowRankMap>(low_rank_map, nullptr, lacks_low_rank_room),
    device_body<LowRankOutput>(low_rank_output, nullptr, lacks_low_rank_room),
    device_body<LowRankCorrection>(low_rank_correction, nullptr, lacks_low_rank_room),
    device_body<LowRankStateGradients>(low_rank_state_gradients, nullptr, lacks_low_rank_room),
};

}  // namespace
}  // namespace baton
