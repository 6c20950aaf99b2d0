// SPDX-License-Identifier: Apache-2.0
// The device bodies of softmax_block, merge_softmax and softmax_delta. The block has one block of
// threads a head and 128 queries, four warps.
//
//   for the key tiles that any of the queries sees:      c = s log2 e
//     z = q k^T,  m' = max(m, rowmax z),  p = 2^{c (z - m')}
//     l = l 2^{c (m - m')} + rowsum p,    o = o 2^{c (m - m')} + p v
//   out = o / l,  lse = s m + log l;  if no key is seen: out = 0, lse = -inf
//
// A tile that all of a warp's queries see whole is not masked. Shared memory holds the queries and
// two tiles of keys and values, 96 KiB at d = 128: two blocks a multiprocessor.
// Source: Dao, "FlashAttention-2", 2023, algorithm 1.
#include "sp_methods/kernels/device/cudnn/bodies.cuh"
#include "sp_methods/kernels/device/cudnn/calls.cuh"
#include "sp_methods/kernels/device/gla/layer.cuh"
#include "sp_methods/kernels/device/softmax/mask.cuh"
#include "sp_methods/kernels/device/tile/attention_tile.cuh"
#include "sp_methods/kernels/device/tile/tile.cuh"

namespace baton {
namespace {

constexpr int threads = 128;
constexpr int row_tile = 128;
constexpr float minus_infinity = -INFINITY;

__device__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffU, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffU, x, 2));
}
__device__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffU, x, 1);
  return x + __shfl_xor_sync(0xffffffffU, x, 2);
}

/// Attention of one tile of queries over the block of keys.
template <int d_k, int d_v>
class QueryTile {
 public:
  static constexpr int rows_bytes = Bf16Tile<d_k>::bytes(row_tile);
  static constexpr int key_bytes = Bf16Tile<d_k>::bytes(column_tile);
  static constexpr int slot_bytes = key_bytes + Bf16Tile<d_v>::bytes(column_tile);
  static constexpr int shared_bytes = rows_bytes + 2 * slot_bytes;

  __device__ QueryTile(const SoftmaxMask& mask, const SoftmaxInputs<OnDevice>& in)
      : mask_(mask),
        head_(static_cast<int>(blockIdx.y)),
        first_row_((static_cast<int>(gridDim.x) - 1 - static_cast<int>(blockIdx.x)) * row_tile),
        own_row_(first_row_ + warp_rows * warp() + (lane() >> 2)),
        first_(mask.seen(first_row_).hidden / column_tile),
        count_(tiles_of(mask.seen(first_row_ + row_tile - 1).visible, column_tile) - first_),
        in_(in),
        key_loader_({in.k, mask.k_tokens, mask.heads, head_, d_k}),
        value_loader_({in.v, mask.k_tokens, mask.heads, head_, d_v}) {}

  __device__ void run(float* out, float* lse) {
    const RowLoader<d_k, threads> rows({in_.q, mask_.q_tokens, mask_.heads, head_, d_k});
    rows.template load<row_tile>(queries(), first_row_);
    load(0);
    out_.clear();
#pragma unroll 1
    for (int step = 0; step < count_; ++step) {
      wait_for_copies<0>();
      __syncthreads();
      load(step + 1);
      multiply(step);
    }
    wait_for_copies<0>();
    write(out, lse);
  }

 private:
  using Scores = Sums<2, column_tile / 16>;

  __device__ static Bf16Tile<d_k> queries() { return {shared_space()}; }
  __device__ static Bf16Tile<d_k> keys(int step) {
    return {shared_space() + rows_bytes + (step & 1) * slot_bytes};
  }
  __device__ static Bf16Tile<d_v> values(int step) { return {keys(step).memory + key_bytes}; }
  /// The row of the part `half` of piece m of this lane's sums.
  __device__ int row(int m, int half) const { return own_row_ + 16 * m + 8 * half; }

  __device__ void load(int step) const {
    if (step < count_) {
      key_loader_.template load<column_tile>(keys(step), (first_ + step) * column_tile);
      value_loader_.template load<column_tile>(values(step), (first_ + step) * column_tile);
    }
    commit_copies();
  }

  __device__ void multiply(int step) {
    const int row = first_row_ + warp_rows * warp(), column = (first_ + step) * column_tile;
    Scores scores;
    scores.clear();
    add_product<d_k / 16>(scores, left_operand<RowsAre::outer>(queries(), warp_rows * warp()),
                          right_operand<RowsAre::outer>(keys(step), 0));
    if (!mask_.sees_all(row, warp_rows, column, column_tile)) hide(scores, row, column);
    exponentiate(scores);
    const PackedSums<2, column_tile / 16> packed(scores);
    add_product<column_tile / 16>(out_, packed, right_operand<RowsAre::summed>(values(step), 0));
  }

  __device__ void hide(Scores& scores, int row, int column) const {
    scores.for_each([&](int r, int c, float2& x) {
      if (!mask_.sees(row + r, column + c)) x.x = minus_infinity;
      if (!mask_.sees(row + r, column + c + 1)) x.y = minus_infinity;
    });
  }

  /// Replaces scores by probabilities, and rescales the sums and the output to the new maxima.
  __device__ void exponentiate(Scores& scores) {
    const float slope = mask_.scale * log2_e;
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float most = max_[m][half];
        for_row(scores, m, half, [&](float& x) { most = fmaxf(most, x); });
        most = quad_max(most);
        const float base = most == minus_infinity ? 0.0F : slope * most;
        const float keep = power_of_2(slope * max_[m][half] - base);
        max_[m][half] = most;
        float sum = sum_[m][half] * keep;
        for_row(scores, m, half, [&](float& x) {
          x = power_of_2(fmaf(slope, x, -base));
          sum += x;
        });
        sum_[m][half] = sum;
        for_row(out_, m, half, [&](float& x) { x *= keep; });
      }
    }
  }

  template <int n_tiles, class Function>
  __device__ static void for_row(Sums<2, n_tiles>& sums, int m, int half, Function f) {
#pragma unroll
    for (int n = 0; n < 2 * n_tiles; ++n) {
      f(sums.c[m][n][2 * half]);
      f(sums.c[m][n][2 * half + 1]);
    }
  }

  __device__ void write(float* out, float* lse) {
    const float slope = mask_.scale * log2_e;
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float sum = quad_sum(sum_[m][half]), share = sum > 0.0F ? 1.0F / sum : 0.0F;
        for_row(out_, m, half, [&](float& x) { x *= share; });
        if ((lane() & 3) != 0 || row(m, half) >= mask_.q_tokens) continue;
        lse[static_cast<std::int64_t>(row(m, half)) * mask_.heads + head_] =
            sum > 0.0F ? (slope * max_[m][half] + log2f(sum)) / log2_e : minus_infinity;
      }
    }
    const HeadOf<float> rows(out, mask_.q_tokens, mask_.heads, head_, d_v);
    write_rows(rows, first_row_ + warp_rows * warp(), false, out_, [](int, int, float2 x) { return x; });
  }

  const SoftmaxMask& mask_;
  int head_, first_row_, own_row_;
  int first_, count_;  // key tiles
  const SoftmaxInputs<OnDevice>& in_;
  RowLoader<d_k, threads> key_loader_;
  RowLoader<d_v, threads> value_loader_;
  Sums<2, d_v / 16> out_;
  float max_[2][2] = {{minus_infinity, minus_infinity}, {minus_infinity, minus_infinity}}, sum_[2][2] = {};
};

template <int d_k, int d_v>
__global__ __launch_bounds__(threads,
                             2) void softmax_block_kernel(float* out, float* lse,
                                                          const __grid_constant__ SoftmaxInputs<OnDevice> in,
                                                          const __grid_constant__ SoftmaxMask mask) {
  QueryTile<d_k, d_v>(mask, in).run(out, lse);
}

__device__ float4 four_at(const float* x) { return *reinterpret_cast<const float4*>(x); }
__device__ float4 four_at(const Bf16* x) {
  const uint2 pairs = *reinterpret_cast<const uint2*>(x);
  const float2 low = unpacked_pair(pairs.x), high = unpacked_pair(pairs.y);
  return {low.x, low.y, high.x, high.y};
}
__device__ float2 two_at(const float* x) { return *reinterpret_cast<const float2*>(x); }
__device__ float2 two_at(const Bf16* x) { return load_pair(x); }

/// Merges a block's result into out and lse. A row has `row_threads` threads of one warp, each with
/// four elements at a time; the first writes lse.
template <class Element>
__global__ void merge_softmax_kernel(float* out, float* lse, const Element* block_out, const float* block_lse,
                                     std::int64_t rows, int row_threads, int d_v) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t row = i / row_threads;
  const int part = static_cast<int>(i % row_threads);
  const float other = row < rows ? block_lse[row] : minus_infinity, own = row < rows ? lse[row] : 0.0F;
  __syncwarp();  // a row's threads are in one warp: all have read before one writes
  if (other == minus_infinity) return;
  const float weight = 1.0F / (1.0F + expf(own - other));
  for (int c = 4 * part; c < d_v; c += 4 * row_threads) {
    float4& into = *reinterpret_cast<float4*>(out + row * d_v + c);
    const float4 x = into, y = four_at(block_out + row * d_v + c);
    into = {x.x + weight * (y.x - x.x), x.y + weight * (y.y - x.y), x.z + weight * (y.z - x.z),
            x.w + weight * (y.w - x.w)};
  }
  if (part == 0) lse[row] = fmaxf(own, other) + log1pf(expf(-fabsf(own - other)));
}

/// Sets delta to rowsum(d_o (.) out). A warp has one row.
template <class Element>
__global__ void softmax_delta_kernel(float* delta, const Bf16* d_o, const Element* out, std::int64_t rows,
                                     int d_v) {
  const std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (row >= rows) return;
  float sum = 0.0F;
  for (int c = 2 * lane(); c < d_v; c += 64) {
    const float2 x = load_pair(d_o + row * d_v + c), y = two_at(out + row * d_v + c);
    sum += x.x * y.x + x.y * y.y;
  }
  sum = warp_sum(sum);
  if (lane() == 0) delta[row] = sum;
}

/// Calls f with x as a pointer to elements of type `dtype`.
template <class Function>
cudaError_t with_elements(const void* x, Dtype dtype, Function f) {
  return dtype == Dtype::bf16 ? f(static_cast<const Bf16*>(x)) : f(static_cast<const float*>(x));
}

unsigned blocks(std::int64_t count) { return static_cast<unsigned>((count + threads - 1) / threads); }

cudaError_t softmax_block(cudaStream_t stream, const SoftmaxBlock::Operands<OnDevice>& x,
                          const SoftmaxShape& shape) {
  if (shape.body == SoftmaxBody::cudnn) return cudnn_softmax_block(stream, x, shape);
  const dim3 grid(static_cast<unsigned>(tiles_of(shape.q_tokens, row_tile)),
                  static_cast<unsigned>(shape.heads));
  return with_widths({.d_k = shape.d_k, .d_v = shape.d_v}, [&](auto d_k, auto d_v) {
    return launch(stream, grid, threads, QueryTile<d_k(), d_v()>::shared_bytes,
                  softmax_block_kernel<d_k(), d_v()>, static_cast<float*>(x.out), x.lse, x.in,
                  SoftmaxMask(stream, shape));
  });
}

cudaError_t merge_softmax(cudaStream_t stream, const MergeSoftmax::Operands<OnDevice>& x,
                          const SoftmaxShape& shape) {
  const std::int64_t rows = shape.q_tokens * shape.heads;
  const int row_threads = shape.d_v <= 64 ? 16 : 32;
  return with_elements(x.block_out, shape.out_dtype, [&](const auto* block_out) {
    merge_softmax_kernel<<<blocks(rows * row_threads), threads, 0, stream>>>(
        x.out, x.lse, block_out, x.block_lse, rows, row_threads, static_cast<int>(shape.d_v));
    return cudaGetLastError();
  });
}

cudaError_t softmax_delta(cudaStream_t stream, const SoftmaxDelta::Operands<OnDevice>& x,
                          const SoftmaxShape& shape) {
  const std::int64_t rows = shape.q_tokens * shape.heads;
  return with_elements(x.out, shape.out_dtype, [&](const auto* out) {
    softmax_delta_kernel<<<blocks(rows * 32), threads, 0, stream>>>(x.delta, x.d_o, out, rows,
                                                                    static_cast<int>(shape.d_v));
    return cudaGetLastError();
  });
}

const RegisteredCudaKernel registered[]{
    device_body<SoftmaxBlock>(softmax_block, refused_by_cudnn, lacks_seen_keys),
    device_body<MergeSoftmax>(merge_softmax),
    device_body<SoftmaxDelta>(softmax_delta),
};

}  // namespace
}  // namespace baton
