// SPDX-License-Identifier: Apache-2.0
// The device bodies of the convolution before q, k and v, of one document. A thread has eight
// channels of a strip of tokens and keeps the rows that the weights reach in registers, so that a
// row is read once; neighbouring threads have a row of a head. Weight gradients are sums over
// tokens: a thread adds up a strip, and a second kernel the strips, both in a fixed order.
#include <algorithm>

#include "sp_methods/kernels/conv.hpp"
#include "sp_methods/kernels/device/tile/eight.cuh"
#include "sp_methods/kernels/device/tile/tile.cuh"
#include "sp_methods/kernels/device/workspace.cuh"
#include "sp_methods/kernels/device_limits.hpp"

namespace baton {
namespace {

constexpr int most_taps = device_taps;
constexpr int most_threads = 256;
constexpr std::int64_t strip_tokens = 16;

/// Numbers of a call that a kernel takes, and a thread's part of the run.
struct Strip {
  std::int64_t row, channels, tokens, first, count, length;
  int taps, weights, lanes;  // threads that have a row of a head
  bool has_unit_rows;

  Strip(const ConvShape& p, std::int64_t length)
      : row(p.row()),
        channels(p.channels()),
        tokens(p.tokens),
        first(p.first),
        count(p.count),
        length(length),
        taps(static_cast<int>(p.taps)),
        weights(static_cast<int>(p.weights())),
        lanes(static_cast<int>(p.width) / pack),
        has_unit_rows(p.has_unit_rows) {}

  __device__ std::int64_t begin() const { return first + blockIdx.x * length; }
  __device__ std::int64_t end() const { return min(begin() + length, first + count); }
  /// False for a thread that has no channels and must not store; it reads those of the first one.
  __device__ bool has_channels() const { return number() * pack < row; }
  /// The first of the thread's elements in a token's row.
  __device__ std::int64_t at() const { return has_channels() ? number() * pack : 0; }
  /// Its place in rows of which the first is that of token `first`.
  __device__ std::int64_t place(std::int64_t token) const { return (token - first) * row + at(); }
  __device__ std::int64_t channel() const { return at() % channels; }

  /// The sum over a row of a head of what each of its threads has.
  __device__ float row_sum(const Eight& x, const Eight& y) const {
    float sum = 0;
#pragma unroll
    for (int c = 0; c < pack; ++c) sum = fmaf(x.x[c], y.x[c], sum);
    for (int lane = lanes / 2; lane > 0; lane /= 2) sum += __shfl_xor_sync(~0U, sum, lane);
    return sum;
  }

 private:
  __device__ std::int64_t number() const {
    return static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x;
  }
};

/// Rows that follow one another, one for each weight; the last one is that of the newest token.
struct Window {
  Eight rows[most_taps];

  __device__ void push(const Eight& row) {
#pragma unroll
    for (int i = 0; i + 1 < most_taps; ++i) rows[i] = rows[i + 1];
    rows[most_taps - 1] = row;
  }
};

/// The row of token t of x, which may stand in the halo.
__device__ Eight row_of(const Strip& p, const Bf16* x, const Bf16* halo, std::int64_t t) {
  if (t >= 0) return load(x + t * p.row + p.at(), 0);
  return halo == nullptr || t + p.taps <= 0 ? Eight{} : load(halo + (t + p.taps - 1) * p.row + p.at(), 0);
}
/// Those before the strip, but for the oldest one.
__device__ Window rows_before(const Strip& p, const Bf16* x, const Bf16* halo) {
  Window window{};
#pragma unroll
  for (int i = 1; i < most_taps; ++i) window.push(row_of(p, x, halo, p.begin() - most_taps + i));
  return window;
}

/// The weights of the thread's channels as of `most_taps` ones; the oldest may be zero.
struct Weights {
  Eight of[most_taps], bias;

  __device__ Weights(const Strip& p, const Bf16* w) {
    const int absent = most_taps - p.taps;
#pragma unroll
    for (int i = 0; i < most_taps; ++i)
#pragma unroll
      for (int c = 0; c < pack; ++c)
        of[i].x[c] = i < absent ? 0 : __bfloat162float(w[(p.channel() + c) * p.weights + i - absent]);
#pragma unroll
    for (int c = 0; c < pack; ++c)
      bias.x[c] = p.weights == p.taps ? 0 : __bfloat162float(w[(p.channel() + c) * p.weights + p.taps]);
  }
  /// Adds the sum of rows times weights, of which `reversed` takes the newest first.
  template <bool reversed>
  __device__ void add(Eight& sum, const Window& window) const {
#pragma unroll
    for (int i = 0; i < most_taps; ++i)
#pragma unroll
      for (int c = 0; c < pack; ++c)
        sum.x[c] = fmaf(of[reversed ? most_taps - 1 - i : i].x[c], window.rows[i].x[c], sum.x[c]);
  }
};

/// z of a token, its logistic function, and their product before its norm is taken.
struct Activation {
  Eight z, part, value;

  __device__ Activation(const Weights& w, const Window& window) : z(w.bias) {
    w.add<false>(z, window);
#pragma unroll
    for (int c = 0; c < pack; ++c) {
      part.x[c] = sigmoid(z.x[c]);
      value.x[c] = z.x[c] * part.x[c];
    }
  }
  /// The factor that gives a row of a head length one.
  __device__ float scale(const Strip& p) const {
    return p.has_unit_rows ? rsqrtf(p.row_sum(value, value) + unit_row_epsilon) : 1;
  }
};

__global__ __launch_bounds__(most_threads) void rows_kernel(Strip p, Conv::Operands<OnDevice> x) {
  const Weights w(p, x.in.w);
  Window window = rows_before(p, x.in.x, x.in.halo);
#pragma unroll 4
  for (std::int64_t t = p.begin(); t < p.end(); ++t) {
    window.push(row_of(p, x.in.x, x.in.halo, t));
    Activation y(w, window);
    const float scale = y.scale(p);
#pragma unroll
    for (float& value : y.value.x) value *= scale;
    if (p.has_channels()) store(x.y + p.place(t), 0, y.value);
  }
}

__global__ __launch_bounds__(most_threads) void activation_kernel(
    Strip p, ConvActivationGradients::Operands<OnDevice> x) {
  const Weights w(p, x.in.w);
  Window window = rows_before(p, x.in.x, x.in.halo);
#pragma unroll 4
  for (std::int64_t t = p.begin(); t < p.end(); ++t) {
    window.push(row_of(p, x.in.x, x.in.halo, t));
    const Activation y(w, window);
    Eight d = load(x.dy + p.place(t), 0);
    const float scale = y.scale(p), along = p.has_unit_rows ? scale * scale * p.row_sum(y.value, d) : 0;
#pragma unroll
    for (int c = 0; c < pack; ++c)
      d.x[c] = scale * (d.x[c] - along * y.value.x[c]) * y.part.x[c] * (1 + y.z.x[c] * (1 - y.part.x[c]));
    if (p.has_channels()) store(x.dz + p.place(t), 0, d);
  }
}

__global__ __launch_bounds__(most_threads) void input_kernel(Strip p,
                                                             ConvInputGradients::Operands<OnDevice> x) {
  const Weights w(p, x.w);
  const auto row = [&](std::int64_t t) {
    return t < 0 || t >= p.tokens ? Eight{} : load(x.dz + t * p.row + p.at(), 0);
  };
  Window window{};  // of this token and those behind it
#pragma unroll
  for (int i = 0; i + 1 < most_taps; ++i) window.push(row(p.begin() + i));
#pragma unroll 4
  for (std::int64_t s = p.begin(); s < p.end(); ++s) {
    window.push(row(s + most_taps - 1));
    Eight sum = x.later == nullptr ? Eight{} : load(x.later + p.place(s), 0);
    w.add<true>(sum, window);
    if (!p.has_channels()) continue;
    if (x.dx == nullptr)
      store(x.back + p.place(s), 0, sum);
    else
      store(x.dx + p.place(s), 0, sum);
  }
}

/// Sets sums [strips, channels, weights] to the parts of dw of strips of each sequence of a batch.
__global__ __launch_bounds__(most_threads) void weight_kernel(Strip p,
                                                              ConvWeightGradients::Operands<OnDevice> x,
                                                              float* sums) {
  Window window = rows_before(p, x.x, x.halo);
  Eight sum[most_taps]{}, of_bias{};
#pragma unroll 4
  for (std::int64_t t = p.begin(); t < p.end(); ++t) {
    window.push(row_of(p, x.x, x.halo, t));
    const Eight dz = load(x.dz + t * p.row + p.at(), 0);
#pragma unroll
    for (int i = 0; i < most_taps; ++i)
#pragma unroll
      for (int c = 0; c < pack; ++c) sum[i].x[c] = fmaf(dz.x[c], window.rows[i].x[c], sum[i].x[c]);
#pragma unroll
    for (int c = 0; c < pack; ++c) of_bias.x[c] += dz.x[c];
  }
  if (!p.has_channels()) return;
  const std::int64_t strip = blockIdx.x * (p.row / p.channels) + p.at() / p.channels;
  float* const into = sums + (strip * p.channels + p.channel()) * p.weights;
#pragma unroll
  for (int i = 0; i < most_taps; ++i)
#pragma unroll
    for (int c = 0; c < pack; ++c)
      if (const int weight = i - (most_taps - p.taps); weight >= 0)
        into[c * p.weights + weight] = sum[i].x[c];
#pragma unroll
  for (int c = 0; c < pack; ++c)
    if (p.weights > p.taps) into[c * p.weights + p.taps] = of_bias.x[c];
}

constexpr int weights_of_block = 32, adders_of_weight = 8;

/// Adds the parts of `strips` strips to dw.
__global__ void add_strips_kernel(float* dw, const float* sums, std::int64_t weights, std::int64_t strips) {
  __shared__ float parts[adders_of_weight][weights_of_block];
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * weights_of_block + threadIdx.x;
  float sum = 0;
  for (std::int64_t strip = threadIdx.y; strip < strips && at < weights; strip += adders_of_weight)
    sum += sums[strip * weights + at];
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || at >= weights) return;
  for (int y = 1; y < adders_of_weight; ++y) sum += parts[y][threadIdx.x];
  dw[at] += sum;
}

/// Launches `kernel` with a thread for eight channels of each strip of `length` of a call's rows.
template <class... Arguments>
cudaError_t launch_on_strips(cudaStream_t stream, const ConvShape& p, std::int64_t length,
                             void (*kernel)(Strip, Arguments...), const Arguments&... arguments) {
  const std::int64_t packs = p.row() / pack;
  const std::int64_t threads = std::min<std::int64_t>(most_threads, (packs + 31) / 32 * 32);
  const dim3 blocks(static_cast<unsigned>((p.count + length - 1) / length),
                    static_cast<unsigned>((packs + threads - 1) / threads));
  kernel<<<blocks, static_cast<unsigned>(threads), 0, stream>>>(Strip(p, length), arguments...);
  return cudaGetLastError();
}

template <class Contract, void (*kernel)(Strip, typename Contract::template Operands<OnDevice>)>
cudaError_t by_rows(cudaStream_t stream, const typename Contract::template Operands<OnDevice>& x,
                    const ConvShape& p) {
  return launch_on_strips(stream, p, strip_tokens, kernel, x);
}

/// The tokens of a strip of weight_kernel: of few strips, so that adding them up is cheap.
std::int64_t strip_of_weights(const ConvShape& p) {
  constexpr std::int64_t most_strips = 512, least_tokens = 32;
  return std::max(least_tokens, (p.count + most_strips - 1) / most_strips);
}
std::int64_t strips_of_weights(const ConvShape& p) {
  const std::int64_t length = strip_of_weights(p);
  return (p.count + length - 1) / length * p.batch;
}

cudaError_t weights(cudaStream_t stream, const ConvWeightGradients::Operands<OnDevice>& x,
                    const ConvShape& p) {
  auto* sums = reinterpret_cast<float*>(Workspace::shared().get());
  const auto code = launch_on_strips(stream, p, strip_of_weights(p), weight_kernel, x, sums);
  if (code != cudaSuccess) return code;
  const std::int64_t count = p.channels() * p.weights();
  add_strips_kernel<<<static_cast<unsigned>((count + weights_of_block - 1) / weights_of_block),
                      dim3(weights_of_block, adders_of_weight), 0, stream>>>(x.dw, sums, count,
                                                                             strips_of_weights(p));
  return cudaGetLastError();
}

Refusal lacks_sums(const ConvShape& p) {
  return Workspace::shared().lacks(
      static_cast<std::size_t>(strips_of_weights(p) * p.channels() * p.weights()) * sizeof(float));
}

const RegisteredCudaKernel registered[]{
    device_body<Conv>(by_rows<Conv, rows_kernel>),
    device_body<ConvActivationGradients>(by_rows<ConvActivationGradients, activation_kernel>),
    device_body<ConvInputGradients>(by_rows<ConvInputGradients, input_kernel>),
    device_body<ConvWeightGradients>(weights, nullptr, lacks_sums)};

}  // namespace
}  // namespace baton
