// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/judges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "harness/doctor/devices.hpp"
#include "harness/doctor/links.hpp"
#include "harness/doctor/placement.hpp"
#include "harness/doctor/slowness.hpp"
#include "harness/record/cells.hpp"

namespace baton::doctor {
namespace {

constexpr auto note = Finding::Weight::note;

int gpus_of(const Readings& readings) {
  int gpus = 0;
  for (const HostReadings& host : readings.hosts) gpus = std::max(gpus, host.gpus);
  return gpus;
}

void add_missing_executors(std::vector<Finding>& findings, const Readings& readings) {
  const int gpus = gpus_of(readings);
  if (gpus == 0) return;
  bool is_built = false;
  for (const ExecutorReadings& executor : readings.build.executors) {
    is_built = is_built || executor.name == "nccl";
    if (!executor.lacks.empty())
      findings.push_back({.about = "build",
                          .what = fmt::format("executor {} cannot run: {}", executor.name, executor.lacks),
                          .advice =
                              "nvidia-smi shows whether the driver sees the GPUs; a container must be given "
                              "them"});
  }
  if (!is_built)
    findings.push_back(
        {.about = "build",
         .what = fmt::format("this host has {}, and the build no executor for them (nccl, peer)",
                             quantity(gpus, "GPU")),
         .advice = "install nvcc 12.4 or newer and NCCL 2.28 or newer, then ./run bench builds them"});
}

void add_build_type(std::vector<Finding>& findings, const Readings& readings) {
  if (readings.build.type == "Release") return;
  findings.push_back({.about = "build",
                      .what = fmt::format("this build is of type '{}', whose times are not the machine's",
                                          readings.build.type),
                      .advice = "cmake --preset cpu and cuda build Release, as ./run bench does"});
}

void add_system(std::vector<Finding>& findings, const HostReadings& host) {
  constexpr std::int64_t least_shared = 128 << 20;
  if (host.timer_seconds > Limits::timer_seconds)
    findings.push_back({.weight = note,
                        .about = "host",
                        .what = fmt::format("one reading of the clock takes {} (clock source {})",
                                            shown_seconds(host.timer_seconds), host.clock_source),
                        .advice = "short times are too long by as much; clock source tsc is faster"});
  if (host.shared_memory_bytes >= 0 && host.shared_memory_bytes < least_shared)
    findings.push_back(
        {.weight = note,
         .about = "host",
         .what = fmt::format("/dev/shm has {} MiB free", host.shared_memory_bytes >> 20),
         .advice = "MPI and NCCL put their messages there; docker: --shm-size=1g or --ipc=host"});
}

}  // namespace

std::vector<Finding> judge_build(const Readings& readings) {
  std::vector<Finding> findings;
  add_missing_executors(findings, readings);
  add_build_type(findings, readings);
  for (const HostReadings& host : readings.hosts) add_system(findings, host);
  return findings;
}

std::vector<Finding> findings_of(const Readings& readings) {
  std::vector<Finding> all;
  for (const auto judge :
       {judge_ranks, judge_links, judge_clocks, judge_devices, judge_load, judge_binding, judge_build}) {
    std::vector<Finding> found = judge(readings);
    std::move(found.begin(), found.end(), std::back_inserter(all));
  }
  std::stable_partition(all.begin(), all.end(),
                        [](const Finding& one) { return one.weight == Finding::Weight::problem; });
  return all;
}

bool is_fit(const std::vector<Finding>& findings) {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& one) { return one.weight == Finding::Weight::problem; });
}

}  // namespace baton::doctor
