// SPDX-License-Identifier: Apache-2.0
// Which GPU a process has, whether there is one for each, and whether they reach one another's memory.
#pragma once

#include <string>

#include "collectives/executors/cuda/ranks.cuh"
#include "collectives/schedule/errors.hpp"

namespace baton {

/// Why `ranks` ranks cannot have a GPU each, as far as this host can tell, or an empty string: no driver, or fewer GPUs
/// than processes that the launcher put here. Needs no MPI. Ends no process and takes no GPU.
Refusal lacks_gpus(int ranks);

/// Makes the GPU of this process's number on its host the current one and returns its number. All GPUs stay visible, as
/// peer access needs. Throws UsageError if there is none.
int take_gpu(const CudaRanks& ranks);

/// Why the ranks cannot read and write one another's GPU memory, or an empty string; the same on all ranks. Collective,
/// after take_gpu.
Refusal lacks_peer_access(const CudaRanks& ranks);

}  // namespace baton
