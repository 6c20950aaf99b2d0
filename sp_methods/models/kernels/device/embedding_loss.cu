// SPDX-License-Identifier: Apache-2.0
// The device bodies of a model's ends: embedding, its gradient, and the loss.
//
//   embed             a warp copies a token's row
//   embed_gradients   a block of threads has a row of the table: it finds the tokens that name it,
//                     in their order, and adds up their gradients; no sum depends on timing
//   cross_entropy     a block of threads has a token: one pass over its logits for the largest and
//                     the sum of exponentials, one that writes gradients
//
// Cost: the ids are read once for each row of the table, from the L2.
#include "sp_methods/models/kernels/device/body.cuh"

namespace baton {
namespace {

constexpr int threads = 256;

__global__ void embed_kernel(Bf16* x, const float* ids, const Bf16* table, std::int64_t tokens, int packs) {
  const std::int64_t token = std::int64_t{blockIdx.x} * (threads / 32) + threadIdx.x / 32;
  if (token >= tokens) return;
  const auto* from = reinterpret_cast<const uint4*>(table) + static_cast<std::int64_t>(ids[token]) * packs;
  auto* into = reinterpret_cast<uint4*>(x) + token * packs;
  for (int i = static_cast<int>(threadIdx.x) % 32; i < packs; i += 32) into[i] = from[i];
}

/// Sums the gradients of one row of the table in each block. A thread has up to two packs of the
/// row's sum.
__global__ void __launch_bounds__(threads)
    embed_gradients_kernel(float* d_table, const float* ids, const Bf16* d_x, std::int64_t tokens,
                           int packs) {
  __shared__ bool names[threads];
  const auto own = static_cast<int>(threadIdx.x);
  const auto row = static_cast<float>(blockIdx.x);
  Eight sums[2] = {};
  for (std::int64_t first = 0; first < tokens; first += threads) {
    const bool is = first + own < tokens && ids[first + own] == row;
    names[own] = is;
    if (!__syncthreads_or(is)) continue;
    for (int t = 0; t < threads; ++t) {
      if (!names[t]) continue;
      for (int i = 0; i < 2 && own + i * threads < packs; ++i) {
        const Eight d = load(d_x, (first + t) * packs + own + i * threads);
        for (int n = 0; n < pack; ++n) sums[i].x[n] += d.x[n];
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 2 && own + i * threads < packs; ++i)
    store(d_table, std::int64_t{blockIdx.x} * packs + own + i * threads, sums[i]);
}

/// The largest of some numbers, and the sum of their exponentials over that of the largest.
struct Exponentials {
  float most, sum;

  __device__ Exponentials with(const Exponentials& other) const {
    const float top = fmaxf(most, other.most);
    return {top, sum * __expf(most - top) + other.sum * __expf(other.most - top)};
  }
};

/// The combined Exponentials of all threads of a block, in every thread.
__device__ Exponentials of_block(Exponentials own) {
  __shared__ Exponentials of_warps[threads / 32];
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2)
    own = own.with(
        {__shfl_xor_sync(0xffffffffU, own.most, apart), __shfl_xor_sync(0xffffffffU, own.sum, apart)});
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = own;
  __syncthreads();
  Exponentials all = of_warps[0];
  for (int warp = 1; warp < threads / 32; ++warp) all = all.with(of_warps[warp]);
  return all;
}

__global__ void __launch_bounds__(threads)
    cross_entropy_kernel(Bf16* logits, float* losses, const float* targets, int packs, float share) {
  constexpr float lowest = -3e38F;
  const std::int64_t first = std::int64_t{blockIdx.x} * packs;
  const auto target = static_cast<int>(targets[blockIdx.x]);
  const float of_target = __bfloat162float(logits[first * pack + target]);
  Exponentials own{lowest, 0};
  for (int i = static_cast<int>(threadIdx.x); i < packs; i += threads) {
    const Eight e = load(logits, first + i);
    float most = own.most, sum = 0;
    for (int n = 0; n < pack; ++n) most = fmaxf(most, e.x[n]);
    for (int n = 0; n < pack; ++n) sum += __expf(e.x[n] - most);
    own = {most, own.sum * __expf(own.most - most) + sum};
  }
  // Every thread has read its part, and the target's logit, before any is written.
  const Exponentials all = of_block(own);
  if (threadIdx.x == 0) losses[blockIdx.x] = logf(all.sum) + all.most - of_target;
  for (int i = static_cast<int>(threadIdx.x); i < packs; i += threads) {
    Eight e = load(logits, first + i);
    for (int n = 0; n < pack; ++n)
      e.x[n] = share * (__expf(e.x[n] - all.most) / all.sum - (i * pack + n == target ? 1.0F : 0.0F));
    store(logits, first + i, e);
  }
}

cudaError_t embed(cudaStream_t stream, const Embed::Operands<OnDevice>& x, const TokenRows& p) {
  const auto blocks = static_cast<unsigned>((p.tokens + threads / 32 - 1) / (threads / 32));
  embed_kernel<<<blocks, threads, 0, stream>>>(x.x, x.ids, x.table, p.tokens,
                                               static_cast<int>(p.width / pack));
  return cudaGetLastError();
}

cudaError_t embed_gradients(cudaStream_t stream, const EmbedGradients::Operands<OnDevice>& x,
                            const TokenRows& p) {
  embed_gradients_kernel<<<static_cast<unsigned>(p.vocabulary), threads, 0, stream>>>(
      x.d_table, x.ids, x.d_x, p.tokens, static_cast<int>(p.width / pack));
  return cudaGetLastError();
}

cudaError_t cross_entropy(cudaStream_t stream, const CrossEntropy::Operands<OnDevice>& x,
                          const CrossEntropy::Parameters& p) {
  cross_entropy_kernel<<<static_cast<unsigned>(p.tokens), threads, 0, stream>>>(
      x.logits, x.losses, x.targets, static_cast<int>(p.vocabulary / pack),
      1 / static_cast<float>(p.all_tokens));
  return cudaGetLastError();
}

Refusal refused(const TokenRows& p) { return unless_packed(p.width); }

Refusal refused_loss(const CrossEntropy::Parameters& p) {
  if (p.vocabulary % pack == 0) return {};
  return "the device body of cross_entropy is for vocabularies of a multiple of 8 words, not " +
         std::to_string(p.vocabulary);
}

const RegisteredCudaKernel registered[]{
    model_body<Embed>(embed, refused),
    model_body<EmbedGradients>(embed_gradients, refused),
    model_body<CrossEntropy>(cross_entropy, refused_loss),
};

}  // namespace
}  // namespace baton
