// SPDX-License-Identifier: Apache-2.0
#include "harness/process/obstacles.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cstdio>
#include <memory>

#include "collectives/schedule/errors.hpp"
#include "harness/machine/system.hpp"

namespace baton {
namespace {

/// The first two lines that a command of the shell prints.
std::array<std::string, 2> two_lines_of(const char* command) {
  std::array<std::string, 2> lines;
  const std::unique_ptr<FILE, int (*)(FILE*)> output(popen(command, "r"), pclose);
  std::array<char, 512> text{};
  for (std::string& line : lines)
    if (output && fgets(text.data(), text.size(), output.get()) != nullptr)
      line = std::string(text.data()).substr(0, std::string_view(text.data()).find('\n'));
  return lines;
}

/// The first number of a text; empty if it has none.
std::string first_number(const std::string& text) {
  const auto begin = text.find_first_of("0123456789");
  return begin == std::string::npos ? ""
                                    : text.substr(begin, text.find_first_not_of("0123456789", begin) - begin);
}

/// What ends mpiexec of Open MPI 4 on a host whose name is that long; empty otherwise.
std::string long_host_name(int exit_code) {
  constexpr std::size_t too_long = 57;
  constexpr int aborted = 128 + 6;
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  const std::string host = name.data();
  if (exit_code != aborted || host.size() < too_long) return {};
  return fmt::format(
      "mpiexec aborts where the name of the host has more than {} characters, and '{}' has {}: a shorter one "
      "helps, as `unshare --uts` or the container can give it",
      too_long - 1, host, host.size());
}

std::string foreign_mpiexec(const std::string& library) {
  const auto [path, version] = two_lines_of(
      "command -v mpiexec; timeout 10 mpiexec --version 2> /dev/null < /dev/null | grep . | head -n 1");
  if (is_mpiexec_of(library, version)) return {};
  return fmt::format(
      "{} is not the mpiexec of {}, the MPI that this program was built with: it calls itself '{}'; put that "
      "MPI's first in PATH",
      path, library, one_line(version, 80));
}

}  // namespace

void require_open_files(int processes) {
  constexpr rlim_t least = 27, least_a_rank = 4;  // of mpiexec of Open MPI 4.1, tried with 1 to 16 ranks
  rlimit files{};
  if (processes == 0 || getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  const rlim_t needed = least + least_a_rank * static_cast<rlim_t>(processes);
  if (files.rlim_max == RLIM_INFINITY || files.rlim_max >= needed) return;
  throw SystemError(
      fmt::format("{} ranks need {} open files or more in mpiexec, and this shell allows {}: raise `ulimit "
                  "-n`, or ask for "
                  "fewer --ranks",
                  processes, needed, files.rlim_max));
}

bool is_mpiexec_of(const std::string& library, const std::string& version) {
  constexpr std::string_view open_mpi = "Open MPI";
  if (!library.starts_with(open_mpi) || version.empty()) return true;
  const bool is_open_mpi = version.find(open_mpi) != std::string::npos ||
                           version.find("OpenRTE") != std::string::npos ||
                           version.find("PRRTE") != std::string::npos;
  const bool has_its_number = version.find("PRRTE") != std::string::npos;  // whose versions are its own
  return is_open_mpi && (has_its_number || first_number(version) == first_number(library));
}

std::string obstacle_to_launches(int exit_code, const std::string& report, const std::string& library) {
  constexpr int not_started = 127;
  if (exit_code == not_started && !report.empty()) return report;
  const std::string name = long_host_name(exit_code);
  return name.empty() ? foreign_mpiexec(library) : name;
}

}  // namespace baton
