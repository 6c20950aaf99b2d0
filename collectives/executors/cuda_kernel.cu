// SPDX-License-Identifier: Apache-2.0
// The registry of device bodies.
#include <map>
#include <utility>

#include "collectives/executors/cuda_kernel.cuh"

namespace baton {
namespace {

struct Entry {
  CudaKernel body;
  CudaKernelRefuses refuses;
};

std::map<std::string, Entry>& registry() {
  static std::map<std::string, Entry> all;
  return all;
}

}  // namespace

RegisteredCudaKernel::RegisteredCudaKernel(std::string name, CudaKernel body, CudaKernelRefuses refuses) {
  registry()[std::move(name)] = {std::move(body), std::move(refuses)};
}

const CudaKernel& find_cuda_kernel(const Kernel& kernel) { return registry().at(kernel.name).body; }

std::string cuda_kernel_refuses(const Kernel& kernel) {
  const auto found = registry().find(kernel.name);
  if (found == registry().end()) return "the kernel " + kernel.name + " has no device body";
  return found->second.refuses ? found->second.refuses(kernel) : std::string{};
}

}  // namespace baton
