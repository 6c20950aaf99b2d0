// SPDX-License-Identifier: Apache-2.0
// Gated linear attention on one device: bf16 tensors [tokens, heads, width], fp32 carried states, heads x
// segments blocks.
//
//   forward:    segment_states      S of every segment of tokens from zero            reads k v g
//               scan_segments       exclusive scan over segments, the rank's map      (the exchange may start)
//               output              o, from the segment's true state                  reads q k v g
//   backward:   segment_gradients   D of every segment, from its right                reads q g d_o
//               scan_segments       as above, right to left                           (the exchange may start)
//               chunk_states        bf16 S before every chunk                         reads k v g
//               gradients           dq dk dv dg, chunks right to left                 reads q k v g d_o and those S
//
// Chunks have 64 tokens and d_k, d_v are 64 or 128. Every call covers the heads of its Work, enqueues one
// kernel and neither allocates nor synchronises. Pointers are 16-byte aligned.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (chunkwise form); "ZeCO", arXiv 2507.01004.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <string>

#include "sp_methods/kernels/device/tile/contract.cuh"
#include "sp_methods/kernels/gla_contracts.hpp"

namespace baton {

using GlaDeviceInputs = LayerInputs<OnDevice>;
using GlaDeviceGradients = LayerGradients<OnDevice>;

/// States at the edges of a call's segments when nothing comes in, numbered the way the pass goes: edge 0 is
/// where it starts, edge `segments` is its end.
struct GlaDeviceSegments {
  float* states = nullptr;  ///< [heads, segments + 1, d_k, d_v]
  float* gates = nullptr;   ///< [heads, segments + 1, d_k]: the log decay from edge 0 to the edge.
  float* totals = nullptr;  ///< [heads, segments, d_k]: the log decay over each segment.
};

/// Null states are zero.
using GlaDeviceEdges = SegmentEdges<OnDevice>;

/// What every call needs to know.
struct GlaDeviceCall {
  GlaShape shape;    ///< `chunk` is not read.
  Work work;         ///< The heads of the call; `threads` is not read.
  int segments = 1;  ///< At most as many as there are chunks.
  cudaStream_t stream = nullptr;
};

/// Why the device kernels cannot run this shape, or an empty string.
Refusal gla_device_refuses(const GlaShape& shape);

/// Segments of a call that fill `multiprocessors` once.
int gla_device_segments(const GlaShape& shape, const Work& work, int multiprocessors);

/// Writes states[segment] as if nothing came in, and totals.
cudaError_t gla_segment_states(const GlaDeviceCall& call, const GlaDeviceSegments& out,
                               const GlaDeviceInputs& in);
/// The same from the right; d_o [tokens, heads, d_v].
cudaError_t gla_segment_gradients(const GlaDeviceCall& call, const GlaDeviceSegments& out,
                                  const GlaDeviceInputs& in, const __nv_bfloat16* d_o);

/// Turns states of single segments into states at edges, and writes the map of the whole rank: decay [heads,
/// d_k] and state [heads, d_k, d_v].
cudaError_t gla_scan_segments(const GlaDeviceCall& call, const GlaDeviceSegments& segments, float* map_decay,
                              float* map_state);

cudaError_t segment_output(cudaStream_t stream, const SegmentOutput::Operands<OnDevice>& x,
                           const Segments& cut);

/// Writes states [heads, chunks, d_k, d_v], the true state before every chunk.
cudaError_t gla_chunk_states(const GlaDeviceCall& call, __nv_bfloat16* states, const GlaDeviceInputs& in,
                             const GlaDeviceEdges& before);

/// Writes all gradients. `states` are from gla_chunk_states, null for zero where every segment is one chunk; `after` is
/// from the scan of gla_segment_gradients.
cudaError_t gla_gradients(const GlaDeviceCall& call, const GlaDeviceGradients& out, const GlaDeviceInputs& in,
                          const __nv_bfloat16* d_o, const __nv_bfloat16* states, const GlaDeviceEdges& after);

}  // namespace baton
