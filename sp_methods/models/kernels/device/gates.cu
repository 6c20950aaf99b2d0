// SPDX-License-Identifier: Apache-2.0
// The device bodies of gates and of rotary positions, with their gradients: one pass over the rows
// each, eight neighbouring numbers a thread.
//
//   log_gates     g = factor log sigmoid(z + b);  d_z = d_g (1 - e^{g / factor})
//   decay_gates   g = -e^{rate} softplus(z + b);  d_z = -d_g e^{rate} sigmoid(z + b)
//                 g = -bound s, s = sigmoid(e^{rate} (z + b));  d_z = -d_g e^{rate} bound s (1 - s)
//   fixed_gates   g = -factor 2^{-8 (h + 1) / H}
//
// The gradient of a rate is a sum over the tokens and the gates of a head: one block a head makes
// it, in an order that does not change.
#include "sp_methods/models/kernels/device/rows.cuh"
#include "sp_methods/models/kernels/gates.hpp"

namespace baton {
namespace {

/// 1 - e^x of x <= 0, to bf16's precision: near zero by its series.
__device__ float one_less_exp(float x) {
  return x > -0.05F ? -x * (1 + x * (0.5F + x * (1.0F / 6))) : 1 - __expf(x);
}

struct GateLogs {
  const Bf16 *z, *bias;
  Bf16* g;
  float factor;

  template <int lanes, int most>
  __device__ void operator()(const RowLane<lanes, most>& lane, Eight (&)[most], bool there) const {
#pragma unroll
    for (int i = 0; i < most; ++i) {
      if (!there || !lane.has(i)) continue;
      Eight e = load(z, lane.place(i));
      const Eight b = load(bias, lane.column(i));
#pragma unroll
      for (int n = 0; n < pack; ++n) {
        const float at = e.x[n] + b.x[n];
        e.x[n] = factor * (fminf(at, 0) - log_of_one_and(__expf(-fabsf(at))));
      }
      store(g, lane.place(i), e);
    }
  }
};

struct GateLogGradients {
  const Bf16 *g, *d_g;
  Bf16* d_z;
  float factor;

  template <int lanes, int most>
  __device__ void operator()(const RowLane<lanes, most>& lane, Eight (&sums)[most], bool there) const {
#pragma unroll
    for (int i = 0; i < most; ++i) {
      if (!there || !lane.has(i)) continue;
      const Eight e = load(g, lane.place(i));
      Eight d = load(d_g, lane.place(i));
      const float inverse = 1 / factor;
#pragma unroll
      for (int n = 0; n < pack; ++n) {
        d.x[n] *= factor * one_less_exp(e.x[n] * inverse);
        sums[i].x[n] += d.x[n];
      }
      store(d_z, lane.place(i), d);
    }
  }
};

/// Decay gates, or with d_g the gradients of their projection.
struct Decays {
  const Bf16 *z, *bias, *rate, *d_g, *d_delta;  // d_g is null forward, d_delta may be
  Bf16* into;
  int group;
  float bound;  // or 0

  __device__ float gate(float speed, float at) const {
    return bound > 0 ? -bound * sigmoid(speed * at) : -speed * softplus(at);
  }
  __device__ float slope(float speed, float at) const {
    const float open = sigmoid(bound > 0 ? speed * at : at);
    return -speed * open * (bound > 0 ? bound * (1 - open) : 1);
  }

  template <int lanes, int most>
  __device__ void operator()(const RowLane<lanes, most>& lane, Eight (&sums)[most], bool there) const {
#pragma unroll
    for (int i = 0; i < most; ++i) {
      if (!there || !lane.has(i)) continue;
      Eight e = load(z, lane.place(i));
      const Eight b = load(bias, lane.column(i));
      const Eight d = d_g == nullptr ? Eight{} : load(d_g, lane.place(i)),
                  of_delta = d_delta == nullptr ? Eight{} : load(d_delta, lane.place(i));
#pragma unroll
      for (int n = 0; n < pack; ++n) {
        const float speed = __expf(__bfloat162float(rate[(lane.column(i) * pack + n) / group]));
        const float at = e.x[n] + b.x[n];
        e.x[n] = d_g == nullptr ? gate(speed, at) : d.x[n] * slope(speed, at) + of_delta.x[n] * sigmoid(at);
        if (d_g != nullptr) sums[i].x[n] += e.x[n];
      }
      store(into, lane.place(i), e);
    }
  }
};

/// Gates that are constants of a head.
struct Slopes {
  Bf16* g;
  float factor;

  template <int lanes, int most>
  __device__ void operator()(const RowLane<lanes, most>& lane, Eight (&)[most], bool there) const {
#pragma unroll
    for (int i = 0; i < most; ++i) {
      if (!there || !lane.has(i)) continue;
      Eight e;
#pragma unroll
      for (int n = 0; n < pack; ++n)
        e.x[n] = -factor * exp2f(-8 * static_cast<float>(lane.column(i) * pack + n + 1) /
                                 static_cast<float>(lane.packs * pack));
      store(g, lane.place(i), e);
    }
  }
};

__global__ void __launch_bounds__(row_threads)
    rate_kernel(float* d_rate, const Bf16* z, const Bf16* bias, const Bf16* rate, const Bf16* d_g,
                std::int64_t count, int heads, int group, float bound) {
  const int head = static_cast<int>(blockIdx.x);
  const float speed = __expf(__bfloat162float(rate[head]));
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < count * group; i += row_threads) {
    const std::int64_t c = i % group, at = (i / group * heads + head) * group + c;
    const float row = __bfloat162float(z[at]) + __bfloat162float(bias[head * group + c]);
    const float open = sigmoid(speed * row);
    sum += __bfloat162float(d_g[at]) * (bound > 0 ? bound * open * (1 - open) * row : softplus(row));
  }
  store_block_sum(d_rate + head, -speed * sum);
}

/// y = x (.) sigmoid(x's gate), or y = sigmoid(x) without a gate.
__global__ void sigmoid_gate_kernel(Bf16* y, const Bf16* x, const Bf16* gate, std::int64_t packs) {
  const std::int64_t i = std::int64_t{blockIdx.x} * row_threads + threadIdx.x;
  if (i >= packs) return;
  Eight e = load(x, i);
  const Eight u = gate == nullptr ? e : load(gate, i);
#pragma unroll
  for (int n = 0; n < pack; ++n) e.x[n] = (gate == nullptr ? 1 : e.x[n]) * sigmoid(u.x[n]);
  store(y, i, e);
}

__global__ void sigmoid_gate_gradients_kernel(SigmoidGateGradients::Operands<OnDevice> x,
                                              std::int64_t packs) {
  const std::int64_t i = std::int64_t{blockIdx.x} * row_threads + threadIdx.x;
  if (i >= packs) return;
  Eight d = load(x.d_y, i), of_gate;
  const Eight o = load(x.o, i), u = load(x.gate, i);
#pragma unroll
  for (int n = 0; n < pack; ++n) {
    const float open = sigmoid(u.x[n]);
    of_gate.x[n] = d.x[n] * o.x[n] * open * (1 - open);
    d.x[n] *= open;
  }
  store(x.d_gate, i, of_gate);
  store(x.d_o, i, d);
}

__global__ void logistic_gradients_kernel(Bf16* d_x, const Bf16* y, const Bf16* d_y, std::int64_t packs) {
  const std::int64_t i = std::int64_t{blockIdx.x} * row_threads + threadIdx.x;
  if (i >= packs) return;
  Eight d = load(d_y, i);
  const Eight e = load(y, i);
#pragma unroll
  for (int n = 0; n < pack; ++n) d.x[n] *= e.x[n] * (1 - e.x[n]);
  store(d_x, i, d);
}

/// A block has a token: its threads make the turns of the pairs once, and use them for all heads.
__global__ void __launch_bounds__(row_threads) rotate_kernel(Bf16* y, const Bf16* x, Rotation p) {
  extern __shared__ float2 turns[];
  const auto t = std::int64_t{blockIdx.x};
  const std::int64_t half = p.rotated / 2, all = p.heads * p.width;
  const std::int64_t position = t < p.positions.split
                                    ? p.positions.first + t * p.positions.stride
                                    : p.positions.second + (t - p.positions.split) * p.positions.stride;
  for (std::int64_t i = threadIdx.x; i < half; i += row_threads) {
    const double angle = static_cast<double>(position) *
                         pow(p.base, -2 * static_cast<double>(i) / static_cast<double>(p.rotated));
    double sine, cosine;
    sincos(angle, &sine, &cosine);
    turns[i] = {static_cast<float>(cosine), static_cast<float>(p.turns_back ? -sine : sine)};
  }
  __syncthreads();
  for (std::int64_t at = threadIdx.x; at < all; at += row_threads) {
    const std::int64_t channel = at % p.width, first = t * all + at - channel;
    float value = __bfloat162float(x[first + channel]);
    if (channel < p.rotated) {
      const float2 turn = turns[channel % half];
      const bool is_second = channel >= half;
      const float other = __bfloat162float(x[first + (is_second ? channel - half : channel + half)]);
      value = value * turn.x + (is_second ? other : -other) * turn.y;
    }
    y[first + channel] = __float2bfloat16(value);
  }
}

cudaError_t log_gates(cudaStream_t stream, const LogGates::Operands<OnDevice>& x, const Rows& p) {
  return run_rows(stream, GateLogs{x.z, x.bias, x.g, p.constant}, p, nullptr);
}

cudaError_t log_gate_gradients(cudaStream_t stream, const LogGateGradients::Operands<OnDevice>& x,
                               const Rows& p) {
  return run_rows(stream, GateLogGradients{x.g, x.d_g, x.d_z, p.constant}, p, x.d_bias);
}

cudaError_t decay_gates(cudaStream_t stream, const DecayGates::Operands<OnDevice>& x, const GateRows& p) {
  return run_rows(stream,
                  Decays{x.z, x.bias, x.rate, nullptr, nullptr, x.g, static_cast<int>(p.group), p.bound},
                  p.rows(), nullptr);
}

cudaError_t decay_gate_gradients(cudaStream_t stream, const DecayGateGradients::Operands<OnDevice>& x,
                                 const GateRows& p) {
  const int heads = static_cast<int>(p.heads), group = static_cast<int>(p.group);
  rate_kernel<<<static_cast<unsigned>(heads), row_threads, 0, stream>>>(x.d_rate, x.z, x.bias, x.rate, x.d_g,
                                                                        p.count, heads, group, p.bound);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  return run_rows(stream, Decays{x.z, x.bias, x.rate, x.d_g, x.d_delta, x.d_z, group, p.bound}, p.rows(),
                  x.d_bias);
}

cudaError_t fixed_gates(cudaStream_t stream, const FixedGates::Operands<OnDevice>& x, const Rows& p) {
  return run_rows(stream, Slopes{x.g, p.constant}, p, nullptr);
}

std::int64_t packs_of(const Rows& p) { return p.count * p.width / pack; }
unsigned blocks_of(const Rows& p) {
  return static_cast<unsigned>((packs_of(p) + row_threads - 1) / row_threads);
}

cudaError_t logistic(cudaStream_t stream, const Logistic::Operands<OnDevice>& x, const Rows& p) {
  sigmoid_gate_kernel<<<blocks_of(p), row_threads, 0, stream>>>(x.y, x.x, nullptr, packs_of(p));
  return cudaGetLastError();
}

cudaError_t logistic_gradients(cudaStream_t stream, const LogisticGradients::Operands<OnDevice>& x,
                               const Rows& p) {
  logistic_gradients_kernel<<<blocks_of(p), row_threads, 0, stream>>>(x.d_x, x.y, x.d_y, packs_of(p));
  return cudaGetLastError();
}

cudaError_t sigmoid_gate(cudaStream_t stream, const SigmoidGate::Operands<OnDevice>& x, const Rows& p) {
  sigmoid_gate_kernel<<<blocks_of(p), row_threads, 0, stream>>>(x.y, x.o, x.gate, packs_of(p));
  return cudaGetLastError();
}

cudaError_t sigmoid_gate_gradients(cudaStream_t stream, const SigmoidGateGradients::Operands<OnDevice>& x,
                                   const Rows& p) {
  sigmoid_gate_gradients_kernel<<<blocks_of(p), row_threads, 0, stream>>>(x, packs_of(p));
  return cudaGetLastError();
}

cudaError_t rotate(cudaStream_t stream, const Rotate::Operands<OnDevice>& x, const Rotation& p) {
  const std::size_t shared = static_cast<std::size_t>(p.rotated / 2) * sizeof(float2);
  rotate_kernel<<<static_cast<unsigned>(p.tokens), row_threads, shared, stream>>>(x.y, x.x, p);
  return cudaGetLastError();
}

Refusal refused(const Rows& p) { return unless_packed(p.width); }
Refusal refused_gates(const GateRows& p) { return unless_packed(p.width()); }
Refusal never(const Rotation&) { return {}; }

const RegisteredCudaKernel registered[]{
    model_body<LogGates>(log_gates, refused),
    model_body<LogGateGradients>(log_gate_gradients, refused),
    model_body<DecayGates>(decay_gates, refused_gates),
    model_body<DecayGateGradients>(decay_gate_gradients, refused_gates),
    model_body<FixedGates>(fixed_gates, refused),
    model_body<Logistic>(logistic, unless_in_packs),
    model_body<LogisticGradients>(logistic_gradients, unless_in_packs),
    model_body<SigmoidGate>(sigmoid_gate, unless_in_packs),
    model_body<SigmoidGateGradients>(sigmoid_gate_gradients, unless_in_packs),
    model_body<Rotate>(rotate, never),
};

}  // namespace
}  // namespace baton
