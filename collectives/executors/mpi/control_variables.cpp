// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/mpi/control_variables.hpp"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>

namespace baton {
namespace {

/// MPI's tools interface while it is in use.
class Tools {
 public:
  Tools() {
    int provided = 0;
    is_open_ = MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS;
  }
  ~Tools() {
    if (is_open_) MPI_T_finalize();
  }
  Tools(const Tools&) = delete;
  Tools& operator=(const Tools&) = delete;

  /// The value of a variable in words; nothing if the library has no such variable.
  std::optional<std::string> value(const std::string& name) const;

 private:
  bool is_open_ = false;
};

/// The word of a number that stands for one; the number itself if none does.
std::string word_of(MPI_T_enum words, int number) {
  int count = 0, length = 0;
  if (words == MPI_T_ENUM_NULL || MPI_T_enum_get_info(words, &count, nullptr, &length) != MPI_SUCCESS)
    return std::to_string(number);
  for (int place = 0; place < count; ++place) {
    std::array<char, 256> word{};
    int value = 0, room = word.size();
    if (MPI_T_enum_get_item(words, place, &value, word.data(), &room) == MPI_SUCCESS && value == number)
      return word.data();
  }
  return std::to_string(number);
}

/// The value in `bytes` in words, of a type that settings have.
std::optional<std::string> words_of(const std::string& bytes, MPI_Datatype type, MPI_T_enum words) {
  const auto* data = bytes.data();
  if (type == MPI_CHAR) return std::string(data);
  if (type == MPI_INT || type == MPI_C_BOOL) {
    const int number = type == MPI_INT ? *reinterpret_cast<const int*>(data) : *data;
    return word_of(words, number);
  }
  if (type == MPI_UNSIGNED) return std::to_string(*reinterpret_cast<const unsigned*>(data));
  if (type == MPI_UNSIGNED_LONG_LONG || type == MPI_UNSIGNED_LONG || type == MPI_COUNT)
    return std::to_string(*reinterpret_cast<const unsigned long*>(data));
  return std::nullopt;
}

std::optional<std::string> Tools::value(const std::string& name) const {
  int index = 0, verbosity = 0, binding = 0, scope = 0, name_length = 0, text_length = 0, count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_T_enum words = MPI_T_ENUM_NULL;
  MPI_T_cvar_handle handle;
  if (!is_open_ || MPI_T_cvar_get_index(name.c_str(), &index) != MPI_SUCCESS ||
      MPI_T_cvar_get_info(index, nullptr, &name_length, &verbosity, &type, &words, nullptr, &text_length,
                          &binding, &scope) != MPI_SUCCESS ||
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) != MPI_SUCCESS)
    return std::nullopt;
  std::string bytes(static_cast<std::size_t>(std::max(count, 1)) * sizeof(long) + 1, '\0');
  const bool is_read = MPI_T_cvar_read(handle, bytes.data()) == MPI_SUCCESS;
  MPI_T_cvar_handle_free(&handle);
  return is_read ? words_of(bytes, type, words) : std::nullopt;
}

/// The names in Open MPI's parameter files that are of messages or processes, not of places.
std::vector<std::string> names_in_files(const std::string& paths) {
  std::vector<std::string> names;
  for (std::size_t at = 0, end = 0; at < paths.size(); at = end + 1) {
    end = std::min(paths.find_first_of(",:", at), paths.size());
    std::ifstream file(paths.substr(at, end - at));
    for (std::string line; std::getline(file, line);) {
      const auto begin = line.find_first_not_of(" \t"), after = line.find_first_of(" \t=", begin);
      if (begin == std::string::npos || after == std::string::npos || line[begin] == '#') continue;
      const std::string name = line.substr(begin, after - begin);
      for (const char* part :
           {"btl", "pml", "mtl", "coll", "osc", "mpi_", "opal_", "mpool", "rcache", "smsc", "shmem", "topo"})
        if (name.rfind(part, 0) == 0) names.push_back(name);
    }
  }
  return names;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> control_variables() {
  const Tools tools;
  std::vector<std::string> names{"btl",
                                 "pml",
                                 "mtl",
                                 "coll",
                                 "osc",
                                 "shmem",
                                 "smsc",
                                 "btl_vader_single_copy_mechanism",
                                 "mpi_yield_when_idle",
                                 "mpi_leave_pinned",
                                 "hwloc_base_binding_policy",
                                 "rmaps_base_mapping_policy"};
  for (const char* files : {"mca_base_param_files", "mca_base_override_param_file"})
    for (const std::string& name : names_in_files(tools.value(files).value_or("")))
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  std::vector<std::pair<std::string, std::string>> found;
  for (const std::string& name : names)
    if (const auto value = tools.value(name); value && !value->empty()) found.emplace_back(name, *value);
  return found;
}

}  // namespace baton
