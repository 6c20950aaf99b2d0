// SPDX-License-Identifier: Apache-2.0
// The device bodies of the segmented passes (segments.hpp), under the names of their steps. Operands and parameters stand
// in the order in which sp_methods/segmented_passes.cpp records them.
#include "collectives/executors/cuda/error.cuh"
#include "sp_methods/kernels/device/gla/launch.cuh"
#include "sp_methods/kernels/device/tile/operands.cuh"

namespace baton {
namespace {

GlaDeviceCall call_of(const CudaKernelCall& x) {
  const auto& cut = std::any_cast<const Segments&>(x.kernel.parameters);
  GlaDeviceCall call;
  call.shape = cut.shape;
  call.work = cut.work;
  call.segments = static_cast<int>(cut.count);
  call.stream = x.stream;
  return call;
}

GlaDeviceInputs inputs_of(const CudaKernelCall& x) {
  return {read<Bf16>(x, 0), read<Bf16>(x, 1), read<Bf16>(x, 2), read<Bf16>(x, 3)};
}

/// States and gates of edges, and what came in, from operand `at` on.
GlaDeviceEdges edges_at(const CudaKernelCall& x, std::size_t at) {
  return {read(x, at), read(x, at + 1), read(x, at + 2)};
}

void segment_states(const CudaKernelCall& x) {
  cuda(gla_segment_states(call_of(x), {written(x, 0), nullptr, written(x, 1)}, inputs_of(x)));
}

void segment_state_gradients(const CudaKernelCall& x) {
  cuda(gla_segment_gradients(call_of(x), {written(x, 0), nullptr, written(x, 1)}, inputs_of(x),
                             read<Bf16>(x, 4)));
}

void scan_segments(const CudaKernelCall& x) {
  const GlaDeviceSegments segments{written(x, 0), written(x, 1), const_cast<float*>(read(x, 1))};
  cuda(gla_scan_segments(call_of(x), segments, written(x, 2), written(x, 3)));
}

void chunk_starts(const CudaKernelCall& x) {
  cuda(gla_chunk_states(call_of(x), written<Bf16>(x, 0), inputs_of(x), edges_at(x, 4)));
}

void segment_gradients(const CudaKernelCall& x) {
  const GlaDeviceGradients out{written<Bf16>(x, 0), written<Bf16>(x, 1), written<Bf16>(x, 2),
                               written<Bf16>(x, 3)};
  cuda(gla_gradients(call_of(x), out, inputs_of(x), read<Bf16>(x, 4), read<Bf16>(x, 5), edges_at(x, 6)));
}

Refusal unsupported(const Kernel& kernel) {
  const auto& cut = std::any_cast<const Segments&>(kernel.parameters);
  return unsupported_in_tiles(kernel, static_cast<std::int64_t>(cut.dtype), cut.shape.d_k, cut.shape.d_v);
}

const RegisteredCudaKernel registered[]{
    {"segment_states", segment_states, unsupported},
    {"segment_state_gradients", segment_state_gradients, unsupported},
    {"scan_segments", scan_segments, unsupported},
    device_body<SegmentOutput>(segment_output),
    {"chunk_starts", chunk_starts, unsupported},
    {"segment_gradients", segment_gradients, unsupported},
};

}  // namespace
}  // namespace baton
