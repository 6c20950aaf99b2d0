// SPDX-License-Identifier: Apache-2.0
// One call of a pass under a delta rule or a low-rank rule: how its heads are cut into segments,
// what it keeps in the workspace that all calls of a process share, and its kernels in order.
#pragma once

#include <cmath>
#include <utility>

#include "sp_methods/kernels/device/delta/groups/scan.cuh"
#include "sp_methods/kernels/device/delta/groups/sweeps.cuh"
#include "sp_methods/kernels/device/gla/groups/probe.cuh"
#include "sp_methods/kernels/device/workspace.cuh"

namespace baton {

/// What a call needs of its chunks beside what moves states over them.
struct ChunkParts {
  bool queries = true, values = true;
};

/// Cuts a call's heads so that one block a head and segment fills the device. A scan's step costs
/// about a quarter of a chunk's, so more segments than twice the root of the chunks do not pay.
inline Segments cut_of(const Chunks& p) {
  const std::int64_t chunks = each_chunk(p).count, blocks = KernelTraits{}.blocks / p.work.heads(p.shape);
  const auto most = static_cast<std::int64_t>(2 * std::sqrt(static_cast<double>(chunks)));
  return {p.shape, p.work, std::clamp<std::int64_t>(std::min(blocks, most), 1, chunks), Dtype::bf16};
}

/// The parts of the workspace of a call. `chunk_bytes` are kept of every chunk.
class SegmentsRoom {
 public:
  SegmentsRoom(const Chunks& p, std::int64_t chunk_bytes, bool has_gradients) {
    const LayerShape& s = p.shape;
    const std::int64_t heads = p.work.heads(s), each = heads * each_chunk(p).count,
                       cut = heads * cut_of(p).count;
    const std::int64_t state = s.d_v * s.d_k, matrix = s.d_k * s.d_k;
    chunks = take(each * chunk_bytes);
    matrices = take(cut * matrix * 4);
    added = take(cut * state * 4);
    edges = take(cut * std::max(state, matrix) * 4);
    if (!has_gradients) return;
    added_back = take(cut * state * 4);
    edges_back = take(cut * state * 4);
    states = take(each * state * 2);
    gradients = take(each * state * 2);
    missing = take(s.tokens * s.heads * s.d_v * 2);
    z = take(s.tokens * s.heads * s.d_v * 2);
  }
  /// Makes the workspace large enough, and returns the reason if the call cannot run here.
  Refusal lacks() const {
    cudaDeviceProp device;
    int number = 0;
    if (cudaGetDevice(&number) != cudaSuccess || cudaGetDeviceProperties(&device, number) != cudaSuccess)
      return "no GPU here";
    if (device.major < 9) return "kernels of delta and low-rank rules need a GPU of compute capability 9.0";
    try {
      Workspace::shared().grow(static_cast<std::size_t>(end_));
    } catch (const SystemError& error) {
      return error.what();
    }
    return has_warp_groups() ? Refusal{}
                             : "kernels of delta and low-rank rules need a program that is built for 90a";
  }
  /// A part of the workspace.
  template <class Element>
  static Element* at(std::int64_t offset) {
    return reinterpret_cast<Element*>(Workspace::shared().get() + offset);
  }

  std::int64_t chunks, matrices, added, edges;
  std::int64_t added_back = 0, edges_back = 0, states = 0, gradients = 0, missing = 0, z = 0;

 private:
  std::int64_t take(std::int64_t bytes) { return std::exchange(end_, end_ + (bytes + 1023) / 1024 * 1024); }
  std::int64_t end_ = 0;
};

/// The kernels of one call, in order on its stream; after an error nothing more is launched.
class SegmentCall {
 public:
  /// The tensors `x` have no values: every sweep has its own.
  SegmentCall(cudaStream_t stream, const SegmentsRoom& room, const ChunkTensors& x, const Chunks& p)
      : stream_(stream), cut_(cut_of(p)), room_(room), x_(x) {
    x_.chunks = chunks();
  }
  cudaError_t code() const { return code_; }
  bool has_one_segment() const { return cut_.count == 1; }
  const SegmentsRoom& room() const { return room_; }
  char* chunks() const { return room_.at<char>(room_.chunks); }

  /// Makes the segments' maps, without B if there are no values.
  void make_maps(const Bf16* values) {
    float* const added = values == nullptr ? nullptr : room_.at<float>(room_.added);
    launch(segment_maps, SegmentMapsOut{added, room_.at<char>(room_.matrices)}, with(values));
  }
  void scan(SegmentScan x) {
    x.matrices = room_.at<char>(room_.matrices);
    launch(scan_segment_maps, x);
  }
  /// The state that comes to each segment if `incoming` comes to the first; makes the maps for it.
  const float* edges_from(const float* incoming, const Bf16* values) {
    if (has_one_segment()) return incoming;
    make_maps(values);
    auto* const edges = room_.at<float>(room_.edges);
    scan({.added = room_.at<float>(room_.added), .incoming = incoming, .edges = edges});
    return edges;
  }
  /// The gradient that comes to each segment if `after` comes to the last; the maps are there.
  const float* edges_back_from(const float* after, const Bf16* d_o) {
    if (has_one_segment()) return after;
    auto *const added = room_.at<float>(room_.added_back), *const edges = room_.at<float>(room_.edges_back);
    sweep_back({.first = added}, nullptr, d_o);
    scan({.added = added, .incoming = after, .edges = edges, .backward = true});
    return edges;
  }
  void sweep(const ForwardResults& out, const float* before, const Bf16* values) {
    launch(forward_segments, out, with(values), before);
  }
  void sweep_back(const ReverseResults& out, const float* behind, const Bf16* d_o) {
    launch(reverse_segments, out, with(d_o), behind);
  }
  /// Calls kernel(stream, arguments.., the cut).
  template <class Kernel, class... Arguments>
  void launch(Kernel kernel, const Arguments&... arguments) {
    if (code_ == cudaSuccess) code_ = kernel(stream_, arguments..., cut_);
  }

 private:
  ChunkTensors with(const Bf16* values) const {
    ChunkTensors x = x_;
    x.values = values;
    return x;
  }

  cudaStream_t stream_;
  Segments cut_;
  SegmentsRoom room_;
  ChunkTensors x_;
  cudaError_t code_ = cudaSuccess;
};

}  // namespace baton
