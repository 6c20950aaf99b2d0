// SPDX-License-Identifier: Apache-2.0
#include "harness/options/data_folder.hpp"

namespace baton {

std::filesystem::path data_folder(const std::string& name, const std::string& of_sources) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto installed = program.parent_path().parent_path() / "share/baton" / name;
  return std::filesystem::is_directory(installed, error) ? installed : std::filesystem::path(of_sources);
}

}  // namespace baton
