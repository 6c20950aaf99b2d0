// SPDX-License-Identifier: Apache-2.0
#include "harness/process/shared_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <string_view>
#include <system_error>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "harness/process/surroundings.hpp"

namespace baton {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "baton_";
constexpr std::time_t seconds_to_lock = 60;  // a folder is made first and locked then

/// A new folder, whose path has other letters in place of the last six; empty if it cannot be made.
std::string new_folder(std::string path) { return mkdtemp(path.data()) == nullptr ? std::string{} : path; }

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
  const std::string path = new_folder(parent / (std::string(prefix) + "XXXXXX"));
  if (!path.empty()) locked(path);  // until the process ends
  return path;
}

LaunchFolder::LaunchFolder() : shared_memory_(new_shared_folder("/dev/shm")) {
  std::error_code none;
  const fs::path parent = fs::temp_directory_path(none);  // empty if $TMPDIR is no folder
  if (!none) path_ = new_folder(parent / "baton-XXXXXX");
  if (path_.empty())
    throw UsageError("TMPDIR: cannot make a folder in '" +
                     (none ? std::string(std::getenv("TMPDIR")) : parent.string()) +
                     "': set it to a folder that can be written to");
  leave_surroundings();  // an outer Open MPI has set the folder of its own files
  // Open MPI's own files and its shared memory, which it leaves behind when it is killed.
  setenv("OMPI_MCA_orte_tmpdir_base", path_.c_str(), 0);
  if (!shared_memory_.empty()) setenv("OMPI_MCA_btl_vader_backing_directory", shared_memory_.c_str(), 0);
}

LaunchFolder::~LaunchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (!shared_memory_.empty()) fs::remove_all(shared_memory_, ignored);
}

}  // namespace baton
