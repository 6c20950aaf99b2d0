// SPDX-License-Identifier: Apache-2.0
// The machine's facts come from /proc and from the libraries' version macros.
#include "harness/machine/system.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>

#include "baton_build.hpp"
#include "collectives/schedule/texts.hpp"

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

/// What the system and files of libraries say; a library may add what it reports itself.
NamedValues settings_here(const std::vector<std::string>& variables) {
  NamedValues all = settings_of_system();
  for (auto& one : settings_in_files(variables)) all.push_back(std::move(one));
  return all;
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
          .environment = steering_variables(own_variables()),
          .settings = settings_here(own_variables())};
}

std::string machine_name() {
  return fmt::format("{}, {} cores", look_up("/proc/cpuinfo", "model name"), online_cores());
}

std::uint32_t host_number() { return static_cast<std::uint32_t>(std::hash<std::string>{}(host_name())); }

int online_cores() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

std::string version() { return build_version; }

std::string commit() { return build_commit; }

std::string commit_lacks() {
  return "the commit of this build is unknown, since " + one_line(build_commit_lacks) +
         ". Its records are of a build that equals no other, and --resume does not take them.";
}

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

namespace {

std::string escaped(char character) {
  if (character == '\n') return "\\n";
  if (character == '\t') return "\\t";
  return fmt::format("\\x{:02x}", static_cast<unsigned char>(character));
}

}  // namespace

std::string printable(const std::string& text) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = shown_character(text, at);
    shown += length == 0 ? escaped(text[at]) : text.substr(at, length);
    at += std::max<std::size_t>(length, 1);
  }
  return shown;
}

std::string one_line(const std::string& text, std::size_t longest) {
  const std::string shown = printable(text);
  if (shown.size() <= longest) return shown;
  constexpr const char* gap = "[...]";
  const auto continues = [&](std::size_t at) { return (shown[at] & 0xc0) == 0x80; };
  std::size_t head = (longest - std::strlen(gap)) / 2, tail = shown.size() - head;
  while (continues(head)) --head;
  while (tail < shown.size() && continues(tail)) ++tail;
  return shown.substr(0, head) + gap + shown.substr(tail);
}

std::string quoted(const std::string& word) { return "'" + one_line(word, 80) + "'"; }

}  // namespace baton
