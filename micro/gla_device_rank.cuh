// SPDX-License-Identifier: Apache-2.0
// One rank's share of a layer in device memory, and the calls of its two passes in order.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <memory>
#include <stdexcept>
#include <vector>

#include "sp_methods/kernels/device/gla/launch.cuh"

namespace baton {

using Bf16 = __nv_bfloat16;

inline void must(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

inline std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// Device memory of `count` elements, every byte 0xff at first: NaN in bf16 and fp32.
template <class Element>
class DeviceArray {
 public:
  explicit DeviceArray(std::int64_t count) : count_(count) {
    must(cudaMalloc(reinterpret_cast<void**>(&data_), size(count) * sizeof(Element) + 16));
    must(cudaMemset(data_, 0xff, size(count) * sizeof(Element)));
  }
  explicit DeviceArray(const std::vector<Element>& host)
      : DeviceArray(static_cast<std::int64_t>(host.size())) {
    must(cudaMemcpy(data_, host.data(), host.size() * sizeof(Element), cudaMemcpyHostToDevice));
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  Element* at(std::int64_t element = 0) const { return data_ + element; }
  std::int64_t count() const { return count_; }
  std::vector<Element> host() const {
    std::vector<Element> out(size(count_));
    must(cudaMemcpy(out.data(), data_, out.size() * sizeof(Element), cudaMemcpyDeviceToHost));
    return out;
  }

 private:
  Element* data_ = nullptr;
  std::int64_t count_;
};

/// Where one pass leaves the states of a rank's segments and the rank's map.
struct PassMemory {
  DeviceArray<float> states, gates, totals, map_decay, map_state;

  PassMemory(const GlaShape& s, const Work& work, int segments)
      : states(work.heads(s) * (segments + 1) * s.d_k * s.d_v),
        gates(work.heads(s) * (segments + 1) * s.d_k),
        totals(work.heads(s) * segments * s.d_k),
        map_decay(work.heads(s) * s.d_k),
        map_state(work.heads(s) * s.d_k * s.d_v) {}
  GlaDeviceSegments segments() const { return {states.at(), gates.at(), totals.at()}; }
};

/// The inputs and results of a whole layer.
struct LayerMemory {
  DeviceArray<Bf16> q, k, v, g, d_o, o, dq, dk, dv, dg;

  explicit LayerMemory(const GlaShape& s)
      : q(rows(s) * s.d_k),
        k(rows(s) * s.d_k),
        v(rows(s) * s.d_v),
        g(rows(s) * s.gate_width()),
        d_o(rows(s) * s.d_v),
        o(rows(s) * s.d_v),
        dq(rows(s) * s.d_k),
        dk(rows(s) * s.d_k),
        dv(rows(s) * s.d_v),
        dg(rows(s) * s.gate_width()) {}
  static std::int64_t rows(const GlaShape& s) { return s.tokens * s.heads; }
  GlaDeviceInputs inputs(const GlaShape& s, std::int64_t token) const {
    const auto row = token * s.heads;
    return {q.at(row * s.d_k), k.at(row * s.d_k), v.at(row * s.d_v), g.at(row * s.gate_width())};
  }
  GlaDeviceGradients gradients(const GlaShape& s, std::int64_t token) const {
    const auto row = token * s.heads;
    return {dq.at(row * s.d_k), dk.at(row * s.d_k), dv.at(row * s.d_v), dg.at(row * s.gate_width())};
  }
};

/// Heads of group g of `groups`.
inline Work group_of(const GlaShape& s, int g, int groups) {
  const auto first = s.heads * g / groups;
  return {first, s.heads * (g + 1) / groups - first, 1};
}

/// One rank's share of a head group: its tokens and its memory.
struct Rank {
  GlaDeviceCall call;
  const LayerMemory& layer;
  std::int64_t token;
  PassMemory before, after;
  DeviceArray<Bf16> states;
  std::unique_ptr<DeviceArray<float>> prefix, suffix;

  Rank(const LayerMemory& memory, const GlaShape& share, const Work& work, std::int64_t first, int segments)
      : call{share, work, segments, nullptr},
        layer(memory),
        token(first),
        before(share, work, segments),
        after(share, work, segments),
        states(work.heads(share) * ((share.tokens + 63) / 64) * share.d_k * share.d_v) {}

  GlaDeviceInputs in() const { return layer.inputs(call.shape, token); }
  Bf16* o() const { return layer.o.at(token * call.shape.heads * call.shape.d_v); }
  Bf16* d_o() const { return layer.d_o.at(token * call.shape.heads * call.shape.d_v); }
  GlaDeviceEdges edges_before() const {
    return {before.segments().states, before.segments().gates, prefix ? prefix->at() : nullptr};
  }
  GlaDeviceEdges edges_after() const {
    return {after.segments().states, after.segments().gates, suffix ? suffix->at() : nullptr};
  }

  void segment_states() const { must(gla_segment_states(call, before.segments(), in())); }
  void segment_gradients() const { must(gla_segment_gradients(call, after.segments(), in(), d_o())); }
  void scan(const PassMemory& x) const {
    must(gla_scan_segments(call, x.segments(), x.map_decay.at(), x.map_state.at()));
  }
  void output() const {
    must(segment_output(call.stream, {in(), edges_before(), o()}, {call.shape, call.work, call.segments}));
  }
  void chunk_states() const { must(gla_chunk_states(call, states.at(), in(), edges_before())); }
  void gradients() const {
    must(gla_gradients(call, layer.gradients(call.shape, token), in(), d_o(), states.at(), edges_after()));
  }

  void forward() const {
    segment_states();
    scan(before);
    output();
  }
  void backward() const {
    segment_gradients();
    scan(after);
    chunk_states();
    gradients();
  }
};

}  // namespace baton
