// SPDX-License-Identifier: Apache-2.0
// Launch of the gradients of all segments.
#include "sp_methods/kernels/device/gla/gradient_segment.cuh"

namespace baton {

cudaError_t gla_gradients(const GlaDeviceCall& call, const GlaDeviceGradients& out, const GlaDeviceInputs& in,
                          const Bf16* d_o, const Bf16* states, const GlaDeviceEdges& after) {
  return with_constants(call.shape, [&](auto d_k, auto d_v, auto kind) {
    return launch_on_segments(call, GradientMemory<d_k(), d_v(), kind()>::shared_bytes,
                              gradients_kernel<d_k(), d_v(), kind()>, out,
                              GradientInputs{in, d_o, states, after});
  });
}

}  // namespace baton
