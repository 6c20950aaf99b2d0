// SPDX-License-Identifier: Apache-2.0
// The device bodies of both passes under a delta rule, on warp groups: a head's chunks are cut into
// segments, whose maps are composed exactly.
//
//   N~ or the record of every chunk (inverse.cuh)
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

/// Makes room in the workspace for a call without gradients, and returns the reason if it cannot
/// run here.
Refusal lacks_delta_room(const Chunks& p);
/// The same for a call of gradients.
Refusal lacks_delta_room_of_gradients(const Chunks& p);

}  // namespace baton
