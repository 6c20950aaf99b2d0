// SPDX-License-Identifier: Apache-2.0
// The device bodies of fill, add, narrow and extend_decay. A thread has four neighbouring elements
// if the count and the alignment of all pointers allow, else one.
#include "sp_methods/kernels/device/tile/tile.cuh"
#include "sp_methods/kernels/left_product_contracts.hpp"
#include "sp_methods/kernels/ring_contracts.hpp"

namespace baton {
namespace {

constexpr int threads = 256;

/// `count` elements that move as one.
template <class Element, int count>
struct alignas(sizeof(Element) * count) Pack {
  Element x[count];
};

__device__ float as_float(float x) { return x; }
__device__ float as_float(Bf16 x) { return __bfloat162float(x); }
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

/// into = f(into, from): add, narrow and extend_decay.
template <int count, class Function, class Into, class From>
__global__ void elementwise_kernel(Into* into, const From* from, std::int64_t packs) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i >= packs) return;
  auto& to = reinterpret_cast<Pack<Into, count>*>(into)[i];
  const auto other = reinterpret_cast<const Pack<From, count>*>(from)[i];
  auto own = to;
#pragma unroll
  for (int n = 0; n < count; ++n) set(own.x[n], Function{}(as_float(own.x[n]), as_float(other.x[n])));
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
    elementwise_kernel<width, Function>
        <<<blocks(count / width), threads, 0, stream>>>(into, from, count / width);
  } else {
    elementwise_kernel<1, Function><<<blocks(count), threads, 0, stream>>>(into, from, count);
  }
  return cudaGetLastError();
}

cudaError_t fill(cudaStream_t stream, const Fill::Operands<OnDevice>& x, const Fill::Parameters& p) {
  fill_kernel<<<blocks(p.count), threads, 0, stream>>>(x.into, p.value, p.count);
  return cudaGetLastError();
}

cudaError_t add(cudaStream_t stream, const Add::Operands<OnDevice>& x, const Add::Parameters& p) {
  if (p.dtype == Dtype::bf16) return apply<Sum>(stream, static_cast<Bf16*>(x.into), x.from, p.count);
  return apply<Sum>(stream, static_cast<float*>(x.into), x.from, p.count);
}

cudaError_t narrow(cudaStream_t stream, const Narrow::Operands<OnDevice>& x, const Narrow::Parameters& p) {
  return apply<Second>(stream, x.into, x.from, p.count);
}

cudaError_t extend_decay(cudaStream_t stream, const ExtendDecay::Operands<OnDevice>& x,
                         const LeftProduct& p) {
  return apply<Product>(stream, x.between, x.decay, p.shape.heads * p.shape.d_k);
}

const RegisteredCudaKernel registered[]{
    device_body<Fill>(fill),
    device_body<Add>(add),
    device_body<Narrow>(narrow),
    device_body<ExtendDecay>(extend_decay),
};

}  // namespace
}  // namespace baton
