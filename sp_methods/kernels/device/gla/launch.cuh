// SPDX-License-Identifier: Apache-2.0
// The device bodies of gated linear attention in segments (gla_segments.hpp): bf16 tensors, f32 carried states, heads x
// segments blocks.
//
// Chunks have 64 tokens, whatever the shape says, and d_k, d_v are 64 or 128. Every call covers the heads of its Work,
// enqueues one kernel on the stream and neither allocates nor synchronises. Pointers are 16-byte aligned.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (chunkwise form); "ZeCO", arXiv 2507.01004.
#pragma once

#include <cuda_runtime_api.h>

#include "sp_methods/kernels/device/tile/contract.cuh"
#include "sp_methods/kernels/gla_segments.hpp"

namespace baton {

using GlaDeviceInputs = LayerInputs<OnDevice>;
using GlaDeviceGradients = LayerGradients<OnDevice>;

cudaError_t segment_states(cudaStream_t stream, const SegmentStates::Operands<OnDevice>& x,
                           const Segments& cut);
cudaError_t segment_state_gradients(cudaStream_t stream, const SegmentStateGradients::Operands<OnDevice>& x,
                                    const Segments& cut);
cudaError_t scan_segments(cudaStream_t stream, const ScanSegments::Operands<OnDevice>& x,
                          const Segments& cut);
cudaError_t segment_output(cudaStream_t stream, const SegmentOutput::Operands<OnDevice>& x,
                           const Segments& cut);
cudaError_t chunk_starts(cudaStream_t stream, const ChunkStarts::Operands<OnDevice>& x, const Segments& cut);
cudaError_t segment_gradients(cudaStream_t stream, const SegmentGradients::Operands<OnDevice>& x,
                              const Segments& cut);

}  // namespace baton
