// SPDX-License-Identifier: Apache-2.0
// The passes of gated linear attention in segments: runs of whole chunks whose states alone are kept, so that a device
// with as many blocks as heads x segments reads each tensor once and writes few states. These are the host bodies, made
// of the chunkwise kernels; the device's are in gla_device.cuh.
//
//   forward:    segment_states            S of every segment from zero
//               scan_segments             exclusive scan over segments, the rank's map      (the exchange may start)
//               segment_output            o, from the segment's true state
//   backward:   segment_state_gradients   D of every segment from its right
//               scan_segments             as above, right to left                           (the exchange may start)
//               chunk_starts              S before every chunk                              (beside the exchange)
//               segment_gradients         dq dk dv dg
//
// Segments and edges are numbered the way the pass goes: in the backward pass segment 0 is the last one.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (chunkwise form); "ZeCO", arXiv 2507.01004.
#pragma once

#include "sp_methods/kernels/gla_contracts.hpp"

namespace baton {

/// States at the edges of segments when nothing comes in. `heads` are those of the call.
struct SegmentStates {
  float* states = nullptr;  ///< [heads, segments + 1, d_k, d_v]
  float* gates = nullptr;   ///< [heads, segments + 1, d_k]: the log decay from edge 0 to the edge.
  float* totals = nullptr;  ///< [heads, segments, d_k]: the log decay over each segment.
};

/// Segments that give each of `blocks` processors a head and a segment.
std::int64_t segment_count(const GlaShape& shape, std::int64_t heads, std::int64_t blocks);

/// Writes states[segment] as if nothing came in, and totals. Reads k, v, g.
void segment_states(const SegmentStates& out, const GlaInputs& in, const Segments& cut);
/// The same from the right; reads q, g and d_o [tokens, heads, d_v].
void segment_state_gradients(const SegmentStates& out, const GlaInputs& in, const float* d_o,
                             const Segments& cut);

/// Turns states of single segments into states at edges; writes the rank's map, decay [heads, d_k] and state
/// [heads, d_k, d_v].
void scan_segments(const SegmentStates& segments, float* map_decay, float* map_state, const Segments& cut);

/// Writes the true state before every chunk, [heads, chunks, d_k, d_v].
void chunk_starts(float* states, const GlaInputs& in, const SegmentEdges<OnHost>& before,
                  const Segments& cut);

/// Writes the gradients of the call's heads; `states` from chunk_starts, `after` from the scan of the gradients.
void segment_gradients(const GlaGradients& out, const GlaInputs& in, const float* d_o, const float* states,
                       const SegmentEdges<OnHost>& after, const Segments& cut);

}  // namespace baton
