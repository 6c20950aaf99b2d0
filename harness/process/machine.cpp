// SPDX-License-Identifier: Apache-2.0
// Facts of the machine from /proc and the libraries' own version words.
#include "harness/process/machine.hpp"

#include <benchmark/benchmark.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <CLI/Version.hpp>
#include <chrono>
#include <fstream>
#include <functional>

#include "baton_build.hpp"

extern char** environ;

namespace baton {
namespace {

/// The value behind `key` in a file of "key: value" or "key=value" lines, or an empty string.
std::string look_up(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const auto begin = line.find_first_not_of(" \t\"", line.find_first_of(":=") + 1);
    if (begin == std::string::npos) return {};
    return line.substr(begin, line.find_last_not_of(" \"") + 1 - begin);
  }
  return {};
}

nlohmann::ordered_json steering_environment() {
  nlohmann::ordered_json chosen = nlohmann::ordered_json::object();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string line = *entry;
    for (const char* prefix : {"OMPI_MCA_btl", "OMPI_MCA_pml", "OMPI_MCA_coll", "UCX_", "OMP_", "NCCL_"})
      if (line.rfind(prefix, 0) == 0)
        chosen[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
  }
  return chosen;
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

nlohmann::ordered_json describe_machine(const std::string& mpi_library) {
  utsname system{};
  uname(&system);
  return {
      {"host", fmt::format("{:08x}", host_number())},
      {"cpu", look_up("/proc/cpuinfo", "model name")},
      {"cores", online_cores()},
      {"memory_gib", sysconf(_SC_PHYS_PAGES) / 1024 * sysconf(_SC_PAGESIZE) / (1 << 20)},
      {"system", look_up("/etc/os-release", "PRETTY_NAME")},
      {"kernel", system.release},
      {"compiler", build_compiler},
      {"build", build_type},
      {"mpi", mpi_library},
      {"benchmark", build_benchmark_version},
      {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
      {"cli11", CLI11_VERSION},
      {"environment", steering_environment()},
  };
}

std::string machine_name() {
  return fmt::format("{}, {} cores", look_up("/proc/cpuinfo", "model name"), online_cores());
}

std::uint32_t host_number() { return static_cast<std::uint32_t>(std::hash<std::string>{}(host_name())); }

int online_cores() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

std::int64_t available_bytes() {
  const std::string kibibytes = look_up("/proc/meminfo", "MemAvailable");
  return kibibytes.empty() ? INT64_MAX : std::stoll(kibibytes) * 1024;
}

std::string commit() { return build_commit; }

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

}  // namespace baton
