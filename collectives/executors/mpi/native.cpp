// SPDX-License-Identifier: Apache-2.0
// The registry of MPI natives.
#include "collectives/executors/mpi/native.hpp"

#include <map>
#include <utility>

namespace baton {
namespace {

std::map<std::string, MpiNative>& registry() {
  static std::map<std::string, MpiNative> all;
  return all;
}

}  // namespace

RegisteredMpiNative::RegisteredMpiNative(std::string name, MpiNative body) {
  registry()[std::move(name)] = std::move(body);
}

MpiNative find_mpi_native(const std::string& name) {
  const auto found = registry().find(name);
  return found == registry().end() ? MpiNative{} : found->second;
}

}  // namespace baton
