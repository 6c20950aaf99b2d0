// SPDX-License-Identifier: Apache-2.0
// The search for a library that is opened when the program runs: by the loader's own rules, or
// below the packages of the Pythons that PATH leads to.
#pragma once

#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace baton {

/// Files that match a pattern of a shell, in the order of names.
inline std::vector<std::string> files_like(const std::string& pattern) {
  std::vector<std::string> files;
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return files;
}

/// Files below the packages of the Pythons that PATH leads to, whose bin/ lies beside lib/.
inline std::vector<std::string> in_pythons(const std::string& file) {
  std::vector<std::string> files;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    for (const char* packages : {"/../lib/python3*/site-packages/", "/../lib/python3*/dist-packages/"})
      for (std::string& one : files_like(folder + packages + file)) files.push_back(std::move(one));
  return files;
}

/// Opens the first library of `names` that opens; null if none does. `which`, if given, gets its
/// name.
inline void* opened(const std::vector<std::string>& names, std::string* which = nullptr) {
  for (const std::string& name : names)
    if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      if (which != nullptr) *which = name;
      return library;
    }
  return nullptr;
}

}  // namespace baton
