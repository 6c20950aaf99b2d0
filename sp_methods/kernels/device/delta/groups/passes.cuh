// SPDX-License-Identifier: Apache-2.0
// Both passes under a delta rule with a gate a head or none, on warp groups: a head's chunks are cut
// into segments, whose maps are composed exactly.
//
//   N~ of every chunk (inverse.cu)
//   map:               maps of segments, scan
//   output:            maps, scan from what comes in, sweep of every segment from its edge
//   correction:        the same from the identity, without values
//   state gradients:   M of segments, reverse sweep of every segment from zero, scan backward
//   gradients:         maps, scan; reverse sweeps from zero, scan backward; then both sweeps from
//                      the true edges keep S, R, D and Z of chunks, and gradients.cu follows
//
// One segment needs no map. All passes of a call share the workspace.
#pragma once

#include "sp_methods/kernels/delta.hpp"
#include "sp_methods/kernels/device/tile/tile.cuh"

namespace baton {

/// True if a layer's passes run on warp groups, on this device as the program is built.
bool runs_in_segments(const Chunks& p);

/// Bytes of the workspace that a call in segments needs.
std::int64_t segments_room(const Chunks& p, bool has_gradients);

cudaError_t delta_map_in_segments(cudaStream_t stream, const DeltaMap::Operands<OnDevice>& x, const Chunks& p);
cudaError_t delta_output_in_segments(cudaStream_t stream, const DeltaOutput::Operands<OnDevice>& x,
                                     const Chunks& p);
cudaError_t delta_correction_in_segments(cudaStream_t stream, const DeltaCorrection::Operands<OnDevice>& x,
                                         const Chunks& p);
cudaError_t delta_state_gradients_in_segments(cudaStream_t stream,
                                              const DeltaStateGradients::Operands<OnDevice>& x,
                                              const Chunks& p);
cudaError_t delta_gradients_in_segments(cudaStream_t stream, const DeltaGradients::Operands<OnDevice>& x,
                                        const Chunks& p);

}  // namespace baton
