// SPDX-License-Identifier: Apache-2.0
// The device bodies of the convolution before q, k and v, of one document. A block has a row of one
// head, a thread a channel, so rows are read and written coalesced. Weight gradients are sums over
// tokens: a block has one weight of all channels of a head, and adds in a fixed order.
#include <array>

#include "sp_methods/kernels/conv.hpp"
#include "sp_methods/kernels/device/tile/tile.cuh"

namespace baton {
namespace {

/// One of q, k and v over a run, in numbers that a kernel takes.
struct Part {
  std::int64_t heads, width, weight_heads, channels, offset, taps, tokens, first, later;
  bool is_unit;

  __device__ std::int64_t row() const { return heads * width; }
  /// The place of the first weight of a channel of a head.
  __device__ std::int64_t weights(std::int64_t head, std::int64_t c) const {
    return (head % weight_heads * channels + offset + c) * taps;
  }
};

/// q, k and v, and whether their rows are divided by their norm.
std::array<Part, 3> parts_of(const ConvShape& p) {
  const auto part = [&](std::int64_t width, std::int64_t offset, bool is_unit) {
    return Part{p.share.heads, width,          p.weight_heads(), p.channels(), offset,
                p.width(),     p.share.tokens, p.first,          p.later,      is_unit && p.has_unit_rows};
  };
  return {part(p.share.d_k, 0, true), part(p.share.d_k, p.share.d_k, true),
          part(p.share.d_v, 2 * p.share.d_k, false)};
}

template <class Rows>
auto pointer(const Rows& rows, int i) {
  return i == 0 ? rows.q : i == 1 ? rows.k : rows.v;
}

__device__ float logistic(float z) { return 1 / (1 + expf(-z)); }

/// x of token t, which may stand in the halo.
__device__ float row_value(const Part& p, const Bf16* x, const Bf16* halo, std::int64_t t, std::int64_t at) {
  if (t >= 0) return __bfloat162float(x[t * p.row() + at]);
  return halo == nullptr ? 0 : __bfloat162float(halo[(t + p.taps - 1) * p.row() + at]);
}

/// The sum of a channel before the activation.
__device__ float sum_of(const Part& p, const Bf16* x, const Bf16* halo, const float* w, std::int64_t t,
                        std::int64_t at) {
  float z = 0;
  for (std::int64_t i = 0; i < p.taps; ++i) z += w[i] * row_value(p, x, halo, t - p.taps + 1 + i, at);
  return z;
}

/// The sum over the threads of a block, on all of them. Widths are multiples of a warp.
__device__ float block_sum(float value) {
  __shared__ float sums[32];
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_xor_sync(~0U, value, lane);
  __syncthreads();
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  float all = 0;
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) all += sums[warp];
  return all;
}

__global__ void rows_kernel(Part p, const Bf16* x, const Bf16* halo, const float* w, Bf16* y) {
  const std::int64_t t = p.first + blockIdx.x / p.heads, head = blockIdx.x % p.heads;
  const std::int64_t at = head * p.width + threadIdx.x;
  const float z = sum_of(p, x, halo, w + p.weights(head, threadIdx.x), t, at);
  const float value = z * logistic(z);
  const float scale = p.is_unit ? rsqrtf(block_sum(value * value) + unit_row_epsilon) : 1;
  y[(t - p.first) * p.row() + at] = __float2bfloat16(scale * value);
}

__global__ void activation_kernel(Part p, const Bf16* x, const Bf16* halo, const float* w, const Bf16* dy,
                                  float* dz) {
  const std::int64_t t = p.first + blockIdx.x / p.heads, head = blockIdx.x % p.heads;
  const std::int64_t at = head * p.width + threadIdx.x, place = (t - p.first) * p.row() + at;
  const float z = sum_of(p, x, halo, w + p.weights(head, threadIdx.x), t, at);
  const float part = logistic(z), value = z * part;
  float of_y = __bfloat162float(dy[place]);
  if (p.is_unit) {
    const float scale = rsqrtf(block_sum(value * value) + unit_row_epsilon);
    const float along = block_sum(scale * value * of_y);
    of_y = scale * (of_y - scale * value * along);
  }
  dz[place] = of_y * part * (1 + z * (1 - part));
}

/// The sum over the tokens [0, tokens) that see token s of their weight times dz.
__device__ float input_gradient(const Part& p, const float* dz, const float* w, std::int64_t s,
                                std::int64_t tokens, std::int64_t at) {
  float sum = 0;
  for (std::int64_t t = max(s, std::int64_t{0}); t < min(s + p.taps, tokens); ++t)
    sum += w[s - t + p.taps - 1] * dz[t * p.row() + at];
  return sum;
}

__global__ void input_kernel(Part p, const float* dz, const float* w, const float* later, Bf16* dx) {
  const std::int64_t s = p.first + blockIdx.x / p.heads, head = blockIdx.x % p.heads;
  const std::int64_t at = head * p.width + threadIdx.x;
  float sum = input_gradient(p, dz, w + p.weights(head, threadIdx.x), s, p.tokens, at);
  if (later != nullptr && s >= p.later) sum += later[(s - p.later) * p.row() + at];
  dx[(s - p.first) * p.row() + at] = __float2bfloat16(sum);
}

__global__ void halo_kernel(Part p, const float* dz, const float* w, std::int64_t count, float* dx) {
  const std::int64_t row = blockIdx.x / p.heads, head = blockIdx.x % p.heads;
  const std::int64_t at = head * p.width + threadIdx.x, s = row - (p.taps - 1);
  dx[row * p.row() + at] = input_gradient(p, dz, w + p.weights(head, threadIdx.x), s, count, at);
}

/// Rows of threads, each of which adds up every eighth token.
constexpr int token_threads = 8;

/// Adds dw of one weight of all channels of a head.
__global__ void weight_kernel(Part p, const Bf16* x, const Bf16* halo, const float* dz, float* dw) {
  __shared__ float sums[token_threads][128];
  const std::int64_t weight_head = blockIdx.x / p.taps, i = blockIdx.x % p.taps;
  float sum = 0;
  for (std::int64_t head = weight_head; head < p.heads; head += p.weight_heads) {
    const std::int64_t at = head * p.width + threadIdx.x;
    for (std::int64_t t = threadIdx.y; t < p.tokens; t += token_threads)
      sum += dz[t * p.row() + at] * row_value(p, x, halo, t - p.taps + 1 + i, at);
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0) return;
  for (int y = 1; y < token_threads; ++y) sum += sums[y][threadIdx.x];
  dw[p.weights(weight_head, threadIdx.x) + i] += sum;
}

/// Launches a kernel for each of q, k and v.
template <class Launch>
cudaError_t for_each_part(const ConvShape& p, const Launch& launch) {
  const std::array<Part, 3> parts = parts_of(p);
  for (int i = 0; i < 3; ++i) {
    launch(parts[i], i);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

unsigned blocks(const ConvShape& p, std::int64_t rows) { return static_cast<unsigned>(rows * p.share.heads); }
unsigned threads(const Part& part) { return static_cast<unsigned>(part.width); }

cudaError_t rows(cudaStream_t stream, const Conv::Operands<OnDevice>& x, const ConvShape& p) {
  return for_each_part(p, [&](const Part& part, int i) {
    rows_kernel<<<blocks(p, p.count), threads(part), 0, stream>>>(
        part, pointer(x.in.x, i), pointer(x.in.halo, i), x.in.w, pointer(x.y, i));
  });
}

cudaError_t activation(cudaStream_t stream, const ConvActivationGradients::Operands<OnDevice>& x,
                       const ConvShape& p) {
  return for_each_part(p, [&](const Part& part, int i) {
    activation_kernel<<<blocks(p, p.count), threads(part), 0, stream>>>(
        part, pointer(x.in.x, i), pointer(x.in.halo, i), x.in.w, pointer(x.dy, i), pointer(x.dz, i));
  });
}

cudaError_t inputs(cudaStream_t stream, const ConvInputGradients::Operands<OnDevice>& x, const ConvShape& p) {
  return for_each_part(p, [&](const Part& part, int i) {
    input_kernel<<<blocks(p, p.count), threads(part), 0, stream>>>(part, pointer(x.dz, i), x.w,
                                                                   pointer(x.later, i), pointer(x.dx, i));
  });
}

cudaError_t halo_gradients(cudaStream_t stream, const ConvHaloGradients::Operands<OnDevice>& x,
                           const ConvShape& p) {
  return for_each_part(p, [&](const Part& part, int i) {
    halo_kernel<<<blocks(p, p.before()), threads(part), 0, stream>>>(part, pointer(x.dz, i), x.w, p.count,
                                                                     pointer(x.dx, i));
  });
}

cudaError_t weights(cudaStream_t stream, const ConvWeightGradients::Operands<OnDevice>& x,
                    const ConvShape& p) {
  return for_each_part(p, [&](const Part& part, int i) {
    const auto count = static_cast<unsigned>(p.weight_heads() * p.width());
    weight_kernel<<<count, dim3(threads(part), token_threads), 0, stream>>>(
        part, pointer(x.in.x, i), pointer(x.in.halo, i), pointer(x.dz, i), x.dw);
  });
}

const RegisteredCudaKernel registered[]{
    device_body<Conv>(rows), device_body<ConvActivationGradients>(activation),
    device_body<ConvInputGradients>(inputs), device_body<ConvHaloGradients>(halo_gradients),
    device_body<ConvWeightGradients>(weights)};

}  // namespace
}  // namespace baton
