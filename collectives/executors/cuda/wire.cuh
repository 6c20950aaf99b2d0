// SPDX-License-Identifier: Apache-2.0
// What the links between the GPUs allow, without any library: how long a flag takes, how fast stores go.
#pragma once

#include <cuda_runtime_api.h>

#include "collectives/executors/cuda/ranks.cuh"

namespace baton {

/// A flag's way and the rate of stores from one GPU to the next.
struct LinkLimits {
  double alpha_seconds = 0;
  /// Bytes a second.
  double beta = 0;
};

/// Between neighbours, one pair at a time (all, or 8 spread over the ranks), of which the median: alpha is half the round
/// trip of a flag, the mean of 2000; beta is the best of 20 pushes of 64 MiB by all multiprocessors, `floor_seconds`,
/// what an empty kernel takes, taken off. Collective; needs that lacks_peer_access gave no reason, and two ranks or
/// more.
LinkLimits measure_link_limits(const CudaRanks& ranks, cudaStream_t stream, double floor_seconds);

}  // namespace baton
