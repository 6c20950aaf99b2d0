// SPDX-License-Identifier: Apache-2.0
// The transport of executor `mpi` between ranks of one host, as far as Open MPI shows it. Its
// transport by shared memory maps a file of each rank of the host, and another one maps none: so
// Open MPI falls back to sockets where /dev/shm is too small.
#include "collectives/executors/transport.hpp"

#include <mpi.h>

#include <fstream>
#include <set>
#include <string>
#include <string_view>

namespace baton {
namespace {

/// The files of shared memory of ranks that this process has mapped, its own included.
int mapped_segments() {
  std::ifstream maps("/proc/self/maps");
  std::set<std::string> files;
  for (std::string line; std::getline(maps, line);)
    for (const std::string_view name : {"/vader_segment.", "/sm_segment."})  // of Open MPI 4 and 5
      if (const auto at = line.find(name); at != std::string::npos) files.insert(line.substr(at));
  return static_cast<int>(files.size());
}

/// The word for a value of a setting of the library; empty if it has no such setting.
std::string setting(const char* name) {
  int index = 0, length = 0, verbosity = 0, bind = 0, scope = 0, count = 0, value = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_T_enum words = MPI_T_ENUM_NULL;
  if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS) return {};
  if (MPI_T_cvar_get_info(index, nullptr, &length, &verbosity, &type, &words, nullptr, &length, &bind,
                          &scope) != MPI_SUCCESS ||
      words == MPI_T_ENUM_NULL)
    return {};
  MPI_T_cvar_handle handle;
  if (MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) != MPI_SUCCESS) return {};
  const bool is_read = MPI_T_cvar_read(handle, &value) == MPI_SUCCESS;
  MPI_T_cvar_handle_free(&handle);
  int items = 0;
  char text[64] = "";
  MPI_T_enum_get_info(words, &items, nullptr, &(length = 0));
  for (int item = 0; is_read && item < items; ++item) {
    int of_item = 0;
    length = sizeof text;
    if (MPI_T_enum_get_item(words, item, &of_item, text, &length) == MPI_SUCCESS && of_item == value)
      return text;
  }
  return {};
}

/// How large messages are copied: once, from one process to another by the mechanism of that name,
/// or by way of shared memory for "none". Empty if the library does not say.
std::string copies() {
  int provided = 0;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return {};
  std::string mechanism = setting("btl_vader_single_copy_mechanism");
  if (mechanism.empty()) mechanism = setting("smsc");
  MPI_T_finalize();
  if (mechanism.empty()) return {};
  return mechanism == "none" ? ", copied twice" : ", copied once by " + mechanism;
}

std::string transport() {
  constexpr int own_and_another = 2;
  return mapped_segments() < own_and_another ? "" : "shared memory" + copies();
}

const RegisteredTransport registered("mpi", transport);

}  // namespace
}  // namespace baton
