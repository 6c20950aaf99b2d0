// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/readings.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace baton::doctor {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Core, number, physical, package, cache, node, busy, stolen)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OtherProcess, number, name, cores)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HostReadings, host, cores, topology, others, quota_cores, quota_stops,
                                   gpus, clock_source, timer_seconds, shared_memory_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DeviceReadings, executor, name, work_seconds, values)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankReadings, rank, host, cores, core, memory_node, spin_seconds, waited,
                                   clock_mhz, base_mhz, most_mhz, allowed_mhz, governor, heat_events, devices)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PairReadings, from, to, latency_seconds, large_seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LinkReadings, executor, ranks, is_device, small_bytes, large_bytes, pairs)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ExecutorReadings, name, lacks)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BuildReadings, type, commit, mpi, executors)

namespace {

/// The JSON as text. Bytes that are no UTF-8 are replaced, since names of processes may hold any.
std::string dumped(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string text_of(const RankReadings& rank) { return dumped(rank); }
std::string text_of(const HostReadings& host) { return dumped(host); }

std::string text_of(const Readings& readings) {
  return fmt::format(
      R"({{"build": {}, "failure": {}, "hosts": [{}], "links": {}, "machine": {}, "ranks": [{}]}})",
      dumped(readings.build), dumped(readings.failure), fmt::join(readings.hosts, ", "),
      dumped(readings.links), dumped(readings.machine), fmt::join(readings.ranks, ", "));
}

}  // namespace baton::doctor
