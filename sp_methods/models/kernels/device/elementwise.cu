// SPDX-License-Identifier: Apache-2.0
// The device bodies that know no rows: SwiGLU and its gradients, eight neighbouring elements a
// thread, AdamW, and products, which are one call of a library.
#include "sp_methods/models/kernels/device/body.cuh"

namespace baton {
namespace {

constexpr int threads = 256;

unsigned blocks(std::int64_t packs) { return static_cast<unsigned>((packs + threads - 1) / threads); }

__device__ std::int64_t own_pack() { return std::int64_t{blockIdx.x} * threads + threadIdx.x; }

__global__ void swiglu_kernel(Bf16* m, const Bf16* gate, const Bf16* up, std::int64_t packs) {
  const std::int64_t i = own_pack();
  if (i >= packs) return;
  Eight a = gate == nullptr ? Eight{} : load(gate, i);
  const Eight b = up == nullptr ? Eight{} : load(up, i);
#pragma unroll
  for (int n = 0; n < pack; ++n)
    a.x[n] = gate == nullptr ? fmaxf(b.x[n], 0) * fmaxf(b.x[n], 0)
                             : a.x[n] * sigmoid(a.x[n]) * (up == nullptr ? 1 : b.x[n]);
  store(m, i, a);
}

__global__ void swiglu_gradients_kernel(Bf16* d_gate, Bf16* d_up, const Bf16* gate, const Bf16* up,
                                        const Bf16* d_m, std::int64_t packs) {
  const std::int64_t i = own_pack();
  if (i >= packs) return;
  const Eight a = gate == nullptr ? Eight{} : load(gate, i), b = up == nullptr ? Eight{} : load(up, i),
              d = load(d_m, i);
  Eight of_gate, of_up;
#pragma unroll
  for (int n = 0; n < pack; ++n) {
    const float open = sigmoid(a.x[n]);
    of_gate.x[n] = d.x[n] * (up == nullptr ? 1 : b.x[n]) * open * (1 + a.x[n] * (1 - open));
    of_up.x[n] = d.x[n] * (gate == nullptr ? 2 * fmaxf(b.x[n], 0) : a.x[n] * open);
  }
  if (d_gate != nullptr) store(d_gate, i, of_gate);
  if (d_up != nullptr) store(d_up, i, of_up);
}

/// Makes a step of AdamW. A thread has one element, as the number of weights need not be a multiple
/// of eight.
__global__ void adamw_kernel(AdamW::Operands<OnDevice> x, AdamW::Parameters p) {
  const std::int64_t i = own_pack();
  if (i >= p.count) return;
  const float gradient = x.gradients[i], m = p.beta_1 * x.m[i] + (1 - p.beta_1) * gradient,
              v = p.beta_2 * x.v[i] + (1 - p.beta_2) * gradient * gradient;
  x.new_m[i] = m;
  x.new_v[i] = v;
  const float step = m / (1 - p.beta_1) / (sqrtf(v / (1 - p.beta_2)) + p.epsilon);
  x.new_weights[i] =
      __float2bfloat16(__bfloat162float(x.weights[i]) * (1 - p.rate * p.decay) - p.rate * step);
}

cudaError_t swiglu(cudaStream_t stream, const SwiGlu::Operands<OnDevice>& x, const Rows& p) {
  const std::int64_t packs = p.count * p.width / pack;
  swiglu_kernel<<<blocks(packs), threads, 0, stream>>>(x.m, x.gate, x.up, packs);
  return cudaGetLastError();
}

cudaError_t swiglu_gradients(cudaStream_t stream, const SwiGluGradients::Operands<OnDevice>& x,
                             const Rows& p) {
  const std::int64_t packs = p.count * p.width / pack;
  swiglu_gradients_kernel<<<blocks(packs), threads, 0, stream>>>(x.d_gate, x.d_up, x.gate, x.up, x.d_m,
                                                                 packs);
  return cudaGetLastError();
}

cudaError_t adamw(cudaStream_t stream, const AdamW::Operands<OnDevice>& x, const AdamW::Parameters& p) {
  adamw_kernel<<<blocks(p.count), threads, 0, stream>>>(x, p);
  return cudaGetLastError();
}

cudaError_t matmul(cudaStream_t stream, const Matmul::Operands<OnDevice>& x, const Product& p) {
  product_library().enqueue(stream, {x.a, x.b, x.c, x.out}, p);
  return cudaSuccess;
}

Refusal unplanned(const Product& p) { return product_library().plan(p); }

Refusal never(const AdamW::Parameters&) { return {}; }

const RegisteredCudaKernel registered[]{
    model_body<SwiGlu>(swiglu, unless_in_packs),
    model_body<SwiGluGradients>(swiglu_gradients, unless_in_packs),
    model_body<AdamW>(adamw, never),
    model_body<Matmul>(matmul, unplanned),
};

}  // namespace
}  // namespace baton
