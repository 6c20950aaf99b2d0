// SPDX-License-Identifier: Apache-2.0
#include "harness/process/shared_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <string_view>
#include <system_error>
#include <vector>

namespace baton {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "baton_";
constexpr std::time_t seconds_to_lock = 60;  // a folder is made first and locked then

/// Opens a folder and locks it, for as long as the descriptor is open. Returns -1 if it cannot.
int locked(const fs::path& folder) {
  const int opened = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0 || flock(opened, LOCK_EX | LOCK_NB) == 0) return opened;
  close(opened);
  return -1;
}

/// True for a folder of this user whose process is gone.
bool is_left(const fs::path& folder) {
  struct stat seen {};
  if (folder.filename().string().rfind(prefix, 0) != 0 || lstat(folder.c_str(), &seen) != 0) return false;
  if (!S_ISDIR(seen.st_mode) || seen.st_uid != geteuid() ||
      std::time(nullptr) - seen.st_mtime < seconds_to_lock)
    return false;
  const int lock = locked(folder);
  if (lock >= 0) close(lock);
  return lock >= 0;
}

}  // namespace

std::string new_shared_folder(const fs::path& parent) {
  std::error_code ignored;
  std::vector<fs::path> left;
  for (fs::directory_iterator one(parent, ignored), end; !ignored && one != end; one.increment(ignored))
    if (is_left(one->path())) left.push_back(one->path());
  for (const fs::path& folder : left) fs::remove_all(folder, ignored);
  std::string path = parent / (std::string(prefix) + "XXXXXX");
  if (mkdtemp(path.data()) == nullptr) return {};
  locked(path);  // until the process ends
  return path;
}

}  // namespace baton
