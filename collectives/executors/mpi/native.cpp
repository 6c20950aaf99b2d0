// SPDX-License-Identifier: Apache-2.0
// The registry of MPI natives.
#include "collectives/executors/mpi/native.hpp"

#include <utility>

#include "collectives/schedule/registry.hpp"

namespace baton {
namespace {

Registry<MpiNative>& registry() {
  static Registry<MpiNative> all("native of mpi");
  return all;
}

}  // namespace

RegisteredMpiNative::RegisteredMpiNative(const std::string& name, MpiNative body) {
  registry().add(name, std::move(body));
}

MpiNative find_mpi_native(const std::string& name) {
  const MpiNative* found = registry().find(name);
  return found ? *found : MpiNative{};
}

}  // namespace baton
