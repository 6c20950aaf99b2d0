// SPDX-License-Identifier: Apache-2.0
// The room of the device bodies under a delta rule (segmented_passes.cuh). All passes of a call
// share the workspace.
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
