// SPDX-License-Identifier: Apache-2.0
// Blocks of one or two groups of warps that multiply (gradient_products.cuh) and one that copies
// (gradient_copies.cuh); each block takes chunks in turn (chunk_walk.cuh).
#include "sp_methods/kernels/device/delta/groups/gradient_copies.cuh"
#include "sp_methods/kernels/device/delta/groups/gradient_products.cuh"
#include "sp_methods/kernels/device/delta/groups/gradients.cuh"

namespace baton {
namespace {

using DeltaGradientsOperands = DeltaGradients::Operands<OnDevice>;

template <int d_k, int d_v, GateKind kind>
__global__ __launch_bounds__(DeltaGradientRoom<d_k, d_v>::threads, 1) void delta_gradients_by_groups_kernel(
    const __grid_constant__ DeviceLayer layer, const __grid_constant__ DeltaGradientsOperands x,
    const __grid_constant__ SweptChunks kept, const __grid_constant__ ChunkWalk walk) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  // A block of three groups starts with 168 registers a thread; one of two has all that it can use.
  constexpr bool has_two_groups = DeltaGradientRoom<d_k, d_v>::groups == 2;
  constexpr int multiplying = 208, copying = 88;
  static_assert(2 * multiplying + copying <= 3 * 168);
  if (group() == DeltaGradientRoom<d_k, d_v>::groups) {
    if constexpr (has_two_groups) take_registers<false, copying>();
    DeltaGradientCopies<d_k, d_v, kind>(layer, x, kept, walk).run();
  } else {
    if constexpr (has_two_groups) take_registers<true, multiplying>();
    DeltaGradientProducts<d_k, d_v, kind>(layer, x, walk).run();
  }
#endif
}

int blocks_at_once() {
  int device = 0, count = 0;
  cuda(cudaGetDevice(&device));
  cuda(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

template <int d_k, int d_v, GateKind kind>
cudaError_t launch(cudaStream_t stream, const DeltaGradientsOperands& x, const SweptChunks& kept,
                   const Chunks& p) {
  using Room = DeltaGradientRoom<d_k, d_v>;
  const auto kernel = delta_gradients_by_groups_kernel<d_k, d_v, kind>;
  const auto code =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Room::shared_bytes);
  if (code != cudaSuccess) return code;
  const ChunkWalk walk(p);
  const auto blocks = static_cast<unsigned>(std::min(walk.items(), blocks_at_once()));
  kernel<<<blocks, Room::threads, Room::shared_bytes, stream>>>(
      DeviceLayer(Segments{p.shape, p.work, 1, Dtype::bf16}), x, kept, walk);
  return cudaGetLastError();
}

}  // namespace

cudaError_t delta_gradients_of_chunks(cudaStream_t stream, const DeltaGradients::Operands<OnDevice>& x,
                                      const SweptChunks& kept, const Chunks& p) {
  if (p.shape.gate == GateKind::vector) return delta_gradients_by_channel(stream, x, kept, p);
  return with_widths(p.shape, [&](auto d_k, auto d_v) {
    return p.shape.gate == GateKind::none ? launch<d_k(), d_v(), GateKind::none>(stream, x, kept, p)
                                          : launch<d_k(), d_v(), GateKind::scalar>(stream, x, kept, p);
  });
}

}  // namespace baton
