// SPDX-License-Identifier: Apache-2.0
// Topologies as JSON: the keys, the values that each may have, and the writing of them.
#include <nlohmann/json.hpp>
#include <utility>

#include "collectives/schedule/errors.hpp"
#include "collectives/simulator/topology/curve_json.hpp"
#include "collectives/simulator/topology/json.hpp"
#include "collectives/simulator/topology/library_call_json.hpp"
#include "collectives/simulator/topology/ranges.hpp"
#include "collectives/simulator/topology/topology.hpp"

namespace baton {
namespace {

using nlohmann::ordered_json;

using ranges::counts, ranges::most_ranks, ranges::rates, ranges::seconds, ranges::bytes;

/// Reads the rate under `key`, which may be missing if measured points replace it.
double read_rate(const JsonSection& parent, const std::string& key, const Curve& measured) {
  return measured.empty() ? parent.number(key, rates) : parent.number_or(key, rates, 1);
}

LinkModel read_link(const JsonSection& link) {
  link.only({"latency_seconds", "overhead_seconds", "bytes_per_second", "measured", "measured_idle",
             "moved_by", "node_bytes_per_second", "node_measured", "source"});
  LinkModel read;
  read.measured = read_curve(link, "measured");
  read.measured_idle = read_curve(link, "measured_idle");
  read.node_measured = read_curve(link, "node_measured");
  read.latency_seconds = link.number("latency_seconds", seconds);
  read.overhead_seconds = link.number_or("overhead_seconds", seconds, 0);
  read.bytes_per_second = read_rate(link, "bytes_per_second", read.measured);
  if (link.has("moved_by"))
    read.moved_by =
        link.word("moved_by", {"wire", "engine"}) == "engine" ? Transport::engine : Transport::wire;
  read.node_bytes_per_second = link.number_or("node_bytes_per_second", rates, 0);
  read.source = link.text("source");
  return read;
}

void read_links(Topology& topology, const JsonSection& links) {
  links.only({"intra_node", "inter_node", "spine"});
  topology.intra_node = read_link(links.section("intra_node"));
  if (topology.nodes > 1 || links.has("inter_node"))
    topology.inter_node = read_link(links.section("inter_node"));
  if (links.has("spine")) topology.spine = read_link(links.section("spine"));
}

enum class Work { computes, copies };

Rate read_step(const JsonSection& step, Work work) {
  if (work == Work::copies)
    step.only({"launch_seconds", "bytes_per_second", "measured", "node_measured", "source"});
  else
    step.only(
        {"launch_seconds", "flops_per_second", "bytes_per_second", "measured", "node_measured", "source"});
  Rate read;
  read.measured = read_curve(step, "measured");
  read.node_measured = read_curve(step, "node_measured");
  read.launch_seconds = step.number_or("launch_seconds", seconds, 0);
  if (work == Work::computes) read.flops_per_second = read_rate(step, "flops_per_second", read.measured);
  read.bytes_per_second = read_rate(step, "bytes_per_second", read.measured);
  read.source = step.text("source");
  return read;
}

Cache read_cache(const JsonSection& cache) {
  cache.only({"bytes", "slowdown", "source"});
  return {cache.number("bytes", rates), cache.number("slowdown", {0, 1e6}), cache.text("source")};
}

DeviceRates read_device(const JsonSection& device) {
  device.only({"kernel", "copy", "combine", "cache", "kernels"});
  DeviceRates read;
  read.kernel = read_step(device.section("kernel"), Work::computes);
  read.copy = read_step(device.section("copy"), Work::copies);
  read.combine = read_step(device.section("combine"), Work::computes);
  if (device.has("cache")) read.cache = read_cache(device.section("cache"));
  if (!device.has("kernels")) return read;
  const JsonSection kernels = device.section("kernels");
  for (const auto& [name, rate] : kernels.members().items())
    read.kernels[name] = read_step(kernels.section(name), Work::computes);
  return read;
}

void read_machine(Topology& topology, const JsonSection& machine) {
  machine.only({"nodes", "ranks_per_node", "round_seconds", "streams", "groups", "source"});
  const std::int64_t nodes = machine.whole_number("nodes", counts);
  const std::int64_t ranks_per_node = machine.whole_number("ranks_per_node", counts);
  if (nodes * ranks_per_node > most_ranks)
    machine.refuse("ranks_per_node", "expected at most " + std::to_string(most_ranks) +
                                         " ranks on all nodes, found " +
                                         std::to_string(nodes * ranks_per_node));
  topology.nodes = static_cast<int>(nodes);
  topology.ranks_per_node = static_cast<int>(ranks_per_node);
  topology.round_seconds = machine.number_or("round_seconds", seconds, 0);
  topology.streams = machine.has("streams") && machine.word("streams", {"yes", "no"}) == "yes";
  topology.groups = machine.has("groups") && machine.word("groups", {"yes", "no"}) == "yes";
  if (topology.groups && topology.streams) machine.refuse("groups", "a machine that streams has no groups");
  topology.source = machine.text("source");
}

std::map<std::string, LibraryCall> read_natives(const JsonSection& natives) {
  std::map<std::string, LibraryCall> read;
  for (const auto& [name, call] : natives.members().items())
    read[name] = read_library_call(natives.section(name));
  return read;
}

Calibration read_calibration(const JsonSection& calibration) {
  calibration.only({"stands_on", "most_ranks", "most_nodes", "least_bytes", "most_bytes", "residual"});
  Calibration read;
  read.stands_on = calibration.text("stands_on");
  read.most_ranks = static_cast<int>(calibration.whole_number("most_ranks", counts));
  if (calibration.has("most_nodes"))
    read.most_nodes = static_cast<int>(calibration.whole_number("most_nodes", counts));
  read.least_bytes = calibration.whole_number("least_bytes", bytes);
  read.most_bytes = calibration.whole_number("most_bytes", bytes);
  if (read.most_bytes < read.least_bytes)
    calibration.refuse("most_bytes", "expected no less than least_bytes");
  read.residual = calibration.number("residual", {0, 1e6});
  return read;
}

ordered_json written(const LinkModel& link, const std::string& otherwise) {
  ordered_json json;
  json["latency_seconds"] = link.latency_seconds;
  json["overhead_seconds"] = link.overhead_seconds;
  json["bytes_per_second"] = link.bytes_per_second;
  json["moved_by"] = link.moved_by == Transport::engine ? "engine" : "wire";
  if (link.node_bytes_per_second != 0) json["node_bytes_per_second"] = link.node_bytes_per_second;
  write_curve(json, "measured", link.measured);
  write_curve(json, "measured_idle", link.measured_idle);
  write_curve(json, "node_measured", link.node_measured);
  json["source"] = link.source.empty() ? otherwise : link.source;
  return json;
}

ordered_json written(const Rate& rate, Work work, const std::string& otherwise) {
  ordered_json json;
  json["launch_seconds"] = rate.launch_seconds;
  if (work == Work::computes) json["flops_per_second"] = rate.flops_per_second;
  json["bytes_per_second"] = rate.bytes_per_second;
  write_curve(json, "measured", rate.measured);
  write_curve(json, "node_measured", rate.node_measured);
  json["source"] = rate.source.empty() ? otherwise : rate.source;
  return json;
}

ordered_json written_machine(const Topology& topology, const std::string& otherwise) {
  return {{"nodes", topology.nodes},
          {"ranks_per_node", topology.ranks_per_node},
          {"round_seconds", topology.round_seconds},
          {"streams", topology.streams ? "yes" : "no"},
          {"groups", topology.groups ? "yes" : "no"},
          {"source", topology.source.empty() ? otherwise : topology.source}};
}

ordered_json written_links(const Topology& topology, const std::string& otherwise) {
  ordered_json json;
  json["intra_node"] = written(topology.intra_node, otherwise);
  if (topology.nodes > 1 || !topology.inter_node.source.empty())
    json["inter_node"] = written(topology.inter_node, otherwise);
  if (topology.spine) json["spine"] = written(*topology.spine, otherwise);
  return json;
}

ordered_json written(const DeviceRates& device, const std::string& otherwise) {
  ordered_json json;
  json["kernel"] = written(device.kernel, Work::computes, otherwise);
  json["copy"] = written(device.copy, Work::copies, otherwise);
  json["combine"] = written(device.combine, Work::computes, otherwise);
  if (const Cache& cache = device.cache; cache.bytes > 0)
    json["cache"] = {{"bytes", cache.bytes},
                     {"slowdown", cache.slowdown},
                     {"source", cache.source.empty() ? otherwise : cache.source}};
  for (const auto& [name, rate] : device.kernels)
    json["kernels"][name] = written(rate, Work::computes, otherwise);
  return json;
}

ordered_json written(const Calibration& calibration) {
  ordered_json json{{"stands_on", calibration.stands_on}, {"most_ranks", calibration.most_ranks}};
  if (calibration.most_nodes > 1) json["most_nodes"] = calibration.most_nodes;
  json["least_bytes"] = calibration.least_bytes;
  json["most_bytes"] = calibration.most_bytes;
  json["residual"] = calibration.residual;
  return json;
}

/// Gives members of all objects in `json` that have a key of earlier versions their present one.
void rename_old_keys(nlohmann::json& json) {
  constexpr std::pair<const char*, const char*> renamed[] = {
      {"ranks_a_node", "ranks_per_node"},
      {"bytes_a_second", "bytes_per_second"},
      {"node_bytes_a_second", "node_bytes_per_second"},
      {"flops_a_second", "flops_per_second"},
  };
  for (const auto& [before, now] : renamed)
    if (json.is_object() && json.contains(before) && !json.contains(now)) {
      json[now] = json[before];
      json.erase(before);
    }
  for (nlohmann::json& part : json)
    if (part.is_structured()) rename_old_keys(part);
}

}  // namespace

Topology parse_topology(const std::string& text, const std::string& name) {
  nlohmann::json json = parse_json(text, name);
  rename_old_keys(json);
  const JsonSection root(json, name, "");
  root.only({"name", "description", "machine", "links", "device", "natives", "calibration"});
  Topology topology;
  topology.name = root.text("name");
  topology.description = root.text("description");
  read_machine(topology, root.section("machine"));
  read_links(topology, root.section("links"));
  topology.device = read_device(root.section("device"));
  if (root.has("natives")) topology.natives = read_natives(root.section("natives"));
  if (root.has("calibration")) topology.calibration = read_calibration(root.section("calibration"));
  return topology;
}

Topology read_topology(const std::string& path) { return parse_topology(read_text(path), path); }

std::string write_topology(const Topology& topology) {
  const std::string& otherwise = topology.calibration.stands_on;
  ordered_json json;
  json["name"] = topology.name;
  json["description"] = topology.description;
  json["machine"] = written_machine(topology, otherwise);
  json["links"] = written_links(topology, otherwise);
  json["device"] = written(topology.device, otherwise);
  for (const auto& [name, call] : topology.natives) json["natives"][name] = written(call);
  if (!topology.calibration.stands_on.empty()) json["calibration"] = written(topology.calibration);
  const std::string text = json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  parse_topology(text, topology.name);  // throws where the file would be refused
  return text;
}

}  // namespace baton
