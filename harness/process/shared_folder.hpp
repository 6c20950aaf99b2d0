// SPDX-License-Identifier: Apache-2.0
// The folders of a run, of which one of shared memory outlives its process until the next start at
// most.
#pragma once

#include <filesystem>
#include <string>

namespace baton {

/// Returns a new folder in `parent`, empty if none can be made there. It is locked while this
/// process runs. Removes the folders that this function made there for processes that were killed
/// before they could remove them.
std::string new_shared_folder(const std::filesystem::path& parent);

/// A folder for the files of a run's launches, removed with all that they leave in it.
class LaunchFolder {
 public:
  /// Makes the folder. Throws SystemError if that fails.
  LaunchFolder();
  ~LaunchFolder();
  LaunchFolder(const LaunchFolder&) = delete;
  LaunchFolder& operator=(const LaunchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::string shared_memory_;  // empty if this host has none
};

}  // namespace baton
