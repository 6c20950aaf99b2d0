// SPDX-License-Identifier: Apache-2.0
// Copy, combine and compute steps on a device.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "collectives/executors/cuda/kernel.cuh"
#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// Enqueues a combine: operands as of `combine_on_host` (combine.hpp). One kernel; two where a composition writes its
/// decay over the later one.
void combine_on_device(cudaStream_t stream, const DeviceOperands& operands);

/// Enqueues a copy, combine or compute step of `schedule`.
void run_on_device(cudaStream_t stream, const Schedule& schedule, const Step& step,
                   const DeviceOperands& operands);

/// Which kernel of `schedule` has no device body, as a reason to skip it, or an empty string.
Refusal lacks_device_body(const Schedule& schedule);

}  // namespace baton
