// SPDX-License-Identifier: Apache-2.0
// The system that a run happens on: facts of the machine and the build, and texts as a terminal can
// show them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "harness/machine/settings.hpp"

namespace baton {

/// The machine and the software of a run. The host appears as a hash only, since results are
/// published.
struct Machine {
  std::string host;
  std::string cpu;
  int cores = 0;
  std::int64_t memory_gib = 0;
  std::string system;
  std::string kernel;
  std::string compiler;
  std::string build;
  std::string mpi;
  /// Versions of the libraries that are linked: name and version.
  std::vector<std::pair<std::string, std::string>> libraries;
  /// The environment variables that steer MPI, NCCL, threads and memory.
  NamedValues environment;
  /// What the system, files of libraries and these libraries say beside.
  NamedValues settings;
};

/// The machine at hand. `mpi_library` comes from World::library.
Machine this_machine(const std::string& mpi_library);

/// The name of the processor and its number of cores, for people.
std::string machine_name();

/// A number that two processes share exactly if they run on the same host.
std::uint32_t host_number();

/// Logical cores of this host.
int online_cores();

/// The version of this build, such as "0.9.0".
std::string version();

/// The commit that was built, followed by "-dirty" and a digest of the difference if files had
/// changed; `unknown_commit` if nothing tells it.
std::string commit();
inline constexpr const char* unknown_commit = "unknown";

/// The reason why git could not name the commit, with the message of git, and what follows.
std::string commit_lacks();

/// The time now in UTC, as 2026-01-31T12:00:00Z.
std::string utc_now();

/// `text` with escapes such as \n and \xff in place of control characters, of those that turn the
/// direction of what follows, and of broken UTF-8.
std::string printable(const std::string& text);

/// `text` printable and at most `longest` bytes long: a longer one loses its middle.
std::string one_line(const std::string& text, std::size_t longest = 240);

/// A word of the user in quotation marks, short enough to stand in an error.
std::string quoted(const std::string& word);

}  // namespace baton
