// SPDX-License-Identifier: Apache-2.0
// The device bodies of norms, with their gradients: one pass over the rows each.
//
//   rms_norm              y = w (.) x r,  r = 1 / sqrt(mean(x^2) + epsilon)
//   its gradients         d = w (.) d_y;  d_x = r (d - x r^2 mean(d (.) x)) [+ d_residual]
//                         d_w += d_y (.) x r
//   of rows in groups     each group of columns likewise, one kernel after the other
//   gated_norm            y = w (.) o r (.) silu(u), and its gradients by the same rule
#include "sp_methods/models/kernels/device/rows.cuh"

namespace baton {
namespace {

/// A thread's part of a row, as it lies in memory.
template <int most>
using Packs = uint4[most];

template <int lanes, int most>
__device__ void load_row(Packs<most>& into, const RowLane<lanes, most>& lane, const Bf16* from) {
#pragma unroll
  for (int i = 0; i < most; ++i)
    into[i] = lane.has(i) ? reinterpret_cast<const uint4*>(from)[lane.place(i)] : uint4{};
}

/// 1 / sqrt(mean + epsilon), of a sum over a row.
__device__ float inverse_root(float sum, int packs, float epsilon) {
  return rsqrtf(sum / static_cast<float>(packs * pack) + epsilon);
}

struct Norm {
  const Bf16 *x, *weight, *gate;  // without a gate: null
  Bf16* y;
  float epsilon;

  template <int lanes, int most>
  __device__ void operator()(const RowLane<lanes, most>& lane, Eight (&)[most], bool there) const {
    Packs<most> row, gates = {};
    load_row(row, lane, x);
    if (gate != nullptr) load_row(gates, lane, gate);
    float squares = 0;
#pragma unroll
    for (int i = 0; i < most; ++i) {
      const Eight e = unpacked(row[i]);
#pragma unroll
      for (int n = 0; n < pack; ++n) squares = fmaf(e.x[n], e.x[n], squares);
    }
    const float r = inverse_root(lane.sums(squares, 0).x, lane.packs, epsilon);
#pragma unroll
    for (int i = 0; i < most; ++i) {
      if (!there || !lane.has(i)) continue;
      Eight e = unpacked(row[i]);
      const Eight w = load(weight, lane.column(i)), u = unpacked(gates[i]);
#pragma unroll
      for (int n = 0; n < pack; ++n) {
        e.x[n] *= r * w.x[n];
        if (gate != nullptr) e.x[n] *= u.x[n] * sigmoid(u.x[n]);
      }
      store(y, lane.place(i), e);
    }
  }
};

struct NormGradients {
  const Bf16 *x, *weight, *gate, *d_y, *d_residual;  // without a gate or a residual: null
  Bf16 *d_x, *d_gate;
  float epsilon;

  /// d_y, times the gate if there is one: the gradient of the normed row times its weight.
  __device__ Eight of_normed(const Eight& d, const Eight& u) const {
    Eight all = d;
    if (gate != nullptr)
#pragma unroll
      for (int n = 0; n < pack; ++n) all.x[n] *= u.x[n] * sigmoid(u.x[n]);
    return all;
  }

  template <int lanes, int most>
  __device__ void operator()(const RowLane<lanes, most>& lane, Eight (&sums)[most], bool there) const {
    Packs<most> row, d_row, gates = {}, residual = {};
    load_row(row, lane, x);
    load_row(d_row, lane, d_y);
    if (gate != nullptr) load_row(gates, lane, gate);
    if (d_residual != nullptr) load_row(residual, lane, d_residual);
    float squares = 0, product = 0;
#pragma unroll
    for (int i = 0; i < most; ++i) {
      if (!lane.has(i)) continue;
      const Eight e = unpacked(row[i]), d = of_normed(unpacked(d_row[i]), unpacked(gates[i])),
                  w = load(weight, lane.column(i));
#pragma unroll
      for (int n = 0; n < pack; ++n) {
        squares = fmaf(e.x[n], e.x[n], squares);
        product = fmaf(d.x[n] * w.x[n], e.x[n], product);
      }
    }
    const float2 sum = lane.sums(squares, product);
    const float r = inverse_root(sum.x, lane.packs, epsilon),
                along = r * r * sum.y / static_cast<float>(lane.packs * pack);
#pragma unroll
    for (int i = 0; i < most; ++i)
      if (there && lane.has(i)) finish(lane, i, {row[i], d_row[i], gates[i], residual[i]}, r, along, sums[i]);
  }

 private:
  struct Raw {
    uint4 row, d_row, gates, residual;
  };

  template <int lanes, int most>
  __device__ void finish(const RowLane<lanes, most>& lane, int i, const Raw& raw, float r, float along,
                         Eight& sums) const {
    const Eight e = unpacked(raw.row), d_y_of = unpacked(raw.d_row), u = unpacked(raw.gates),
                d = of_normed(d_y_of, u), w = load(weight, lane.column(i));
    Eight of_x = unpacked(raw.residual), of_gate;
#pragma unroll
    for (int n = 0; n < pack; ++n) {
      sums.x[n] = fmaf(d.x[n], e.x[n] * r, sums.x[n]);
      of_x.x[n] += r * (d.x[n] * w.x[n] - e.x[n] * along);
      const float open = sigmoid(u.x[n]);
      of_gate.x[n] = d_y_of.x[n] * e.x[n] * r * w.x[n] * open * (1 + u.x[n] * (1 - open));
    }
    store(d_x, lane.place(i), of_x);
    if (gate != nullptr) store(d_gate, lane.place(i), of_gate);
  }
};

/// Calls body(first column, rows of the part) for each part of the rows of `p`.
template <class Body>
cudaError_t for_each_part(const Rows& p, const Body& body) {
  Rows part = p;
  part.width = p.part();
  for (std::int64_t at = 0; at < p.width; at += part.width)
    if (const cudaError_t error = body(at, part); error != cudaSuccess) return error;
  return cudaSuccess;
}

cudaError_t norm(cudaStream_t stream, const RmsNorm::Operands<OnDevice>& x, const Rows& p) {
  return for_each_part(p, [&](std::int64_t at, const Rows& part) {
    return run_rows(stream, Norm{x.x + at, x.weight + at, nullptr, x.y + at, p.constant}, part, nullptr);
  });
}

cudaError_t norm_gradients(cudaStream_t stream, const RmsNormGradients::Operands<OnDevice>& x,
                           const Rows& p) {
  return for_each_part(p, [&](std::int64_t at, const Rows& part) {
    const Bf16* residual = x.d_residual == nullptr ? nullptr : x.d_residual + at;
    return run_rows(stream,
                    NormGradients{x.x + at, x.weight + at, nullptr, x.d_y + at, residual, x.d_x + at, nullptr,
                                  p.constant},
                    part, x.d_weight + at);
  });
}

cudaError_t gated_norm(cudaStream_t stream, const GatedNorm::Operands<OnDevice>& x, const Rows& p) {
  return run_rows(stream, Norm{x.o, x.weight, x.gate, x.y, p.constant}, p, nullptr);
}

cudaError_t gated_norm_gradients(cudaStream_t stream, const GatedNormGradients::Operands<OnDevice>& x,
                                 const Rows& p) {
  return run_rows(stream, NormGradients{x.o, x.weight, x.gate, x.d_y, nullptr, x.d_o, x.d_gate, p.constant},
                  p, x.d_weight);
}

Refusal refused(const Rows& p) { return unless_packed(p.part()); }

const RegisteredCudaKernel registered[]{
    model_body<RmsNorm>(norm, refused),
    model_body<RmsNormGradients>(norm_gradients, refused),
    model_body<GatedNorm>(gated_norm, refused),
    model_body<GatedNormGradients>(gated_norm_gradients, refused),
};

}  // namespace
}  // namespace baton
