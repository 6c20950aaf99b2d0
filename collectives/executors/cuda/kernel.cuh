// SPDX-License-Identifier: Apache-2.0
// Device bodies of compute steps, registered under the name of the Kernel whose host body they double.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/kernel.hpp"

namespace baton {

/// The device memory of one step, in the order of the step's slices. The spans are never read on the host. Buffers are
/// 256-byte aligned, a slice only as far as its offset in the buffer is. A span of a bf16 slice has as many elements as
/// that, and its pointer is to be cast: the kernel knows what its operands are.
struct DeviceOperands {
  std::vector<std::span<float>> writes;
  std::vector<std::span<const float>> reads;
};

/// What a device body gets.
struct CudaKernelCall {
  /// Enqueue here and return; nothing may synchronise or allocate, since the call may be captured into a graph.
  cudaStream_t stream;
  const DeviceOperands& operands;
  /// The step's kernel, with the numbers its host body was made with (`Kernel::parameters`).
  const Kernel& kernel;
};

using CudaKernel = std::function<void(const CudaKernelCall&)>;

/// Why a device body cannot do the work of a kernel with these parameters, or an empty string.
using CudaKernelUnsupported = std::function<Refusal(const Kernel&)>;

/// Adds the device body of the kernels called `name` to the registry, before `main`.
struct RegisteredCudaKernel {
  RegisteredCudaKernel(std::string name, CudaKernel body, CudaKernelUnsupported unsupported = {});
};

/// The device body of a kernel that `unsupported_on_device` gave no reason against.
const CudaKernel& find_cuda_kernel(const Kernel& kernel);

/// Why the device cannot do the work of `kernel`, or an empty string.
Refusal unsupported_on_device(const Kernel& kernel);

}  // namespace baton
