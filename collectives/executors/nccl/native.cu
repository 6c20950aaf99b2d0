// SPDX-License-Identifier: Apache-2.0
// The registry of NCCL natives.
#include <map>
#include <utility>

#include "collectives/executors/nccl/native.cuh"

namespace baton {
namespace {

std::map<std::string, NcclNative>& registry() {
  static std::map<std::string, NcclNative> all;
  return all;
}

}  // namespace

RegisteredNcclNative::RegisteredNcclNative(std::string name, NcclNative native) {
  registry()[std::move(name)] = std::move(native);
}

const NcclNative* find_nccl_native(const std::string& name) {
  const auto found = registry().find(name);
  return found == registry().end() ? nullptr : &found->second;
}

}  // namespace baton
