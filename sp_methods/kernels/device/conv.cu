// SPDX-License-Identifier: Apache-2.0
// The device bodies of the convolution before q, k and v, of one document. A block has a row of one
// head, a thread a channel, so rows are read and written coalesced. Weight gradients are sums over
// tokens: a block has some weights of the channels of a head in one run of tokens, and a second
// kernel adds up the runs. Both add in a fixed order.
#include <algorithm>

#include "sp_methods/kernels/conv.hpp"
#include "sp_methods/kernels/device/tile/tile.cuh"
#include "sp_methods/kernels/device/workspace.cuh"

namespace baton {
namespace {

/// A run in numbers that a kernel takes, and a thread's element of it.
struct Part {
  std::int64_t heads, row, channels, taps, tokens, first;
  bool has_unit_rows;

  explicit Part(const ConvShape& p)
      : heads(p.heads),
        row(p.row()),
        channels(p.channels()),
        taps(p.taps),
        tokens(p.tokens),
        first(p.first),
        has_unit_rows(p.has_unit_rows) {}

  __device__ std::int64_t token() const { return first + blockIdx.x / heads; }
  /// The place of the thread's element in a token's row.
  __device__ std::int64_t at() const { return blockIdx.x % heads * blockDim.x + threadIdx.x; }
  /// Its place in rows of which the first is that of token `first`.
  __device__ std::int64_t place() const { return blockIdx.x / heads * row + at(); }
  /// The place of its first weight.
  __device__ std::int64_t weights() const { return at() % channels * taps; }
};

__device__ float logistic(float z) { return 1 / (1 + expf(-z)); }

/// Element `at` of x of token t, which may stand in the halo.
__device__ float row_value(const Part& p, const Bf16* x, const Bf16* halo, std::int64_t t, std::int64_t at) {
  if (t >= 0) return __bfloat162float(x[t * p.row + at]);
  return halo == nullptr ? 0 : __bfloat162float(halo[(t + p.taps - 1) * p.row + at]);
}

/// The sum of the thread's element before the activation.
__device__ float sum_of(const Part& p, const ConvInputs<OnDevice>& in) {
  const Bf16* w = in.w + p.weights();
  float z = 0;
  for (std::int64_t i = 0; i < p.taps; ++i)
    z += __bfloat162float(w[i]) * row_value(p, in.x, in.halo, p.token() - p.taps + 1 + i, p.at());
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

__global__ void rows_kernel(Part p, Conv::Operands<OnDevice> x) {
  const float z = sum_of(p, x.in), value = z * logistic(z);
  const float scale = p.has_unit_rows ? rsqrtf(block_sum(value * value) + unit_row_epsilon) : 1;
  x.y[p.place()] = __float2bfloat16(scale * value);
}

__global__ void activation_kernel(Part p, ConvActivationGradients::Operands<OnDevice> x) {
  const float z = sum_of(p, x.in), part = logistic(z), value = z * part;
  float of_y = __bfloat162float(x.dy[p.place()]);
  if (p.has_unit_rows) {
    const float scale = rsqrtf(block_sum(value * value) + unit_row_epsilon);
    const float along = block_sum(scale * value * of_y);
    of_y = scale * (of_y - scale * value * along);
  }
  x.dz[p.place()] = of_y * part * (1 + z * (1 - part));
}

__global__ void input_kernel(Part p, ConvInputGradients::Operands<OnDevice> x) {
  const Bf16* w = x.w + p.weights();
  const std::int64_t s = p.token();
  float sum = x.later == nullptr ? 0 : x.later[p.place()];
  for (std::int64_t t = max(s, std::int64_t{0}); t < min(s + p.taps, p.tokens); ++t)
    sum += __bfloat162float(w[s - t + p.taps - 1]) * x.dz[t * p.row + p.at()];
  if (x.dx == nullptr)
    x.back[p.place()] = sum;
  else
    x.dx[p.place()] = __float2bfloat16(sum);
}

/// Rows of threads, each of which adds up every eighth token of a run.
constexpr int token_threads = 8;
/// Weights of a channel that a block has, for which dz and x are read once.
constexpr int block_taps = 4;

/// The runs of tokens that blocks of weight_kernel add up: few, so that adding them up is cheap.
struct TokenRuns {
  static constexpr std::int64_t most = 64, least_tokens = 256;
  std::int64_t tokens, count;

  explicit TokenRuns(const ConvShape& p)
      : tokens(std::max(least_tokens, (p.tokens + most - 1) / most)),
        count((p.tokens + tokens - 1) / tokens) {}
};

std::int64_t weight_count(const ConvShape& p) { return p.channels() * p.taps; }

/// Sets sums [runs, channels, taps] to the parts of dw of runs of `run` tokens. A block has a run,
/// the channels of a head and `block_taps` of their weights.
__global__ __launch_bounds__(128 * token_threads) void weight_kernel(
    Part p, ConvWeightGradients::Operands<OnDevice> x, float* sums, std::int64_t run) {
  __shared__ float4 shared[token_threads][128];
  const std::int64_t groups = (p.taps + block_taps - 1) / block_taps;
  const std::int64_t channel = blockIdx.x / groups * blockDim.x + threadIdx.x;
  const std::int64_t weight = blockIdx.x % groups * block_taps;
  const std::int64_t begin = blockIdx.y * run, end = min(begin + run, p.tokens);
  float4 sum{};
  for (std::int64_t at = channel; at < p.row; at += p.channels)
    for (std::int64_t t = begin + threadIdx.y; t < end; t += token_threads) {
      const float dz = x.dz[t * p.row + at];
      const auto row = [&](int i) {
        return weight + i < p.taps ? row_value(p, x.x, x.halo, t - p.taps + 1 + weight + i, at) : 0;
      };
      sum = {fmaf(dz, row(0), sum.x), fmaf(dz, row(1), sum.y), fmaf(dz, row(2), sum.z),
             fmaf(dz, row(3), sum.w)};
    }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y >= block_taps || weight + threadIdx.y >= p.taps) return;
  float all = 0;
  for (const auto& of_row : shared) all += reinterpret_cast<const float*>(&of_row[threadIdx.x])[threadIdx.y];
  sums[(blockIdx.y * p.channels + channel) * p.taps + weight + threadIdx.y] = all;
}

/// Adds the parts of `runs` runs to dw, a thread for each weight.
__global__ void add_runs_kernel(float* dw, const float* sums, std::int64_t weights, std::int64_t runs) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= weights) return;
  float sum = 0;
  for (std::int64_t run = 0; run < runs; ++run) sum += sums[run * weights + at];
  dw[at] += sum;
}

/// The body that launches `kernel` with a block for each row of a head.
template <class Contract, void (*kernel)(Part, typename Contract::template Operands<OnDevice>)>
cudaError_t by_rows(cudaStream_t stream, const typename Contract::template Operands<OnDevice>& x,
                    const ConvShape& p) {
  kernel<<<static_cast<unsigned>(p.count * p.heads), static_cast<unsigned>(p.width), 0, stream>>>(Part(p), x);
  return cudaGetLastError();
}

cudaError_t weights(cudaStream_t stream, const ConvWeightGradients::Operands<OnDevice>& x,
                    const ConvShape& p) {
  constexpr unsigned adders = 128;
  const TokenRuns runs(p);
  const dim3 threads(static_cast<unsigned>(p.width), token_threads);
  const dim3 blocks(static_cast<unsigned>(p.heads / p.batch * ((p.taps + block_taps - 1) / block_taps)),
                    static_cast<unsigned>(runs.count));
  auto* sums = reinterpret_cast<float*>(Workspace::shared().get());
  weight_kernel<<<blocks, threads, 0, stream>>>(Part(p), x, sums, runs.tokens);
  add_runs_kernel<<<static_cast<unsigned>((weight_count(p) + adders - 1) / adders), adders, 0, stream>>>(
      x.dw, sums, weight_count(p), runs.count);
  return cudaGetLastError();
}

Refusal lacks_sums(const ConvShape& p) {
  return Workspace::shared().lacks(static_cast<std::size_t>(TokenRuns(p).count * weight_count(p)) *
                                   sizeof(float));
}

const RegisteredCudaKernel registered[]{
    device_body<Conv>(by_rows<Conv, rows_kernel>),
    device_body<ConvActivationGradients>(by_rows<ConvActivationGradients, activation_kernel>),
    device_body<ConvInputGradients>(by_rows<ConvInputGradients, input_kernel>),
    device_body<ConvWeightGradients>(weights, nullptr, lacks_sums)};

}  // namespace
}  // namespace baton
