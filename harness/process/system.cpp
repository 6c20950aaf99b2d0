// SPDX-License-Identifier: Apache-2.0
// The machine's facts come from /proc and from the libraries' version macros.
#include "harness/process/system.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>

#include "baton_build.hpp"
#include "collectives/schedule/errors.hpp"

extern char** environ;

namespace baton {
namespace {

/// The value of `key` in a file of "key: value" or "key=value" lines, or an empty string.
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

std::vector<std::pair<std::string, std::string>> steering_environment() {
  constexpr std::string_view ours = "OMPI_MCA_btl_vader_backing_directory=";  // LaunchFolder's
  std::vector<std::pair<std::string, std::string>> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string line = *entry;
    for (const char* prefix : {"OMPI_MCA_btl", "OMPI_MCA_pml", "OMPI_MCA_coll", "UCX_", "OMP_", "NCCL_"})
      if (line.rfind(prefix, 0) == 0 && line.rfind(ours, 0) != 0)
        found.emplace_back(line.substr(0, line.find('=')), line.substr(line.find('=') + 1));
  }
  return found;
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

Machine this_machine(const std::string& mpi_library) {
  utsname system{};
  uname(&system);
  return {.host = fmt::format("{:08x}", host_number()),
          .cpu = look_up("/proc/cpuinfo", "model name"),
          .cores = online_cores(),
          .memory_gib = sysconf(_SC_PHYS_PAGES) / 1024 * sysconf(_SC_PAGESIZE) / (1 << 20),
          .system = look_up("/etc/os-release", "PRETTY_NAME"),
          .kernel = system.release,
          .compiler = build_compiler,
          .build = build_type,
          .mpi = mpi_library,
          .libraries = {{"benchmark", build_benchmark_version},
                        {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100,
                                            FMT_VERSION % 100)},
                        {"cli11", build_cli11_version}},
          .environment = steering_environment()};
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

void require_writable(const std::string& path, const std::string& what) {
  if (std::filesystem::is_directory(path))
    throw UsageError("cannot write " + what + " to '" + path + "': it is a directory");
  const bool is_new = !std::filesystem::exists(path);
  if (!std::ofstream(path, std::ios::app)) throw UsageError("cannot write " + what + " to '" + path + "'");
  if (is_new) std::filesystem::remove(path);  // a run that ends early leaves no empty file behind
}

void require_different_files(const std::vector<std::string>& paths) {
  for (auto path = paths.begin(); path != paths.end(); ++path)
    for (auto other = paths.begin(); other != path; ++other)
      if (!path->empty() &&
          std::filesystem::weakly_canonical(*path) == std::filesystem::weakly_canonical(*other))
        throw UsageError("'" + *path + "' cannot hold two outputs at once");
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  if (!file) throw SystemError("cannot write '" + path + "'");
}

Progress::Progress(bool is_printing, int cases)
    : prints_(is_printing && isatty(STDERR_FILENO) != 0), cases_(cases) {}

void Progress::enter(const std::string& case_name) {
  ++entered_;
  if (prints_) fmt::print(stderr, "\r\x1b[K[{}/{}] {}", entered_, cases_, case_name);
}

void Progress::clear() const {
  if (prints_) fmt::print(stderr, "\r\x1b[K");
}

}  // namespace baton
