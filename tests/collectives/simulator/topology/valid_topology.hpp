// SPDX-License-Identifier: Apache-2.0
// A small topology that is right, and what is said of it when one thing in it is wrong.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "collectives/schedule/errors.hpp"
#include "collectives/simulator/topology/topology.hpp"

namespace baton {

/// What is thrown, or "no error".
inline std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

inline std::string error_in(const std::string& text) {
  return error_of([&] { parse_topology(text, "my.json"); });
}

/// The least that a topology must say, and a little more.
inline nlohmann::json valid() {
  return nlohmann::json::parse(R"({
    "name": "mine", "description": "two hosts",
    "machine": {"nodes": 2, "ranks_per_node": 4, "source": "counted"},
    "links": {"intra_node": {"latency_seconds": 1e-6, "bytes_per_second": 1e9, "source": "measured"},
              "inter_node": {"latency_seconds": 1e-5, "source": "measured",
                             "measured": [{"bytes": 8, "seconds": 1e-6}, {"bytes": 800, "seconds": 2e-6}]}},
    "device": {"kernel": {"flops_per_second": 1e12, "bytes_per_second": 1e11, "source": "measured"},
               "copy": {"bytes_per_second": 1e11, "source": "measured"},
               "combine": {"flops_per_second": 1e12, "bytes_per_second": 1e11, "source": "measured"}},
    "calibration": {"stands_on": "me", "most_ranks": 8, "least_bytes": 8, "most_bytes": 800, "residual": 0}})");
}

/// The error after `spoiled` took the place of what stands at the path `at`.
inline std::string error_with(const std::string& at, const nlohmann::json& spoiled) {
  nlohmann::json topology = valid();
  topology[nlohmann::json::json_pointer(at)] = spoiled;
  return error_in(topology.dump());
}

inline std::string error_without(const std::string& at) {
  nlohmann::json topology = valid();
  const nlohmann::json::json_pointer pointer(at);
  topology[pointer.parent_pointer()].erase(pointer.back());
  return error_in(topology.dump());
}

}  // namespace baton
