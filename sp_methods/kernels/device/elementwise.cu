// SPDX-License-Identifier: Apache-2.0
// The device bodies of fill, add, narrow and extend_decay, and of pack_heads and unpack_heads. A
// thread has four neighbouring elements, or 16 bytes of a head, if sizes and the alignment of all
// pointers allow, else one element.
#include "sp_methods/kernels/device/tile/tile.cuh"
#include "sp_methods/kernels/heads.hpp"
#include "sp_methods/kernels/left_product.hpp"
#include "sp_methods/kernels/softmax.hpp"

namespace baton {
namespace {

constexpr int threads = 256;

/// `count` elements that are loaded and stored as one.
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

/// Sets into = f(into, from), for add, narrow and extend_decay.
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

template <class From>
cudaError_t add_to(cudaStream_t stream, const Add::Operands<OnDevice>& x, const Add::Parameters& p) {
  const auto* from = static_cast<const From*>(x.from);
  if (p.dtype == Dtype::bf16) return apply<Sum>(stream, static_cast<Bf16*>(x.into), from, p.count);
  return apply<Sum>(stream, static_cast<float*>(x.into), from, p.count);
}

cudaError_t add(cudaStream_t stream, const Add::Operands<OnDevice>& x, const Add::Parameters& p) {
  return p.from_dtype == Dtype::bf16 ? add_to<Bf16>(stream, x, p) : add_to<float>(stream, x, p);
}

cudaError_t narrow(cudaStream_t stream, const Narrow::Operands<OnDevice>& x, const Narrow::Parameters& p) {
  return apply<Second>(stream, x.into, x.from, p.count);
}

cudaError_t extend_decay(cudaStream_t stream, const ExtendDecay::Operands<OnDevice>& x,
                         const LeftProduct& p) {
  return apply<Product>(stream, x.between, x.decay, p.shape.heads * p.shape.d_k);
}

__device__ std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
}

/// Offset in `tensor` of element i of the blocks, in units of one element or of 16 bytes.
struct Places {
  std::int64_t tokens, block_row, row, ranks, heads, width, elements;

  __device__ std::int64_t of(std::int64_t i) const {
    const std::int64_t block = i / (tokens * block_row), token = i / block_row % tokens;
    return token * row + block * heads / ranks * width + i % block_row;
  }
};

template <class Unit>
Places places_of(const HeadBlocks& p) {
  const std::int64_t of_unit = static_cast<std::int64_t>(sizeof(Unit)) / bytes_of(p.dtype);
  return {p.tokens, p.block_row() / of_unit, p.row() / of_unit,     p.ranks,
          p.heads,  p.width / of_unit,       p.elements() / of_unit};
}

template <class Unit>
__global__ void pack_kernel(Unit* into, const Unit* tensor, Places places) {
  const std::int64_t i = thread_index();
  if (i < places.elements) into[i] = tensor[places.of(i)];
}

template <class Unit>
__global__ void unpack_kernel(Unit* tensor, const Unit* from, Places places) {
  const std::int64_t i = thread_index();
  if (i < places.elements) tensor[places.of(i)] = from[i];
}

/// Sets element i of the tensor to the sum over the `sharers` blocks of its head, each of one head.
template <class Element>
__global__ void sum_kernel(Element* tensor, const Element* from, Places places, std::int64_t sharers) {
  const std::int64_t i = thread_index();
  if (i >= places.tokens * places.row) return;
  const std::int64_t token = i / places.row, head = i % places.row / places.width;
  const std::int64_t block = places.tokens * places.width;
  const Element* first = from + head * sharers * block + token * places.width + i % places.width;
  float sum = 0;
  for (std::int64_t n = 0; n < sharers; ++n) sum += static_cast<float>(first[n * block]);
  tensor[i] = static_cast<Element>(sum);
}

/// True if a thread can load and store 16 bytes at once.
bool is_wide(const HeadBlocks& p, const void* tensor, const void* blocks) {
  const auto is_aligned = [](const void* x) { return reinterpret_cast<std::uintptr_t>(x) % 16 == 0; };
  return p.width * bytes_of(p.dtype) % 16 == 0 && is_aligned(tensor) && is_aligned(blocks);
}

template <class Unit>
cudaError_t pack_units(cudaStream_t stream, const PackHeads::Operands<OnDevice>& x, const HeadBlocks& p) {
  const Places places = places_of<Unit>(p);
  pack_kernel<<<blocks(places.elements), threads, 0, stream>>>(static_cast<Unit*>(x.blocks),
                                                               static_cast<const Unit*>(x.tensor), places);
  return cudaGetLastError();
}

template <class Unit>
cudaError_t unpack_units(cudaStream_t stream, const UnpackHeads::Operands<OnDevice>& x, const HeadBlocks& p) {
  const Places places = places_of<Unit>(p);
  unpack_kernel<<<blocks(places.elements), threads, 0, stream>>>(static_cast<Unit*>(x.tensor),
                                                                 static_cast<const Unit*>(x.blocks), places);
  return cudaGetLastError();
}

template <class Element>
cudaError_t add_up(cudaStream_t stream, const UnpackHeads::Operands<OnDevice>& x, const HeadBlocks& p) {
  sum_kernel<<<blocks(p.tokens * p.row()), threads, 0, stream>>>(static_cast<Element*>(x.tensor),
                                                                 static_cast<const Element*>(x.blocks),
                                                                 places_of<Element>(p), p.sharers());
  return cudaGetLastError();
}

cudaError_t pack(cudaStream_t stream, const PackHeads::Operands<OnDevice>& x, const HeadBlocks& p) {
  if (is_wide(p, x.tensor, x.blocks)) return pack_units<uint4>(stream, x, p);
  return p.dtype == Dtype::bf16 ? pack_units<Bf16>(stream, x, p) : pack_units<float>(stream, x, p);
}

cudaError_t unpack(cudaStream_t stream, const UnpackHeads::Operands<OnDevice>& x, const HeadBlocks& p) {
  if (p.sharers() > 1)
    return p.dtype == Dtype::bf16 ? add_up<Bf16>(stream, x, p) : add_up<float>(stream, x, p);
  if (is_wide(p, x.tensor, x.blocks)) return unpack_units<uint4>(stream, x, p);
  return p.dtype == Dtype::bf16 ? unpack_units<Bf16>(stream, x, p) : unpack_units<float>(stream, x, p);
}

const RegisteredCudaKernel registered[]{
    device_body<Fill>(fill),      device_body<Add>(add),
    device_body<Narrow>(narrow),  device_body<ExtendDecay>(extend_decay),
    device_body<PackHeads>(pack), device_body<UnpackHeads>(unpack),
};

}  // namespace
}  // namespace baton
