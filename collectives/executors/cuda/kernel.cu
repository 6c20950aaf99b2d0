// SPDX-License-Identifier: Apache-2.0
// The registry of device bodies.
#include <map>
#include <utility>

#include "collectives/executors/cuda/kernel.cuh"

namespace baton {
namespace {

struct Entry {
  CudaKernel body;
  CudaKernelUnsupported unsupported;
};

std::map<std::string, Entry>& registry() {
  static std::map<std::string, Entry> all;
  return all;
}

}  // namespace

RegisteredCudaKernel::RegisteredCudaKernel(std::string name, CudaKernel body,
                                           CudaKernelUnsupported unsupported) {
  registry()[std::move(name)] = {std::move(body), std::move(unsupported)};
}

const CudaKernel& find_cuda_kernel(const Kernel& kernel) { return registry().at(kernel.name).body; }

Refusal unsupported_on_device(const Kernel& kernel) {
  const auto found = registry().find(kernel.name);
  if (found == registry().end()) return "the kernel " + kernel.name + " has no device body";
  return found->second.unsupported ? found->second.unsupported(kernel) : Refusal{};
}

}  // namespace baton
