// SPDX-License-Identifier: Apache-2.0
// Trying and writing.
#include "harness/process/files.hpp"

#include <filesystem>
#include <fstream>

#include "collectives/schedule/errors.hpp"

namespace baton {

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

}  // namespace baton
