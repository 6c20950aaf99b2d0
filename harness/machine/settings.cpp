// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/settings.hpp"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <string_view>

extern char** environ;

namespace baton {
namespace {

namespace fs = std::filesystem;

bool begins_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

/// True of a name with one of the prefixes that steer a run. How processes are bound and mapped is
/// none of them: MPI's launcher sets those variables itself, and MPI reports what holds.
bool is_steering(std::string_view name) {
  constexpr std::array prefixes{"OMPI_MCA_btl",
                                "OMPI_MCA_pml",
                                "OMPI_MCA_mtl",
                                "OMPI_MCA_coll",
                                "OMPI_MCA_osc",
                                "OMPI_MCA_mpi_",
                                "OMPI_MCA_shmem",
                                "OMPI_MCA_smsc",
                                "OMPI_MCA_mpool",
                                "OMPI_MCA_rcache",
                                "OMPI_MCA_topo",
                                "OMPI_MCA_opal_",
                                "OMPI_MCA_mca_base_",
                                "PMIX_MCA_",
                                "PRTE_MCA_",
                                "UCX_",
                                "OMP_",
                                "GOMP_",
                                "KMP_",
                                "NCCL_",
                                "OPENBLAS_",
                                "GOTO_NUM_THREADS",
                                "BLIS_",
                                "MKL_",
                                "MALLOC_",
                                "GLIBC_TUNABLES",
                                "LD_PRELOAD",
                                "LD_BIND_NOW",
                                "CUDA_LAUNCH_BLOCKING",
                                "CUDA_DEVICE_MAX_CONNECTIONS"};
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](auto prefix) { return begins_with(name, prefix); });
}

/// True of a variable that mpiexec, torchrun or this suite sets, which says nothing of the user's
/// wishes.
bool is_of_launcher(std::string_view line) {
  constexpr std::array own{
      "OMPI_MCA_btl_vader_backing_directory=", "OMPI_MCA_mpi_oversubscribe=", "OMPI_MCA_shmem_RUNTIME_",
      "PMIX_MCA_psec", "PMIX_MCA_mca_base_component_show_load_errors="};
  if (line == "OMP_NUM_THREADS=1" && std::getenv("TORCHELASTIC_RUN_ID") != nullptr) return true;
  return std::any_of(own.begin(), own.end(), [&](auto one) { return begins_with(line, one); });
}

/// The names of libraries without their folders, which are the user's.
std::string without_folders(const std::string& paths) {
  std::string names;
  for (std::size_t at = 0, end = 0; at < paths.size(); at = end + 1) {
    end = std::min(paths.find_first_of(": ", at), paths.size());
    const std::string name = fs::path(paths.substr(at, end - at)).filename();
    if (!name.empty()) names += (names.empty() ? "" : " ") + name;
  }
  return names;
}

/// "NAME=value" without blanks around its parts; an empty name where the line is none.
std::pair<std::string, std::string> parts_of(const std::string& line) {
  const auto trimmed = [](const std::string& text) {
    const auto begin = text.find_first_not_of(" \t\r");
    return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
  };
  const auto sign = line.find('=');
  if (sign == std::string::npos || trimmed(line)[0] == '#') return {};
  return {trimmed(line.substr(0, sign)), trimmed(line.substr(sign + 1))};
}

/// The value of one of `variables`; empty if it is not among them.
std::string value_of(const std::vector<std::string>& variables, const std::string& name) {
  for (const std::string& line : variables)
    if (begins_with(line, name + "=")) return line.substr(name.size() + 1);
  return {};
}

/// `path` in the folder `root`.
fs::path within(const fs::path& root, const fs::path& path) { return root / path.relative_path(); }

}  // namespace

NamedValues steering_variables(const std::vector<std::string>& variables) {
  NamedValues found;
  for (const std::string& line : variables) {
    const std::string name = line.substr(0, line.find('='));
    if (!is_steering(name) || is_of_launcher(line) || name.size() == line.size()) continue;
    const std::string value = line.substr(name.size() + 1);
    found.emplace_back(name, name == "LD_PRELOAD" ? without_folders(value) : value);
  }
  return found;
}

std::vector<std::string> own_variables() {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
  return all;
}

NamedValues settings_in_files(const std::vector<std::string>& variables, const fs::path& root) {
  const fs::path home = value_of(variables, "HOME"), nccl = value_of(variables, "NCCL_CONF_FILE");
  NamedValues found;
  const auto is_known = [&](const std::string& name) {
    const auto has_name = [&](const auto& one) { return one.first == name; };
    return !value_of(variables, name).empty() || std::any_of(found.begin(), found.end(), has_name);
  };
  // Of a variable in several files the first one holds.
  for (const fs::path& path : {nccl.empty() ? home / ".nccl.conf" : nccl, fs::path("/etc/nccl.conf"),
                               home / "ucx.conf", fs::path("/etc/ucx/ucx.conf")}) {
    std::ifstream file(within(root, path));
    for (std::string line; std::getline(file, line);) {
      const auto [name, value] = parts_of(line);
      if ((begins_with(name, "NCCL_") || begins_with(name, "UCX_")) && !is_known(name))
        found.emplace_back(name, value);
    }
  }
  return found;
}

NamedValues settings_of_system(const fs::path& root) {
  NamedValues found;
  std::ifstream pages(root / "sys/kernel/mm/transparent_hugepage/enabled");  // "always [madvise] never"
  for (std::string word; pages >> word;)
    if (word.front() == '[') found.emplace_back("transparent_huge_pages", word.substr(1, word.size() - 2));
  struct statvfs shared {};
  if (statvfs((root / "dev/shm").c_str(), &shared) == 0) {
    const double mebibytes =
        static_cast<double>(shared.f_blocks) * static_cast<double>(shared.f_frsize) / (1 << 20);
    found.emplace_back("dev_shm", fmt::format("{:.0f} MiB", mebibytes));
  }
  return found;
}

}  // namespace baton
