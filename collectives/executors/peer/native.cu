// SPDX-License-Identifier: Apache-2.0
// The registry of the peer executor's natives.
#include <map>
#include <utility>

#include "collectives/executors/peer/native.cuh"

namespace baton {
namespace {

std::map<std::string, PeerNative>& registry() {
  static std::map<std::string, PeerNative> all;
  return all;
}

}  // namespace

RegisteredPeerNative::RegisteredPeerNative(std::string name, PeerNative native) {
  registry()[std::move(name)] = std::move(native);
}

const PeerNative* find_peer_native(const std::string& name) {
  const auto found = registry().find(name);
  return found == registry().end() ? nullptr : &found->second;
}

}  // namespace baton
