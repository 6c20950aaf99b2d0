// SPDX-License-Identifier: Apache-2.0
// Device bodies of compute steps, registered under the name of the Kernel whose host body they
// double.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/kernel.hpp"
#include "collectives/schedule/registry.hpp"

namespace baton {

/// The device memory of one slice, which the host never reads: `size` elements of f32 or bf16.
/// Buffers are 256-byte aligned; a slice is aligned as its offset in the buffer is.
template <class Float>
class DeviceSlice {
 public:
  using Address = std::conditional_t<std::is_const_v<Float>, const void*, void*>;

  DeviceSlice(Address data, std::size_t size) : data_(data), size_(size) {}

  Address data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// The elements of a slice of f32.
  std::span<Float> f32() const { return {static_cast<Float*>(data_), size_}; }

 private:
  Address data_;
  std::size_t size_;
};

/// The device memory of one step, in the order of the step's slices.
struct DeviceOperands {
  std::vector<DeviceSlice<float>> writes;
  std::vector<DeviceSlice<const float>> reads;
};

/// The arguments of a device body.
struct CudaKernelCall {
  /// The body enqueues here and returns. It neither synchronises nor allocates, since the call may
  /// be captured into a graph.
  cudaStream_t stream;
  const DeviceOperands& operands;
  /// The step's kernel, with the parameters that it was recorded with.
  const Kernel& kernel;
};

using CudaKernel = std::function<void(const CudaKernelCall&)>;

/// Returns the reason why a device body cannot run a kernel with these parameters; empty if it can.
using CudaKernelUnsupported = std::function<Refusal(const Kernel&)>;

/// A device body, and its reasons against kernels that it cannot run.
struct CudaKernelEntry {
  CudaKernel body;
  CudaKernelUnsupported unsupported;
};

/// The device bodies that are built in, by the name of their kernels.
inline Registry<CudaKernelEntry>& cuda_kernels() {
  static Registry<CudaKernelEntry> all("device body");
  return all;
}

/// Adds the device body of the kernels called `name` to the registry, before `main`. If there is
/// one, the program ends with exit code 2 and a text that says so.
struct RegisteredCudaKernel {
  RegisteredCudaKernel(const std::string& name, CudaKernel body, CudaKernelUnsupported unsupported = {}) {
    add_or_exit([&] { cuda_kernels().add(name, {std::move(body), std::move(unsupported)}); });
  }
};

/// The device body of a kernel that `unsupported_on_device` does not refuse.
inline const CudaKernel& find_cuda_kernel(const Kernel& kernel) {
  return cuda_kernels().at(kernel.name).body;
}

/// The reason why the device cannot run `kernel`; empty if it can.
inline Refusal unsupported_on_device(const Kernel& kernel) {
  const CudaKernelEntry* entry = cuda_kernels().find(kernel.name);
  if (entry == nullptr) return "the kernel " + kernel.name + " has no device body";
  return entry->unsupported ? entry->unsupported(kernel) : Refusal{};
}

}  // namespace baton
