// SPDX-License-Identifier: Apache-2.0
// Launch of the output of all segments.
#include "sp_methods/kernels/device/gla/output_segment.cuh"

namespace baton {

cudaError_t gla_output(const GlaDeviceCall& call, Bf16* o, const GlaDeviceInputs& in,
                       const GlaDeviceEdges& before) {
  return with_constants(call.shape, [&](auto d_k, auto d_v, auto kind) {
    return launch_on_segments(call, OutputSegment<d_k(), d_v(), kind()>::shared_bytes,
                              output_kernel<d_k(), d_v(), kind()>, o, in, before);
  });
}

}  // namespace baton
