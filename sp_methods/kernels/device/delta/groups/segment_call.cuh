// SPDX-License-Identifier: Apache-2.0
// One call of a pass under a delta rule or a low-rank rule: how its heads are cut into segments,
// what it keeps in the workspace that all calls of a process share, and its kernels in order.
#pragma once

#include <utility>

#include "sp_methods/kernels/device/delta/groups/scan.cuh"
#include "sp_methods/kernels/device/delta/groups/sweeps.cuh"
#include "sp_methods/kernels/device/gla/groups/probe.cuh"
#include "sp_methods/kernels/device/workspace.cuh"
#include "sp_methods/kernels/kept_maps.hpp"

namespace baton {

/// What a call needs of its chunks beside what moves states over them.
struct ChunkParts {
  bool queries = true, values = true;
};

/// The segments of a call.
inline Segments cut_of(const Chunks& p) { return {p.shape, p.work, map_segments(p), Dtype::bf16}; }

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
    if (device.major < 9 || !has_warp_groups())
      return "kernels of delta and low-rank rules need a GPU of compute capability 9.0 and a program built "
             "for 90a";
    return Workspace::shared().lacks(static_cast<std::size_t>(end_));
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
      : stream_(stream),
        cut_(cut_of(p)),
        room_(room),
        x_(x),
        chunks_(room.at<char>(room.chunks)),
        matrices_(room.at<char>(room.matrices)),
        added_(room.at<float>(room.added)) {}
  /// Uses memory that outlives the call for the segments' maps and for what is kept of chunks. They
  /// are there if `is_made`.
  void keep(float* kept, const KeptMaps& parts, bool is_made) {
    if (kept == nullptr) return;
    matrices_ = reinterpret_cast<char*>(kept + parts.matrices), added_ = kept + parts.added;
    chunks_ = reinterpret_cast<char*>(kept + parts.chunks);
    is_made_ = is_made;
  }
  cudaError_t code() const { return code_; }
  bool has_one_segment() const { return cut_.count == 1; }
  const SegmentsRoom& room() const { return room_; }
  char* chunks() const { return chunks_; }
  bool has_chunks() const { return is_made_; }
  /// B of the segments.
  const float* added() const { return added_; }

  /// Makes the segments' maps unless they are there, without B if there are no values.
  void make_maps(const Bf16* values) {
    if (is_made_) return;
    launch(segment_maps, SegmentMapsOut{values == nullptr ? nullptr : added_, matrices_}, with(values));
  }
  void scan(SegmentScan x) {
    x.matrices = matrices_;
    launch(scan_segment_maps, x);
  }
  /// The state that comes to each segment if `incoming` comes to the first; makes the maps for it.
  const float* edges_from(const float* incoming, const Bf16* values) {
    if (has_one_segment()) return incoming;
    make_maps(values);
    auto* const edges = room_.at<float>(room_.edges);
    scan({.added = added_, .incoming = incoming, .edges = edges});
    return edges;
  }
  /// The gradient that comes to each segment if `after` comes to the last; the maps are there.
  /// `added` are those before the segments from zero behind each, or null to make them.
  const float* edges_back_from(const float* after, const Bf16* d_o, const float* added) {
    if (has_one_segment()) return after;
    auto* const edges = room_.at<float>(room_.edges_back);
    if (added == nullptr) {
      added = room_.at<float>(room_.added_back);
      sweep_back({.first = room_.at<float>(room_.added_back)}, nullptr, d_o);
    }
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
    x.values = values, x.chunks = chunks_;
    return x;
  }

  cudaStream_t stream_;
  Segments cut_;
  SegmentsRoom room_;
  ChunkTensors x_;
  char *chunks_, *matrices_;
  float* added_;
  bool is_made_ = false;  // maps and chunks are there
  cudaError_t code_ = cudaSuccess;
};

}  // namespace baton
