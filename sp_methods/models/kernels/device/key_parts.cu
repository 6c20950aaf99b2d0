// SPDX-License-Identifier: Apache-2.0
// The device bodies of keys in two parts: eight neighbouring channels a thread. The gradient of the
// shared part is a sum over the heads in their order, by the thread that has its channels.
#include "sp_methods/models/kernels/device/body.cuh"
#include "sp_methods/models/kernels/key_parts.hpp"

namespace baton {
namespace {

constexpr int threads = 256;

/// The packs of a key and of its parts.
struct KeyPacks {
  std::int64_t tokens;
  int heads, shared, own;

  explicit KeyPacks(const KeyParts& p)
      : tokens(p.tokens),
        heads(static_cast<int>(p.heads)),
        shared(static_cast<int>(p.shared / pack)),
        own(static_cast<int>(p.own / pack)) {}

  __host__ __device__ int width() const { return shared + own; }
};

__device__ std::int64_t own_pack() { return std::int64_t{blockIdx.x} * threads + threadIdx.x; }

unsigned blocks(std::int64_t packs) { return static_cast<unsigned>((packs + threads - 1) / threads); }

__global__ void join_keys_kernel(JoinKeys::Operands<OnDevice> x, KeyPacks p) {
  const std::int64_t i = own_pack(), row = i / p.width(), at = i % p.width();
  if (row >= p.tokens * p.heads) return;
  store(x.k, i,
        at < p.shared ? load(x.shared, row / p.heads * p.shared + at)
                      : load(x.own, row * p.own + at - p.shared));
}

/// A token has threads for the packs of its shared part, and for those of all heads' own parts.
__global__ void join_key_gradients_kernel(JoinKeyGradients::Operands<OnDevice> x, KeyPacks p) {
  const int of_token = p.shared + p.heads * p.own;
  const std::int64_t i = own_pack(), token = i / of_token, first = token * p.heads * p.width();
  const int at = static_cast<int>(i % of_token);
  if (token >= p.tokens) return;
  if (at >= p.shared) {
    const int head = (at - p.shared) / p.own, channel = (at - p.shared) % p.own;
    store(x.d_own, (token * p.heads + head) * p.own + channel,
          load(x.d_k, first + head * p.width() + p.shared + channel));
    return;
  }
  Eight sum{};
  for (int head = 0; head < p.heads; ++head) {
    const Eight d = load(x.d_k, first + head * p.width() + at);
#pragma unroll
    for (int n = 0; n < pack; ++n) sum.x[n] += d.x[n];
  }
  store(x.d_shared, token * p.shared + at, sum);
}

cudaError_t join_keys(cudaStream_t stream, const JoinKeys::Operands<OnDevice>& x, const KeyParts& p) {
  const KeyPacks packs(p);
  join_keys_kernel<<<blocks(packs.tokens * packs.heads * packs.width()), threads, 0, stream>>>(x, packs);
  return cudaGetLastError();
}

cudaError_t join_key_gradients(cudaStream_t stream, const JoinKeyGradients::Operands<OnDevice>& x,
                               const KeyParts& p) {
  const KeyPacks packs(p);
  const std::int64_t of_token = packs.shared + packs.heads * packs.own;
  join_key_gradients_kernel<<<blocks(packs.tokens * of_token), threads, 0, stream>>>(x, packs);
  return cudaGetLastError();
}

Refusal refused(const KeyParts& p) {
  if (p.shared % pack == 0 && p.own % pack == 0) return {};
  return "device bodies of keys are for parts of a multiple of 8 channels, not " + std::to_string(p.shared) +
         " and " + std::to_string(p.own);
}

const RegisteredCudaKernel registered[]{
    model_body<JoinKeys>(join_keys, refused),
    model_body<JoinKeyGradients>(join_key_gradients, refused),
};

}  // namespace
}  // namespace baton
