// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "collectives/executors/cuda/kernel.cuh"
#include "collectives/schedule/registry.hpp"

namespace baton {
namespace {

struct Entry {
  CudaKernel body;
  CudaKernelUnsupported unsupported;
};

Registry<Entry>& registry() {
  static Registry<Entry> all("device body");
  return all;
}

}  // namespace

RegisteredCudaKernel::RegisteredCudaKernel(const std::string& name, CudaKernel body,
                                           CudaKernelUnsupported unsupported) {
  registry().add(name, {std::move(body), std::move(unsupported)});
}

const CudaKernel& find_cuda_kernel(const Kernel& kernel) { return registry().at(kernel.name).body; }

Refusal unsupported_on_device(const Kernel& kernel) {
  const Entry* entry = registry().find(kernel.name);
  if (entry == nullptr) return "the kernel " + kernel.name + " has no device body";
  return entry->unsupported ? entry->unsupported(kernel) : Refusal{};
}

}  // namespace baton
