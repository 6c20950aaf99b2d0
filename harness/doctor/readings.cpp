// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/readings.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>

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
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Readings, machine, build, hosts, ranks, links)

namespace {

/// The JSON as text. Bytes that are no UTF-8 are replaced, since names of processes may hold any.
std::string dumped(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

const HostReadings& Readings::host(std::uint32_t number) const {
  for (const HostReadings& one : hosts)
    if (one.host == number) return one;
  throw std::out_of_range("no host " + std::to_string(number));
}

std::string text_of(const RankReadings& rank) { return dumped(rank); }
std::string text_of(const HostReadings& host) { return dumped(host); }
std::string text_of(const Readings& readings) { return dumped(readings); }

RankReadings rank_from(const std::string& text) { return nlohmann::json::parse(text).get<RankReadings>(); }
HostReadings host_from(const std::string& text) { return nlohmann::json::parse(text).get<HostReadings>(); }

}  // namespace baton::doctor
