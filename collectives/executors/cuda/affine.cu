// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>

#include "collectives/executors/cuda/affine.cuh"
#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/products.cuh"

namespace baton {
namespace {

struct Operands {
  float* into;
  const float* x;
  const float* added;  // null for zeros
  unsigned rows;
  unsigned tile_rows;
  unsigned skipped;  // rows of the first tile that lie before the slice

  __host__ __device__ unsigned tiles() const { return (skipped + rows + tile_rows - 1) / tile_rows; }
};

/// The tiles [first, end) of one thread block; these neighbours mostly lie in one head.
struct Tiles {
  unsigned first;
  unsigned end;

  __device__ explicit Tiles(const Operands& o) {
    const std::uint64_t all = o.tiles();
    first = static_cast<unsigned>(all * blockIdx.x / gridDim.x);
    end = static_cast<unsigned>(all * (blockIdx.x + 1) / gridDim.x);
  }
};

__device__ inline void load_ahead(float* shared, const float* from) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}

/// Waits until at most `under_way` tiles that this thread loads asynchronously have not arrived.
template <int under_way>
__device__ inline void await_loads() {
  asm volatile("cp.async.wait_group %0;" ::"n"(under_way) : "memory");
}

/// Multiplies 16-byte aligned rows of `width` elements with tensor cores. A thread moves four
/// elements of each tile; three tiles take turns, of which two are being loaded. Rows of a tile
/// outside the slice are neither loaded nor stored.
template <unsigned width>
__global__ void __launch_bounds__(product_threads)
    tensor_kernel(const __grid_constant__ Operands o, const __grid_constant__ Matrices by) {
  constexpr unsigned stages = 3, elements = tensor_tile_elements;
  static_assert(elements == 4 * product_threads);
  extern __shared__ float4 shared[];
  float* const room = reinterpret_cast<float*>(shared);
  const auto tile_of = [&](unsigned tile, unsigned which) {
    return room + (1 + tile % stages * 2 + which) * most_tile_elements;
  };
  const unsigned e = threadIdx.x * 4, place = e / width * Products<width>::stride + e % width;
  const std::size_t count = std::size_t{o.rows} * width;
  // The place of this thread's elements in the slice. In a row before the slice it wraps and is no
  // less than `count` either.
  const auto place_in_slice = [&](unsigned tile) {
    return std::size_t{tile} * elements + e - std::size_t{o.skipped} * width;
  };
  const auto load = [&](unsigned tile, unsigned end) {
    const std::size_t at = place_in_slice(tile);
    if (tile < end && at < count) {
      load_ahead(tile_of(tile, 0) + place, o.x + at);
      float* const y = tile_of(tile, 1) + place;
      if (o.added != nullptr) load_ahead(y, o.added + at);
      if (o.added == nullptr) *reinterpret_cast<float4*>(y) = {};
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  Products<width> products(by);
  const Tiles mine(o);
  for (unsigned tile = mine.first; tile < mine.first + stages - 1; ++tile) load(tile, mine.end);
  for (unsigned tile = mine.first; tile < mine.end; ++tile) {
    products.prepare(tile * o.tile_rows);
    load(tile + stages - 1, mine.end);
    await_loads<stages - 1>();
    __syncthreads();
    float* const y = tile_of(tile, 1);
    products.multiply(y, tile_of(tile, 0), room, tile * o.tile_rows, o.tile_rows);
    __syncthreads();
    const std::size_t at = place_in_slice(tile);
    if (at < count) *reinterpret_cast<float4*>(o.into + at) = *reinterpret_cast<const float4*>(y + place);
  }
}

/// Multiplies rows of any length at any address, one element at a time.
__global__ void __launch_bounds__(product_threads)
    plain_kernel(const __grid_constant__ Operands o, const __grid_constant__ Matrices by) {
  __shared__ float x[most_tile_elements], y[most_tile_elements];
  Products<0> products(by);
  const Tiles mine(o);
  for (unsigned tile = mine.first; tile < mine.end; ++tile) {
    const unsigned row = tile * o.tile_rows, rows = min(o.tile_rows, o.rows - row), count = rows * by.row;
    const std::size_t at = std::size_t{row} * by.row;
    for (unsigned e = threadIdx.x; e < count; e += product_threads) {
      x[e] = o.x[at + e];
      y[e] = o.added != nullptr ? o.added[at + e] : 0;
    }
    __syncthreads();
    products.multiply(y, x, nullptr, row, rows);
    __syncthreads();
    for (unsigned e = threadIdx.x; e < count; e += product_threads) o.into[at + e] = y[e];
    __syncthreads();
  }
}

int multiprocessors_here() {
  int gpu = 0, count = 0;
  cuda(cudaGetDevice(&gpu));
  cuda(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, gpu));
  return count;
}

bool lies_whole(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; }

template <unsigned width>
void launch_tensor(cudaStream_t stream, int blocks, const Operands& operands, const Matrices& by) {
  constexpr int bytes = 7 * most_tile_elements * sizeof(float);
  static const cudaError_t allowed =
      cudaFuncSetAttribute(tensor_kernel<width>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  cuda(allowed);
  tensor_kernel<width><<<blocks, product_threads, bytes, stream>>>(operands, by);
}

/// Enqueues into = x times the matrices, row by row, plus `added` unless it is empty. `into` may be
/// x or `added`, and shares nothing with the matrices.
void multiply_on_device(cudaStream_t stream, std::span<float> into, std::span<const float> x,
                        std::span<const float> matrices, std::span<const float> added, const Combine& by) {
  const auto row = static_cast<unsigned>(by.row);
  Matrices matrix{matrices.data(), row, static_cast<unsigned>(by.form.share),
                  static_cast<unsigned>(by.form.first), by.form.transposed};
  const bool is_whole = lies_whole(into.data()) && lies_whole(x.data()) && lies_whole(added.data());
  const unsigned width = is_whole ? tensor_width(matrix) : 0;
  Operands operands{into.data(), x.data(), added.data(), static_cast<unsigned>(into.size() / row),
                    tile_rows(row, width)};
  if (width > 0) {
    operands.skipped = matrix.before % operands.tile_rows;
    matrix.before -= operands.skipped;
  }
  const int blocks = std::min(static_cast<int>(operands.tiles()), multiprocessors_here());
  if (width == 128)
    launch_tensor<128>(stream, blocks, operands, matrix);
  else if (width == 64)
    launch_tensor<64>(stream, blocks, operands, matrix);
  else
    plain_kernel<<<blocks, product_threads, 0, stream>>>(operands, matrix);
  cuda_launched();
}

}  // namespace

void combine_affine_on_device(cudaStream_t stream, const DeviceOperands& operands, const Combine& by) {
  const auto& [writes, reads] = operands;
  const bool composes = writes.size() == 2;
  const auto earlier = reads[composes ? 1 : 0].f32(), matrices = reads[composes ? 2 : 1].f32(),
             later = reads[composes ? 3 : 2].f32();
  multiply_on_device(stream, writes.back().f32(), earlier, matrices, later, by);
  if (!composes) return;
  const MatrixProduct product = product_of_matrices(by);
  const auto left = product.left_is_later ? matrices : reads[0].f32();
  const auto right = product.left_is_later ? reads[0].f32() : matrices;
  multiply_on_device(stream, writes[0].f32(), left, right, {}, product.by);
}

Refusal lacks_products(const Step& step) {
  if (!has_tile(step.combine.row))
    return "GPUs have no tile for rows of " + std::to_string(step.combine.row) + " elements";
  if (step.writes.size() < 2) return {};
  const bool left_is_later = product_of_matrices(step.combine).left_is_later;
  if (step.writes[0].overlaps(step.reads[left_is_later ? 0 : 2]))
    return "GPUs do not write the product of two matrices over its right factor";
  return {};
}

}  // namespace baton
