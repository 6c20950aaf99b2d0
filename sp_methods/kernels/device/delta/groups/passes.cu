// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/device/delta/groups/passes.cuh"

#include <cmath>

#include "sp_methods/kernels/device/delta/groups/gradients.cuh"
#include "sp_methods/kernels/device/delta/groups/inverse.cuh"
#include "sp_methods/kernels/device/delta/groups/scan.cuh"
#include "sp_methods/kernels/device/delta/groups/sweeps.cuh"
#include "sp_methods/kernels/device/delta/layer.cuh"
#include "sp_methods/kernels/device/gla/groups/probe.cuh"

namespace baton {
namespace {

/// Cuts a call's heads so that one block a head and segment fills the device. A scan's step costs
/// about a quarter of a chunk's, so more segments than twice the root of the chunks do not pay.
Segments cut_of(const Chunks& p) {
  const std::int64_t chunks = p.shape.chunks(), blocks = KernelTraits{}.blocks / p.work.heads(p.shape);
  const auto most = static_cast<std::int64_t>(2 * std::sqrt(static_cast<double>(chunks)));
  return {p.shape, p.work, std::clamp<std::int64_t>(std::min(blocks, most), 1, chunks), Dtype::bf16};
}

/// The parts of the workspace of a call.
class SegmentsRoom {
 public:
  SegmentsRoom(const Chunks& p, bool has_gradients) {
    const LayerShape& s = p.shape;
    const std::int64_t heads = p.work.heads(s), chunks = heads * s.chunks(), cut = heads * cut_of(p).count;
    const std::int64_t state = s.d_v * s.d_k, matrix = s.d_k * s.d_k;
    this->chunks = take(chunks * chunk_bytes(s));
    matrices = take(cut * matrix * 4);
    added = take(cut * state * 4);
    edges = take(cut * std::max(state, matrix) * 4);
    if (!has_gradients) return;
    added_back = take(cut * state * 4);
    edges_back = take(cut * state * 4);
    states = take(chunks * state * 2);
    gradients = take(chunks * state * 2);
    missing = take(s.tokens * s.heads * s.d_v * 2);
    z = take(s.tokens * s.heads * s.d_v * 2);
  }
  std::int64_t bytes() const { return end_; }

  std::int64_t chunks, matrices, added, edges;
  std::int64_t added_back = 0, edges_back = 0, states = 0, gradients = 0, missing = 0, z = 0;

 private:
  std::int64_t take(std::int64_t bytes) { return std::exchange(end_, end_ + (bytes + 1023) / 1024 * 1024); }
  std::int64_t end_ = 0;
};

template <class Element>
Element* at(std::int64_t offset) {
  return reinterpret_cast<Element*>(delta_workspace() + offset);
}

Refusal lacks_room(const Chunks& p, bool has_gradients) {
  if (Refusal lack = lacks_workspace(SegmentsRoom(p, has_gradients).bytes())) return lack;
  return has_warp_groups() ? Refusal{} : "kernels of delta rules need a program that is built for 90a";
}

/// The kernels of one call, in order on its stream; after an error nothing more is launched.
class SegmentCall {
 public:
  SegmentCall(cudaStream_t stream, const DeltaInputs<OnDevice>& in, const Chunks& p, bool has_gradients)
      : stream_(stream), cut_(cut_of(p)), room_(p, has_gradients), in_(in) {
    code_ = chunk_inverses(stream, at<char>(room_.chunks), tensors(nullptr), p);
  }
  cudaError_t code() const { return code_; }
  bool has_one_segment() const { return cut_.count == 1; }
  const SegmentsRoom& room() const { return room_; }

  void make_maps(bool has_values) {
    launch(segment_maps, SegmentMapsOut{has_values ? at<float>(room_.added) : nullptr, at<char>(room_.matrices)},
           tensors(in_.of.v));
  }
  void scan(SegmentScan x) {
    x.matrices = at<char>(room_.matrices);
    launch(scan_segment_maps, x);
  }
  /// The state that comes to each segment if `incoming` comes to the first; makes the maps for it.
  const float* edges_from(const float* incoming) {
    if (has_one_segment()) return incoming;
    make_maps(true);
    scan({.added = at<float>(room_.added), .incoming = incoming, .edges = at<float>(room_.edges)});
    return at<float>(room_.edges);
  }
  void sweep(const ForwardResults& out, const float* before, const Bf16* values) {
    launch(forward_segments, out, tensors(values), before);
  }
  void sweep_back(const ReverseResults& out, const float* behind, const Bf16* d_o) {
    launch(reverse_segments, out, tensors(d_o), behind);
  }
  template <class Kernel, class... Arguments>
  void launch(Kernel kernel, const Arguments&... arguments) {
    if (code_ == cudaSuccess) code_ = kernel(stream_, arguments..., cut_);
  }

 private:
  ChunkTensors tensors(const Bf16* values) const {
    return {in_.of.q, in_.of.k, values, in_.of.g, in_.beta, at<char>(room_.chunks)};
  }

  cudaStream_t stream_;
  Segments cut_;
  SegmentsRoom room_;
  const DeltaInputs<OnDevice>& in_;
  cudaError_t code_;
};

cudaError_t delta_map(cudaStream_t stream, const DeltaMap::Operands<OnDevice>& x,
                                  const Chunks& p) {
  SegmentCall call(stream, x.in, p, false);
  const bool has_values = x.map_state != nullptr;
  call.make_maps(has_values);
  call.scan(
      {.added = at<float>(call.room().added), .last = x.map_state, .map_matrix = x.map_matrix});
  return call.code();
}

cudaError_t delta_output(cudaStream_t stream, const DeltaOutput::Operands<OnDevice>& x,
                                     const Chunks& p) {
  SegmentCall call(stream, x.in, p, false);
  call.sweep({.o = x.o}, call.edges_from(x.incoming), x.in.of.v);
  return call.code();
}

cudaError_t delta_correction(cudaStream_t stream, const DeltaCorrection::Operands<OnDevice>& x,
                                         const Chunks& p) {
  SegmentCall call(stream, x.in, p, false);
  call.make_maps(false);
  call.scan({.matrix_edges = at<float>(call.room().edges)});
  call.sweep({.correction = x.correction}, at<float>(call.room().edges), nullptr);
  return call.code();
}

cudaError_t delta_state_gradients(cudaStream_t stream,
                                              const DeltaStateGradients::Operands<OnDevice>& x,
                                              const Chunks& p) {
  SegmentCall call(stream, x.in, p, false);
  float* const first = call.has_one_segment() ? x.map_state : at<float>(call.room().added);
  if (!call.has_one_segment()) call.make_maps(false);
  call.sweep_back({.first = first}, nullptr, x.d_o);
  if (!call.has_one_segment()) call.scan({.added = first, .last = x.map_state, .backward = true});
  return call.code();
}

cudaError_t delta_gradients(cudaStream_t stream, const DeltaGradients::Operands<OnDevice>& x,
                                        const Chunks& p) {
  SegmentCall call(stream, x.in, p, true);
  const SegmentsRoom& room = call.room();
  const float* const before = call.edges_from(x.before);
  const float* behind = x.after;
  if (!call.has_one_segment()) {
    call.sweep_back({.first = at<float>(room.added_back)}, nullptr, x.d_o);
    call.scan({.added = at<float>(room.added_back),
               .incoming = x.after,
               .edges = at<float>(room.edges_back),
               .backward = true});
    behind = at<float>(room.edges_back);
  }
  auto *const states = at<Bf16>(room.states), *const gradients = at<Bf16>(room.gradients);
  auto *const missing = at<Bf16>(room.missing), *const z = at<Bf16>(room.z);
  call.sweep({.states = states, .missing = missing}, before, x.in.of.v);
  call.sweep_back({.gradients = gradients, .z = z}, behind, x.d_o);
  if (call.code() != cudaSuccess) return call.code();
  return delta_gradients_of_chunks(stream, x, {states, gradients, missing, z}, p);
}

const RegisteredCudaKernel registered[]{
    device_body<DeltaMap>(delta_map, nullptr, lacks_delta_room),
    device_body<DeltaOutput>(delta_output, nullptr, lacks_delta_room),
    device_body<DeltaCorrection>(delta_correction, nullptr, lacks_delta_room),
    device_body<DeltaStateGradients>(delta_state_gradients, nullptr, lacks_delta_room),
    device_body<DeltaGradients>(delta_gradients, nullptr, lacks_delta_room_of_gradients),
};

}  // namespace

Refusal lacks_delta_room(const Chunks& p) { return lacks_room(p, false); }
Refusal lacks_delta_room_of_gradients(const Chunks& p) { return lacks_room(p, true); }

}  // namespace baton
