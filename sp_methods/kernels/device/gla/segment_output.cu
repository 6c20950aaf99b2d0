// SPDX-License-Identifier: Apache-2.0
// Launch of the output of all segments.
#include "sp_methods/kernels/device/gla/segment_output.cuh"

namespace baton {

cudaError_t segment_output(cudaStream_t stream, const SegmentOutput::Operands<OnDevice>& x,
                           const Segments& cut) {
  return with_constants(cut.shape, [&](auto d_k, auto d_v, auto kind) {
    const GlaDeviceCall call{cut.shape, cut.work, static_cast<int>(cut.count), stream};
    return launch_on_segments(call, SegmentOutputBlock<d_k(), d_v(), kind()>::shared_bytes,
                              segment_output_kernel<d_k(), d_v(), kind()>, x.o, x.in, x.before);
  });
}

}  // namespace baton
