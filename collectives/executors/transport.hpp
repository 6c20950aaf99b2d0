// SPDX-License-Identifier: Apache-2.0
// What the library of an executor says of how it carries messages between ranks of one host.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "collectives/schedule/registry.hpp"

namespace baton {

/// A text such as "sockets"; empty if the library does not say. Any rank may call it, after its
/// executor was made.
using TransportName = std::function<std::string()>;

/// The transports of executors, by the name of the executor.
inline Registry<TransportName>& transports() {
  static Registry<TransportName> all("transport");
  return all;
}

/// Adds one before `main`.
struct RegisteredTransport {
  RegisteredTransport(const std::string& executor, TransportName transport) {
    add_or_exit([&] { transports().add(executor, std::move(transport)); });
  }
};

}  // namespace baton
