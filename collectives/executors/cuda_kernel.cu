// SPDX-License-Identifier: Apache-2.0
// The registry of device bodies.
#include <map>
#include <utility>

#include "collectives/executors/cuda_kernel.cuh"

namespace baton {
namespace {

std::map<std::string, CudaKernel>& registry() {
  static std::map<std::string, CudaKernel> all;
  return all;
}

}  // namespace

RegisteredCudaKernel::RegisteredCudaKernel(std::string name, CudaKernel body) {
  registry()[std::move(name)] = std::move(body);
}

CudaKernel find_cuda_kernel(const std::string& name) {
  const auto found = registry().find(name);
  return found == registry().end() ? CudaKernel{} : found->second;
}

}  // namespace baton
