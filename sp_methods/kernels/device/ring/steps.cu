// SPDX-License-Identifier: Apache-2.0
// Bodies of the small local steps of a ring: a thread has four neighbouring elements where all pointers allow, else one.
#include "sp_methods/kernels/device/ring/steps.cuh"
#include "sp_methods/kernels/device/tile/tile.cuh"

namespace baton {
namespace {

constexpr int threads = 256;

/// So many elements that move as one.
template <class Element, int count>
struct alignas(sizeof(Element) * count) Pack {
  Element x[count];
};

__device__ float wide(float x) { return x; }
__device__ float wide(Bf16 x) { return __bfloat162float(x); }
__device__ void set(float& into, float x) { into = x; }
__device__ void set(Bf16& into, float x) { into = __float2bfloat16(x); }

struct Sum {
  __device__ float operator()(float x, float y) const { return x + y; }
};
struct Product {
  __device__ float operator()(float x, float y) const { return x * y; }
};
struct Second {
  __device__ float operator()(float, float y) const { return y; }
};

/// into = f(into, from).
template <int count, class Function, class Into, class From>
__global__ void elements_kernel(Into* into, const From* from, std::int64_t packs) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i >= packs) return;
  auto& to = reinterpret_cast<Pack<Into, count>*>(into)[i];
  const auto other = reinterpret_cast<const Pack<From, count>*>(from)[i];
  auto own = to;
#pragma unroll
  for (int n = 0; n < count; ++n) set(own.x[n], Function{}(wide(own.x[n]), wide(other.x[n])));
  to = own;
}

__global__ void fill_kernel(float* into, float value, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i < count) into[i] = value;
}

unsigned blocks(std::int64_t count) { return static_cast<unsigned>((count + threads - 1) / threads); }

template <class Function, class Into, class From>
cudaError_t apply(cudaStream_t stream, Into* into, const From* from, std::int64_t count) {
  constexpr int width = 4;
  const auto is_aligned = [](const void* x) { return reinterpret_cast<std::uintptr_t>(x) % 16 == 0; };
  if (count % width == 0 && is_aligned(into) && is_aligned(from)) {
    elements_kernel<width, Function>
        <<<blocks(count / width), threads, 0, stream>>>(into, from, count / width);
  } else {
    elements_kernel<1, Function><<<blocks(count), threads, 0, stream>>>(into, from, count);
  }
  return cudaGetLastError();
}

}  // namespace

cudaError_t ring_fill(cudaStream_t stream, float* into, float value, std::int64_t count) {
  fill_kernel<<<blocks(count), threads, 0, stream>>>(into, value, count);
  return cudaGetLastError();
}

cudaError_t ring_add(cudaStream_t stream, float* into, const float* from, std::int64_t count) {
  return apply<Sum>(stream, into, from, count);
}
cudaError_t ring_add(cudaStream_t stream, Bf16* into, const float* from, std::int64_t count) {
  return apply<Sum>(stream, into, from, count);
}
cudaError_t ring_narrow(cudaStream_t stream, Bf16* into, const float* from, std::int64_t count) {
  return apply<Second>(stream, into, from, count);
}
cudaError_t ring_multiply(cudaStream_t stream, float* into, const float* by, std::int64_t count) {
  return apply<Product>(stream, into, by, count);
}

}  // namespace baton
