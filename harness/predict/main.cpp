// SPDX-License-Identifier: Apache-2.0
// `library_times`: what the calls of a library take on the machine of a topology, as CSV. A
// simulated contest takes the same times.
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "collectives/simulator/topology/topology.hpp"
#include "harness/options/flags.hpp"
#include "harness/process/exit_codes.hpp"

namespace baton {
namespace {

const LibraryCall& call_of(const Topology& topology, const std::string& native) {
  const auto found = topology.natives.find(native);
  if (found != topology.natives.end()) return found->second;
  std::string known;
  for (const auto& [name, call] : topology.natives) known += (known.empty() ? "" : ", ") + name;
  throw UsageError(fmt::format("--native: {} has no times of {}; it has {}", topology.name, native,
                               known.empty() ? "none" : known));
}

int run(int argc, char** argv) {
  std::string path;
  std::vector<std::string> natives;
  std::vector<int> ranks{8};
  std::vector<std::int64_t> bytes;
  Flags flags("library_times", "What a library's collective calls take on a topology, predicted, as CSV.");
  flags.add("--topology", path, "a file of topologies/ with a section natives");
  flags.add("--native", natives, "the calls, such as nccl_all_gather").list();
  flags.add("--ranks", ranks, "rank counts").list().range(2, 1 << 20);
  flags.add("--bytes", bytes, "bytes of the largest operand of a rank, as nccl-tests prints them")
      .list()
      .range(1, std::int64_t{1} << 50);
  if (!flags.parse({argv, argv + argc})) return 0;
  if (path.empty()) throw UsageError("--topology is missing: the file of a machine");
  const Topology topology = read_topology(path);
  for (const int count : ranks)
    if (count > topology.ranks_per_node)
      throw UsageError(
          fmt::format("--ranks: a node of {} has {} ranks", topology.name, topology.ranks_per_node));
  std::string rows = "native,protocol,gpus,total_bytes,microseconds\n";
  for (const std::string& native : natives) {
    const LibraryCall& call = call_of(topology, native);
    for (const int count : ranks)
      for (const std::int64_t size : bytes) {
        const double share = static_cast<double>(size) / count;
        rows += fmt::format("{},{},{},{},{:.3f}\n", native, call.protocol(count, share).name, count, size,
                            call.seconds(count, share) * 1e6);
      }
  }
  fmt::print("{}", rows);
  return 0;
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  return baton::exit_code_of([&] { return baton::run(argc, argv); });
}
