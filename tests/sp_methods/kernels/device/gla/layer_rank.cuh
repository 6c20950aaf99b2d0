// SPDX-License-Identifier: Apache-2.0
// A layer of gated linear attention in device memory, one rank's share of it, and the calls of its
// two passes: for the test of the device bodies.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/executors/cuda/error.cuh"
#include "sp_methods/kernels/device/gla/layer.cuh"

namespace baton {

inline std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// Device memory of `count` elements, every byte 0xff at first: NaN in bf16 and fp32.
template <class Element>
class DeviceArray {
 public:
  explicit DeviceArray(std::int64_t count) : count_(count) {
    cuda(cudaMalloc(reinterpret_cast<void**>(&data_), size(count) * sizeof(Element) + 16));
    cuda(cudaMemset(data_, 0xff, size(count) * sizeof(Element)));
  }
  explicit DeviceArray(const std::vector<Element>& host)
      : DeviceArray(static_cast<std::int64_t>(host.size())) {
    cuda(cudaMemcpy(data_, host.data(), host.size() * sizeof(Element), cudaMemcpyHostToDevice));
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  Element* at(std::int64_t element = 0) const { return data_ + element; }
  std::int64_t count() const { return count_; }
  std::vector<Element> host() const {
    std::vector<Element> out(size(count_));
    cuda(cudaMemcpy(out.data(), data_, out.size() * sizeof(Element), cudaMemcpyDeviceToHost));
    return out;
  }

 private:
  Element* data_ = nullptr;
  std::int64_t count_;
};

/// Where one pass leaves the states of a rank's segments and the rank's map.
struct PassMemory {
  DeviceArray<float> states, gates, totals, map_decay, map_state;

  PassMemory(const LayerShape& s, const Work& work, int segments)
      : states(work.heads(s) * (segments + 1) * s.d_k * s.d_v),
        gates(work.heads(s) * (segments + 1) * s.d_k),
        totals(work.heads(s) * segments * s.d_k),
        map_decay(work.heads(s) * s.d_k),
        map_state(work.heads(s) * s.d_k * s.d_v) {}
  SegmentEdges<OnDevice> edges(const std::unique_ptr<DeviceArray<float>>& incoming) const {
    return {states.at(), gates.at(), incoming ? incoming->at() : nullptr};
  }
};

/// The inputs and results of a whole layer.
struct LayerMemory {
  DeviceArray<Bf16> q, k, v, g, d_o, o, dq, dk, dv, dg;

  explicit LayerMemory(const LayerShape& s)
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
  static std::int64_t rows(const LayerShape& s) { return s.tokens * s.heads; }
  GlaDeviceInputs inputs(const LayerShape& s, std::int64_t token) const {
    const auto row = token * s.heads;
    return {q.at(row * s.d_k), k.at(row * s.d_k), v.at(row * s.d_v), g.at(row * s.gate_width())};
  }
  GlaDeviceGradients gradients(const LayerShape& s, std::int64_t token) const {
    const auto row = token * s.heads;
    return {dq.at(row * s.d_k), dk.at(row * s.d_k), dv.at(row * s.d_v), dg.at(row * s.gate_width())};
  }
};

/// Heads of group g of `groups`.
inline Work group_of(const LayerShape& s, int g, int groups) {
  const auto first = s.heads * g / groups;
  return {first, s.heads * (g + 1) / groups - first, 1};
}

/// One rank's share of a head group: its tokens and its memory.
struct Rank {
  Segments cut;
  const LayerMemory& layer;
  std::int64_t token;
  PassMemory before, after;
  DeviceArray<Bf16> starts, segment_starts_;
  DeviceArray<float> decays, own_states, own_totals;  ///< Of chunk_starts.
  std::unique_ptr<DeviceArray<float>> prefix, suffix;

  Rank(const LayerMemory& memory, const LayerShape& share, const Work& work, std::int64_t first, int segments)
      : cut{share, work, segments, Dtype::bf16},
        layer(memory),
        token(first),
        before(share, work, segments),
        after(share, work, segments),
        starts(chunks() * share.d_k * share.d_v),
        segment_starts_(work.heads(share) * segments * share.d_k * share.d_v),
        decays(chunks() * share.d_k),
        own_states(before.states.count()),
        own_totals(before.totals.count()) {}

  /// Of all heads of the group.
  std::int64_t chunks() const { return cut.work.heads(cut.shape) * ((cut.shape.tokens + 63) / 64); }

  GlaDeviceInputs in() const { return layer.inputs(cut.shape, token); }
  Bf16* o() const { return layer.o.at(token * cut.shape.heads * cut.shape.d_v); }
  Bf16* d_o() const { return layer.d_o.at(token * cut.shape.heads * cut.shape.d_v); }

  void segment_states() const {
    cuda(on_device<SegmentStates>(
        {}, {.in = in(), .states = before.states.at(), .totals = before.totals.at()}, cut));
  }
  void segment_state_gradients() const {
    cuda(on_device<SegmentStateGradients>(
        {}, {.in = in(), .d_o = d_o(), .states = after.states.at(), .totals = after.totals.at()}, cut));
  }
  void scan_segments(const PassMemory& x) const {
    cuda(on_device<ScanSegments>({},
                                 {.totals = x.totals.at(),
                                  .states = x.states.at(),
                                  .gates = x.gates.at(),
                                  .map_decay = x.map_decay.at(),
                                  .map_state = x.map_state.at()},
                                 cut));
  }
  void segment_output() const {
    cuda(on_device<SegmentOutput>({}, {.in = in(), .before = before.edges(prefix), .o = o()}, cut));
  }
  /// From zero at every segment's start, with what the segments add.
  void chunk_starts() const {
    cuda(on_device<ChunkStarts>({},
                                {.in = in(),
                                 .starts = starts.at(),
                                 .decays = decays.at(),
                                 .states = own_states.at(),
                                 .totals = own_totals.at()},
                                cut));
  }
  void segment_starts() const {
    cuda(on_device<SegmentStarts>({},
                                  {.totals = own_totals.at(),
                                   .states = own_states.at(),
                                   .incoming = prefix ? prefix->at() : nullptr,
                                   .starts = segment_starts_.at()},
                                  cut));
  }
  /// From the true states at the segments' starts, which a forward pass has left.
  void true_chunk_starts() const {
    cuda(
        on_device<ChunkStarts>({}, {.in = in(), .before = before.edges(prefix), .starts = starts.at()}, cut));
  }
  /// After segment_starts, or after true_chunk_starts.
  void segment_gradients(bool starts_are_true = false) const {
    ChunkStartsInSegments<OnDevice> states{.chunks = starts.at()};
    if (!starts_are_true) states = {starts.at(), decays.at(), segment_starts_.at()};
    cuda(on_device<SegmentGradients>({},
                                     {.in = in(),
                                      .d_o = d_o(),
                                      .before = states,
                                      .after = after.edges(suffix),
                                      .out = layer.gradients(cut.shape, token)},
                                     cut));
  }
};

}  // namespace baton
