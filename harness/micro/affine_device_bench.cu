// SPDX-License-Identifier: Apache-2.0
// Times of the combines of affine maps on one device, built by preset cuda: apply and compose as
// kernels of their own, and the products of a block whose matrix is in place already, as in the
// middle of a chain, by tensor cores and by plain multiplications.
//
// Medians of 21 graphs of 20 launches each, after 3, over sets of operands that turn. Their results
// are checked by tests/collectives/executors/cuda/affine_test.cu.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/executors/cuda/affine.cuh"
#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/memory.cuh"
#include "collectives/executors/cuda/products.cuh"
#include "collectives/schedule/schedule.hpp"
#include "harness/micro/device_times.cuh"

namespace baton {
namespace {

/// The median seconds of a launch by `enqueue`, over rounds of 20 launches each.
double median_seconds(const std::function<void(cudaStream_t, int)>& enqueue) {
  constexpr int launches = 20, warm_up = 3, rounds = 21;
  cudaStream_t stream;
  cudaEvent_t start, stop;
  cuda(cudaStreamCreate(&stream));
  cuda(cudaEventCreate(&start));
  cuda(cudaEventCreate(&stop));
  cudaGraph_t graph;
  cudaGraphExec_t recording;
  cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < launches; ++i) enqueue(stream, i);
  cuda(cudaStreamEndCapture(stream, &graph));
  cuda(cudaGraphInstantiate(&recording, graph, 0));
  std::vector<float> times;
  for (int i = 0; i < warm_up + rounds; ++i) {
    cuda(cudaEventRecord(start, stream));
    cuda(cudaGraphLaunch(recording, stream));
    cuda(cudaEventRecord(stop, stream));
    cuda(cudaEventSynchronize(stop));
    float milliseconds = 0;
    cuda(cudaEventElapsedTime(&milliseconds, start, stop));
    if (i >= warm_up) times.push_back(milliseconds);
  }
  cuda(cudaGraphExecDestroy(recording));
  cuda(cudaGraphDestroy(graph));
  cuda(cudaEventDestroy(start));
  cuda(cudaEventDestroy(stop));
  cuda(cudaStreamDestroy(stream));
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[rounds / 2] * 1e-3 / launches;
}

void print_rate(const std::string& what, double flops, double seconds) {
  std::printf("  %-44s %9.2f us  %6.1f TFLOP/s\n", what.c_str(), seconds * 1e6, flops / seconds * 1e-12);
}

void time_combine(std::int64_t heads, std::int64_t values, std::int64_t keys, bool composes,
                  bool transposed) {
  const MapForm form{.kind = MapKind::affine, .share = values, .transposed = transposed};
  Schedule s(0, 1);
  const Map like{{}, {0, 0, heads * values * keys}, keys, form};
  for (int set = 0; set < 2; ++set) {
    const Map earlier = s.scratch_map("earlier", like), later = s.scratch_map("later", like),
              into = s.scratch_map("into", like);
    if (composes)
      s.combine(into, earlier, later);
    else
      s.combine(into.only_state(), earlier.only_state(), later);
  }
  const DeviceMemory memory(s);
  std::vector<DeviceOperands> operands;
  for (const Step& step : s.steps()) operands.push_back(memory.operands(step));
  const double seconds = median_seconds([&](cudaStream_t stream, int i) {
    combine_affine_on_device(stream, operands[i % 2], s.steps()[i % 2].combine);
  });
  print_rate(std::string(composes ? "compose, " : "apply, ") + std::to_string(heads) + " heads [" +
                 std::to_string(values) + ", " + std::to_string(keys) + "]" +
                 (transposed ? ", transposed" : ""),
             s.steps()[0].combine_flops(), seconds);
}

/// Products of rows of 128 by plain multiplications. A thread has a quarter of a column of the
/// matrix.
class PlainProducts {
 public:
  static constexpr unsigned width = 128, share = width * width / product_threads;

  __device__ explicit PlainProducts(const Matrices& by) {
    const unsigned column = threadIdx.x % width, first = threadIdx.x / width * share;
#pragma unroll
    for (unsigned b = 0; b < share; ++b) matrix_[b] = by.first[column * width + first + b];
  }

  /// Computes the four parts of a row's sums. They are not added up, in favour of this body.
  __device__ void multiply(float* y, const float* x, unsigned stride) const {
    const unsigned column = threadIdx.x % width, first = threadIdx.x / width * share;
#pragma unroll 4
    for (unsigned row = 0; row < 16; ++row) {
      float sums[4] = {};
#pragma unroll
      for (unsigned b = 0; b < share; b += 4) {
        const float4 four = *reinterpret_cast<const float4*>(x + row * stride + first + b);
        sums[0] = fmaf(four.x, matrix_[b], sums[0]), sums[1] = fmaf(four.y, matrix_[b + 1], sums[1]);
        sums[2] = fmaf(four.z, matrix_[b + 2], sums[2]), sums[3] = fmaf(four.w, matrix_[b + 3], sums[3]);
      }
      y[(threadIdx.x / width % 2 * 16 + row) * width + column] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
  }

 private:
  float matrix_[share];
};

template <bool tensor_cores>
__global__ void __launch_bounds__(product_threads)
    resident_kernel(const __grid_constant__ Matrices by, float* out, int times) {
  __shared__ alignas(16) float x[most_tile_elements], y[2 * most_tile_elements], room[most_tile_elements];
  for (unsigned i = threadIdx.x; i < most_tile_elements; i += product_threads) x[i] = y[i] = 0;
  Products<128> products(by);
  const PlainProducts plain(by);
  for (int i = 0; i < times; ++i) {
    __syncthreads();
    if constexpr (tensor_cores)
      products.multiply(y, x, room, 0, 16);
    else
      plain.multiply(y, x, 144);
    __syncthreads();
    x[threadIdx.x] = y[threadIdx.x] + y[4 * threadIdx.x];
  }
  out[blockIdx.x * product_threads + threadIdx.x] = x[threadIdx.x];
}

void time_resident(int multiprocessors) {
  constexpr int times = 1000;
  DeviceBytes matrix(128 * 128 * 4), out(std::size_t(multiprocessors) * product_threads * 4);
  cuda(cudaMemset(matrix.get(), 0, matrix.bytes()));
  const Matrices by{reinterpret_cast<const float*>(matrix.get()), 128, 128, 0, false};
  const double flops = 2.0 * 16 * 128 * 128 * times * multiprocessors;
  auto* const into = reinterpret_cast<float*>(out.get());
  print_rate("16 rows of 128, matrix in place, tensor cores", flops,
             median_seconds([&](cudaStream_t stream, int) {
               resident_kernel<true><<<multiprocessors, product_threads, 0, stream>>>(by, into, times);
             }));
  print_rate("the same, plain multiplications", flops, median_seconds([&](cudaStream_t stream, int) {
               resident_kernel<false><<<multiprocessors, product_threads, 0, stream>>>(by, into, times);
             }));
}

void time_all() {
  cudaDeviceProp device;
  cuda(cudaGetDeviceProperties(&device, 0));
  std::printf("%s, %d multiprocessors\n", device.name, device.multiProcessorCount);
  time_resident(device.multiProcessorCount);
  for (const std::int64_t heads : {16, 32, 48, 64, 96, 256}) time_combine(heads, 128, 128, false, false);
  for (const std::int64_t heads : {16, 32, 96}) time_combine(heads, 128, 128, true, false);
  for (const bool transposed : {false, true}) time_combine(64, 128, 128, true, transposed);
  for (const std::int64_t keys : {64, 96}) time_combine(64, 128, keys, false, false);
}

}  // namespace
}  // namespace baton

int main() { return baton::run_device_bench("affine_device_bench", baton::time_all); }
