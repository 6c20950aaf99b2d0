// SPDX-License-Identifier: Apache-2.0
// The device bodies of both passes under a delta rule or a low-rank rule, on warp groups: a head's
// chunks are cut into segments, whose maps are composed exactly.
//
//   N~ or the record of every chunk
//   map:               maps of segments, scan
//   output:            maps, scan from what comes in, sweep of every segment from its edge
//   correction:        the same from the identity, without values
//   state gradients:   M of segments, reverse sweep of every segment from zero, scan backward
//   gradients:         maps, scan; reverse sweeps from zero, scan backward; then both sweeps from
//                      the true edges keep S, R, D and Z of chunks, and the gradients follow
//
// One segment needs no map. What a map has kept (kept_maps.hpp) is not made again.
#pragma once

#include "sp_methods/kernels/delta.hpp"
#include "sp_methods/kernels/device/delta/gradients.cuh"
#include "sp_methods/kernels/device/delta/groups/segment_call.cuh"

namespace baton {

/// The bodies of the contracts of `Rule`, which makes what is kept of chunks (put_chunks) and the
/// gradients of chunks (put_gradients).
template <class Rule>
class SegmentedPasses {
 public:
  template <class Contract>
  using Operands = typename Contract::template Operands<OnDevice>;

  static cudaError_t map(cudaStream_t stream, const Operands<typename Rule::Map>& x, const Chunks& p) {
    const bool has_values = x.map_state != nullptr, keeps = x.kept != nullptr;
    SegmentCall call = called(stream, x.in, p);
    call.keep(x.kept, Rule::Map::kept(p), false);
    put_chunks(call, x.in, p, {.queries = keeps, .values = has_values || keeps});
    call.make_maps(has_values || keeps ? x.in.of.v : nullptr);
    if (!has_values && x.map_matrix == nullptr) return call.code();
    call.scan(SegmentScan{.added = call.added(), .last = x.map_state, .map_matrix = x.map_matrix});
    return call.code();
  }

  static cudaError_t output(cudaStream_t stream, const Operands<typename Rule::Output>& x, const Chunks& p) {
    SegmentCall call = called(stream, x.in, p);
    if (x.kept == nullptr) call.keep(x.keeps, Rule::Map::kept(p), false);
    use(call, x, p);
    call.sweep(ForwardResults{.o = x.o}, call.edges_from(x.incoming, x.in.of.v), x.in.of.v);
    return call.code();
  }

  static cudaError_t correction(cudaStream_t stream, const Operands<typename Rule::Correction>& x,
                                const Chunks& p) {
    SegmentCall call = called(stream, x.in, p);
    put_chunks(call, x.in, p, {.values = false});
    call.make_maps(nullptr);
    auto* const edges = SegmentsRoom::at<float>(call.room().edges);
    call.scan(SegmentScan{.matrix_edges = edges});
    call.sweep(ForwardResults{.correction = x.correction}, edges, nullptr);
    return call.code();
  }

  static cudaError_t state_gradients(cudaStream_t stream, const Operands<typename Rule::StateGradients>& x,
                                     const Chunks& p) {
    SegmentCall call = called(stream, x.in, p);
    const bool is_whole = call.has_one_segment();
    if (is_whole && x.map_state == nullptr) return cudaSuccess;  // which keeps nothing
    use(call, x, p, {.values = false});
    float* first = x.keeps != nullptr ? x.keeps : SegmentsRoom::at<float>(call.room().added);
    if (is_whole) first = x.map_state;
    if (!is_whole) call.make_maps(nullptr);
    call.sweep_back(ReverseResults{.first = first}, nullptr, x.d_o);
    if (!is_whole && x.map_state != nullptr)
      call.scan(SegmentScan{.added = first, .last = x.map_state, .backward = true});
    return call.code();
  }

  static cudaError_t gradients(cudaStream_t stream, const Operands<typename Rule::Gradients>& x,
                               const Chunks& p) {
    SegmentCall call = called(stream, x.in, p, true);
    use(call, x, p);
    const SegmentsRoom& room = call.room();
    auto *const states = room.at<Bf16>(room.states), *const gradients = room.at<Bf16>(room.gradients);
    auto *const missing = room.at<Bf16>(room.missing), *const z = room.at<Bf16>(room.z);
    const float* const before = call.edges_from(x.before, x.in.of.v);
    const float* const behind = call.edges_back_from(x.after, x.d_o, x.kept_gradients);
    call.sweep(ForwardResults{.states = states, .missing = missing}, before, x.in.of.v);
    call.sweep_back(ReverseResults{.gradients = gradients, .z = z}, behind, x.d_o);
    if (call.code() != cudaSuccess) return call.code();
    return Rule::put_gradients(stream, x, {states, gradients, missing, z, call.chunks()}, p);
  }

  /// Makes room in the workspace for a call without gradients, and returns the reason if it cannot
  /// run here.
  static Refusal lacks_room(const Chunks& p) { return room(p, false).lacks(); }
  /// The same for a call of gradients.
  static Refusal lacks_room_of_gradients(const Chunks& p) { return room(p, true).lacks(); }

 private:
  static SegmentsRoom room(const Chunks& p, bool has_gradients) {
    return {p, Rule::chunk_bytes(p.shape), has_gradients};
  }

  template <class Inputs>
  static SegmentCall called(cudaStream_t stream, const Inputs& in, const Chunks& p,
                            bool has_gradients = false) {
    return {stream, room(p, has_gradients), Rule::tensors(in, p.shape), p};
  }
  /// Makes what is kept of chunks, unless it is there.
  template <class Inputs>
  static void put_chunks(SegmentCall& call, const Inputs& in, const Chunks& p, ChunkParts parts) {
    if (call.has_chunks()) return;
    call.launch(
        [&](cudaStream_t on, const Segments&) { return Rule::put_chunks(on, call.chunks(), in, p, parts); });
  }
  /// Lets a call use what the map has kept, and makes what is missing of its chunks.
  template <class Reader>
  static void use(SegmentCall& call, const Reader& x, const Chunks& p, ChunkParts parts = {}) {
    call.keep(const_cast<float*>(x.kept), Rule::Map::kept(p), true);
    put_chunks(call, x.in, p, parts);
  }
};

}  // namespace baton
