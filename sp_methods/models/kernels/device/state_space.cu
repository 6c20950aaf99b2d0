// SPDX-License-Identifier: Apache-2.0
// The device bodies of Mamba-2 around its recurrence. Rows take eight neighbouring channels a
// thread; the gradient of a step is a sum over the row of its head, by the threads that have it.
// That of a skip's number is a sum over all tokens: one block a head makes it, in an order that
// does not change.
#include "sp_methods/models/kernels/device/rows.cuh"
#include "sp_methods/models/kernels/state_space.hpp"

namespace baton {
namespace {

/// Rows of heads [tokens, heads, width] as rows of their own.
Rows head_rows(const StepRows& p) {
  return {.count = p.tokens * p.heads, .width = p.width, .dtype = p.dtype};
}

struct ScaledRows {
  ScaleHeads::Operands<OnDevice> of;
  int heads;
  float factor;

  template <int lanes, int most>
  __device__ void operator()(const RowLane<lanes, most>& lane, Eight (&)[most], bool there) const {
    const float number = __bfloat162float(of.number[lane.row % heads]);
    const float scale =
        factor * (of.z == nullptr ? number : softplus(__bfloat162float(of.z[lane.row]) + number));
#pragma unroll
    for (int i = 0; i < most; ++i) {
      if (!there || !lane.has(i)) continue;
      const Eight e = load(of.x, lane.place(i));
      Eight sum = of.c == nullptr ? Eight{} : load(of.c, lane.place(i));
#pragma unroll
      for (int n = 0; n < pack; ++n) sum.x[n] = fmaf(scale, e.x[n], sum.x[n]);
      store(of.y, lane.place(i), sum);
    }
  }
};

struct StepSlopes {
  StepGradients::Operands<OnDevice> of;
  int heads;
  float factor;

  template <int lanes, int most>
  __device__ void operator()(const RowLane<lanes, most>& lane, Eight (&)[most], bool there) const {
    const int head = static_cast<int>(lane.row % heads);
    const float skip = __bfloat162float(of.skip[head]);
    const float step = factor * softplus(__bfloat162float(of.z[lane.row]) + __bfloat162float(of.bias[head]));
    float sum = 0;
#pragma unroll
    for (int i = 0; i < most; ++i) {
      if (!lane.has(i)) continue;
      const Eight e = load(of.x, lane.place(i)), d_v = load(of.d_v, lane.place(i));
      Eight d = load(of.d_o, lane.place(i));
#pragma unroll
      for (int n = 0; n < pack; ++n) {
        sum = fmaf(d_v.x[n], e.x[n], sum);
        d.x[n] = step * d_v.x[n] + skip * d.x[n];
      }
      if (there) store(of.d_x, lane.place(i), d);
    }
    sum = lane.sums(sum, 0).x;
    if (there && lane.column(0) == 0) of.d_delta[lane.row] = __float2bfloat16(factor * sum);
  }
};

__global__ void __launch_bounds__(row_threads)
    skip_kernel(float* d_skip, const Bf16* x, const Bf16* d_o, std::int64_t tokens, int heads, int packs) {
  const int head = static_cast<int>(blockIdx.x);
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < tokens * packs; i += row_threads) {
    const std::int64_t at = (i / packs * heads + head) * packs + i % packs;
    const Eight e = load(x, at), d = load(d_o, at);
#pragma unroll
    for (int n = 0; n < pack; ++n) sum = fmaf(e.x[n], d.x[n], sum);
  }
  store_block_sum(d_skip + head, sum);
}

cudaError_t scale_heads(cudaStream_t stream, const ScaleHeads::Operands<OnDevice>& x, const StepRows& p) {
  return run_rows(stream, ScaledRows{x, static_cast<int>(p.heads), p.factor}, head_rows(p), nullptr);
}

cudaError_t step_gradients(cudaStream_t stream, const StepGradients::Operands<OnDevice>& x,
                           const StepRows& p) {
  const int heads = static_cast<int>(p.heads), packs = static_cast<int>(p.width / pack);
  skip_kernel<<<static_cast<unsigned>(heads), row_threads, 0, stream>>>(x.d_skip, x.x, x.d_o, p.tokens, heads,
                                                                        packs);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  return run_rows(stream, StepSlopes{x, heads, p.factor}, head_rows(p), nullptr);
}

Refusal refused(const StepRows& p) { return unless_packed(p.width); }

const RegisteredCudaKernel registered[]{
    model_body<ScaleHeads>(scale_heads, refused),
    model_body<StepGradients>(step_gradients, refused),
};

}  // namespace
}  // namespace baton
