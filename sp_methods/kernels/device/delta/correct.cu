// SPDX-License-Identifier: Apache-2.0
// The device body that adds what the incoming state gives: the state once, as bf16; for each chunk
// of a run  o += C X^T, one block a head and run of chunks.
//
// Cost: 2 tokens d_k d_v flop a head; C and o read, o written once.
#include "sp_methods/kernels/delta.hpp"
#include "sp_methods/kernels/device/gla/layer.cuh"

namespace baton {
namespace {

constexpr int runs = 16;  // of chunks that correct, a head

template <int d_k, int d_v>
__device__ void put_state(const Bf16Tile<d_k>& into, const float* state) {
  for (int pair = static_cast<int>(threadIdx.x); pair < d_v * d_k / 2; pair += tile_threads) {
    const float2 x = reinterpret_cast<const float2*>(state)[pair];
    into.set_pair(Bf16Tile<d_k>::offset(pair / (d_k / 2), pair % (d_k / 2) * 2), x);
  }
}

/// Adds a warp's 16 rows of sums to rows of global memory.
template <int d_v>
__device__ void add_rows(const HeadRows<Bf16>& rows, Sums<1, d_v / 64>& sums) {
  sums.for_each([&](int r, int c, float2& x) {
    if (r >= rows.count) return;
    Bf16* const at = rows.row(r) + c;
    const float2 own = load_pair(at);
    store_pair(at, {own.x + x.x, own.y + x.y});
  });
}

template <int d_k, int d_v>
__global__ __launch_bounds__(tile_threads, 1) void delta_correct_kernel(
    const __grid_constant__ DeviceLayer layer, const __grid_constant__ DeltaCorrect::Operands<OnDevice> x) {
  const Bf16Tile<d_k> state{shared_space()}, correction{shared_space() + Bf16Tile<d_k>::bytes(d_v)};
  put_state<d_k, d_v>(state, x.incoming + static_cast<std::int64_t>(DeviceLayer::place()) * d_v * d_k);
  const int last = layer.first_chunk(DeviceLayer::segment() + 1);
  for (int chunk = layer.first_chunk(DeviceLayer::segment()); chunk < last; ++chunk) {
    layer.template loader<d_k>().load(correction, x.correction, chunk);
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();
    const int row = 16 * warp_row(), column = warp_column() * (d_v / 4);
    Sums<1, d_v / 64> sums;
    sums.clear();
    add_product<d_k / 16>(sums, left_operand<RowsAre::outer>(correction, row),
                          right_operand<RowsAre::outer>(state, column));
    auto rows = layer.rows(x.o, d_v, chunk);
    add_rows<d_v>({rows.row(row) + column, rows.stride, rows.count - row}, sums);
    __syncthreads();
  }
}

cudaError_t delta_correct(cudaStream_t stream, const DeltaCorrect::Operands<OnDevice>& x, const Chunks& p) {
  if (x.incoming == nullptr) return cudaSuccess;
  const Segments cut{p.shape, p.work, std::min<std::int64_t>(runs, device_chunks(p)), Dtype::bf16};
  return with_widths(p.shape, [&](auto d_k, auto d_v) {
    constexpr int bytes = Bf16Tile<d_k()>::bytes(d_v()) + Bf16Tile<d_k()>::bytes(device_chunk);
    return launch_on_segments(stream, cut, bytes, delta_correct_kernel<d_k(), d_v()>, x);
  });
}

const RegisteredCudaKernel registered = device_body<DeltaCorrect>(delta_correct);

}  // namespace
}  // namespace baton
