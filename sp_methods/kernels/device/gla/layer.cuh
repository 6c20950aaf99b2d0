// SPDX-License-Identifier: Apache-2.0
// The device kernels of gated linear attention in segments (gla_segments.hpp), and what each knows
// of its layer: where the rows of a chunk are, and which chunks are its own.
//
// Tensors are bf16, carried states f32; a launch has heads x segments blocks. Chunks have 64
// tokens, and d_k, d_v are 64 or 128 (device_limits.hpp). Every call covers the heads of its Work,
// enqueues one kernel on the stream and neither allocates nor synchronises. Pointers are 16-byte
// aligned.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (chunkwise form); "ZeCO", arXiv
// 2507.01004.
#pragma once

#include <cuda_runtime_api.h>

#include "sp_methods/kernels/device/tile/product.cuh"
#include "sp_methods/kernels/device/tile/tile.cuh"
#include "sp_methods/kernels/gla_segments.hpp"

namespace baton {

/// The sizes that a kernel needs besides its compile-time widths.
struct DeviceLayer {
  std::int64_t tokens;
  int heads;       ///< Heads of the tensors.
  int first_head;  ///< First head of the call.
  int segments;

  explicit DeviceLayer(const Segments& cut)
      : tokens(cut.shape.tokens),
        heads(static_cast<int>(cut.shape.heads)),
        first_head(static_cast<int>(cut.work.first_head)),
        segments(static_cast<int>(cut.count)) {}

  __device__ int chunks() const { return static_cast<int>((tokens + device_chunk - 1) / device_chunk); }
  __device__ int first_chunk(int segment) const {
    return static_cast<int>(static_cast<std::int64_t>(chunks()) * segment / segments);
  }
  /// The number of the block's head among the heads of the call.
  __device__ static int place() { return static_cast<int>(blockIdx.x); }
  /// The number of the block's segment.
  __device__ static int segment() { return static_cast<int>(blockIdx.y); }

  template <int width>
  __device__ TileLoader<width> loader() const {
    return {tokens, heads, first_head + place()};
  }
  /// The rows of a chunk in a head of x [tokens, heads, width]: this block's, or another of the
  /// call.
  template <class Element>
  __device__ HeadRows<Element> rows(Element* x, int width, int chunk, int head = place()) const {
    const std::int64_t token = static_cast<std::int64_t>(chunk) * device_chunk;
    return {x + (token * heads + first_head + head) * width, heads * width,
            static_cast<int>(min(static_cast<std::int64_t>(device_chunk), tokens - token))};
  }
};

inline constexpr float log2_e = 1.4426950408889634F;

__device__ inline float power_of_2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// e^x.
__device__ inline float decay_of(float x) { return power_of_2(log2_e * x); }

/// The first row and column of this warp's part of the block's state [d_k, d_v], a quarter of the
/// rows and of the columns.
template <int d_k, int d_v>
struct StatePlace {
  __device__ static int row() { return warp_row() * (d_k / 4); }
  __device__ static int column() { return warp_column() * (d_v / 4); }
};
template <int d_k, int d_v>
using StateSums = Sums<d_k / 64, d_v / 64>;

__device__ inline float plus_decayed(float x, float decay, float more) { return x + decay * more; }
__device__ inline float2 plus_decayed(float2 x, float decay, float2 more) {
  return {x.x + decay * more.x, x.y + decay * more.y};
}

/// The true state at an edge of the block's head.
template <int d_k, int d_v>
class EdgeState {
 public:
  __device__ EdgeState(const SegmentEdges<OnDevice>& edges, int segments, int edge) {
    const std::int64_t number = static_cast<std::int64_t>(DeviceLayer::place()) * (segments + 1) + edge;
    if (edges.states != nullptr) own_ = edges.states + number * d_k * d_v;
    if (edges.incoming == nullptr) return;
    gate_ = edges.gates + number * d_k;
    incoming_ = edges.incoming + static_cast<std::int64_t>(DeviceLayer::place()) * d_k * d_v;
  }
  /// One element of the state, or two neighbours in a row as float2.
  template <class Elements = float>
  __device__ Elements at(int row, int column) const {
    const auto read = [&](const float* x) {
      return *reinterpret_cast<const Elements*>(x + row * d_v + column);
    };
    const Elements own = own_ == nullptr ? Elements{} : read(own_);
    return incoming_ == nullptr ? own : plus_decayed(own, decay_of(gate_[row]), read(incoming_));
  }

 private:
  const float* own_ = nullptr;
  const float* gate_ = nullptr;
  const float* incoming_ = nullptr;
};

/// Sets `sums` to the true state at an edge of the block's head.
template <int d_k, int d_v>
__device__ inline void read_edge(StateSums<d_k, d_v>& sums, const SegmentEdges<OnDevice>& edges, int segments,
                                 int edge) {
  using Place = StatePlace<d_k, d_v>;
  const EdgeState<d_k, d_v> state(edges, segments, edge);
  sums.for_each(
      [&](int r, int c, float2& x) { x = state.template at<float2>(Place::row() + r, Place::column() + c); });
}

/// Calls f with the widths and the gate kind of a shape as types: f(d_k, d_v, kind).
template <GateKind kind>
using GateConstant = std::integral_constant<GateKind, kind>;
template <int width>
using Width = std::integral_constant<int, width>;

template <class Function>
cudaError_t with_widths(const LayerShape& shape, Function f) {
  if (shape.d_k == 128)
    return shape.d_v == 128 ? f(Width<128>{}, Width<128>{}) : f(Width<128>{}, Width<64>{});
  return shape.d_v == 128 ? f(Width<64>{}, Width<128>{}) : f(Width<64>{}, Width<64>{});
}

template <class Function>
cudaError_t with_constants(const LayerShape& shape, Function f) {
  return with_widths(shape, [&](auto d_k, auto d_v) {
    if (shape.gate == GateKind::vector) return f(d_k, d_v, GateConstant<GateKind::vector>{});
    if (shape.gate == GateKind::scalar) return f(d_k, d_v, GateConstant<GateKind::scalar>{});
    return f(d_k, d_v, GateConstant<GateKind::none>{});
  });
}

/// Launches a kernel with one block for each head and segment of a call.
template <int threads = tile_threads, class... Parameters, class... Arguments>
cudaError_t launch_on_segments(cudaStream_t stream, const Segments& cut, int shared_bytes,
                               void (*kernel)(Parameters...), const Arguments&... arguments) {
  const auto code = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  if (code != cudaSuccess) return code;
  const dim3 grid(static_cast<unsigned>(cut.work.heads(cut.shape)), static_cast<unsigned>(cut.count));
  kernel<<<grid, threads, shared_bytes, stream>>>(DeviceLayer(cut), arguments...);
  return cudaGetLastError();
}

using GlaDeviceInputs = LayerInputs<OnDevice>;
using GlaDeviceGradients = LayerGradients<OnDevice>;

}  // namespace baton
