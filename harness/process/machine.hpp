// SPDX-License-Identifier: Apache-2.0
// Where and with what a run was made.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace baton {

/// Processor, cores, memory, system, versions of everything linked, and the environment variables that steer
/// MPI and threads. The host's name appears as a hash only: results are published. `mpi_library` comes from
/// World::library.
nlohmann::ordered_json describe_machine(const std::string& mpi_library);

/// The processor and its cores, for people.
std::string machine_name();

/// A number that two processes share exactly if they run on the same host.
std::uint32_t host_number();

/// Logical cores of this host.
int online_cores();

/// Bytes of memory that new allocations can have on this host now.
std::int64_t available_bytes();

/// The commit that was built, "-dirty" behind it where files had changed.
std::string commit();

/// The time now in UTC, as 2026-01-31T12:00:00Z.
std::string utc_now();

}  // namespace baton
