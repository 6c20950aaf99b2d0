// SPDX-License-Identifier: Apache-2.0
#include "collectives/simulator/topology/library_call_json.hpp"

#include "collectives/simulator/topology/curve_json.hpp"
#include "collectives/simulator/topology/ranges.hpp"

namespace baton {
namespace {

using ranges::counts, ranges::rates, ranges::seconds;

Curve required_curve(const JsonSection& parent, const std::string& key) {
  if (!parent.has(key)) parent.refuse(key, "missing, expected a curve");
  return read_curve(parent, key);
}

LibraryProtocol read_protocol(const JsonSection& protocol, const std::string& name) {
  protocol.only({"base_seconds", "step_seconds", "bytes_per_second", "few", "more"});
  return {.name = name,
          .base_seconds = protocol.number("base_seconds", seconds),
          .step_seconds = protocol.number("step_seconds", seconds),
          .bytes_per_second = protocol.number("bytes_per_second", rates),
          .few = required_curve(protocol, "few"),
          .more = required_curve(protocol, "more")};
}

}  // namespace

LibraryCall read_library_call(const JsonSection& call) {
  call.only({"few_ranks", "more_ranks", "start_seconds", "protocols", "source"});
  LibraryCall read;
  read.few_ranks = static_cast<int>(call.whole_number("few_ranks", counts));
  read.more_ranks = static_cast<int>(call.whole_number("more_ranks", counts));
  if (read.more_ranks <= read.few_ranks) call.refuse("more_ranks", "expected more than few_ranks");
  read.start_seconds = call.number_or("start_seconds", seconds, 0);
  const JsonSection protocols = call.section("protocols");
  for (const auto& [name, protocol] : protocols.members().items())
    read.protocols.push_back(read_protocol(protocols.section(name), name));
  if (read.protocols.empty()) call.refuse("protocols", "expected one or more");
  read.source = call.text("source");
  return read;
}

nlohmann::ordered_json written(const LibraryCall& call) {
  nlohmann::ordered_json json{{"few_ranks", call.few_ranks}, {"more_ranks", call.more_ranks}};
  if (call.start_seconds > 0) json["start_seconds"] = call.start_seconds;
  for (const LibraryProtocol& protocol : call.protocols) {
    nlohmann::ordered_json& one = json["protocols"][protocol.name];
    one = {{"base_seconds", protocol.base_seconds},
           {"step_seconds", protocol.step_seconds},
           {"bytes_per_second", protocol.bytes_per_second}};
    write_curve(one, "few", protocol.few);
    write_curve(one, "more", protocol.more);
  }
  json["source"] = call.source;
  return json;
}

}  // namespace baton
