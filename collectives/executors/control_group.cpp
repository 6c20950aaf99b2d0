// SPDX-License-Identifier: Apache-2.0
//
//   /proc/self/cgroup     "4:cpu,cpuacct:/a/b" (version 1), "0::/a/b" (version 2)
//   /proc/self/mountinfo  "31 23 0:28 /a /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu": /a is there
//
// The group is then at /sys/fs/cgroup/cpu/b. A container often sees its own group alone, at the
// place of the root.
#include "collectives/executors/control_group.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace baton {
namespace {

namespace fs = std::filesystem;

bool lists(const std::string& words, const std::string& wanted) {
  return ("," + words + ",").find("," + wanted + ",") != std::string::npos;
}

/// A text of the kernel, which writes blanks in paths as "\040".
std::string unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool is_escaped = text[at] == '\\' && at + 3 < text.size();
    plain += is_escaped ? static_cast<char>(std::stoi(text.substr(at + 1, 3), nullptr, 8)) : text[at];
    if (is_escaped) at += 3;
  }
  return plain;
}

/// The path of this process's group of the hierarchy that has `controller`; "" is version 2. Empty
/// if there is none.
std::string group_path(const std::string& controller, const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : lists(controllers, controller))
      return line.substr(second + 1);
  }
  return {};
}

/// A part of a hierarchy that is mounted: the group `top` is at the folder `place`.
struct Mount {
  fs::path top, place;
};

/// The mounts of the hierarchy that has `controller`, the last one first: it may hide others.
std::vector<Mount> mounts(const std::string& controller, const fs::path& root) {
  std::ifstream file(root / "proc/self/mountinfo");
  std::vector<Mount> found;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string skipped, top, place, type, options;
    words >> skipped >> skipped >> skipped >> top >> place;
    while (words >> skipped && skipped != "-") continue;
    words >> type >> skipped >> options;
    if (controller.empty() ? type == "cgroup2" : type == "cgroup" && lists(options, controller))
      found.insert(found.begin(), {unescaped(top), root / fs::path(unescaped(place)).relative_path()});
  }
  return found;
}

/// The folder of the group `path` in `mount`; empty if the mount does not have it.
fs::path folder_in(const Mount& mount, const fs::path& path) {
  const fs::path below = path.lexically_relative(mount.top);
  if (below.empty() || *below.begin() == "..") return {};
  const fs::path folder = below == "." ? mount.place : mount.place / below;
  return fs::is_directory(folder) ? folder : fs::path();
}

std::vector<fs::path> groups_of(const std::string& controller, const fs::path& root) {
  const std::string path = group_path(controller, root);
  if (path.empty()) return {};
  const std::vector<Mount> all = mounts(controller, root);
  for (const Mount& mount : all) {
    std::vector<fs::path> folders{folder_in(mount, path)};
    if (folders.front().empty()) continue;
    while (folders.back() != mount.place) folders.push_back(folders.back().parent_path());
    return folders;
  }
  // A group outside of what is mounted: in a container the top of a mount is then its own group.
  return all.empty() ? std::vector<fs::path>{} : std::vector{all.front().place};
}

}  // namespace

std::vector<fs::path> control_groups(const std::string& controller, const fs::path& root) {
  const std::vector<fs::path> old = groups_of(controller, root);
  return old.empty() ? groups_of("", root) : old;
}

std::optional<std::int64_t> number_in_file(const fs::path& file) {
  std::ifstream opened(file);
  std::int64_t value = 0;
  return opened >> value ? std::optional(value) : std::nullopt;
}

namespace {

/// The cores whose time the files of a group allow; infinity without a limit.
double cores_allowed(const fs::path& group) {
  const std::optional<std::int64_t> old = number_in_file(group / "cpu.cfs_quota_us");
  double limit = static_cast<double>(old.value_or(-1)), period = 0;
  if (old)
    period = static_cast<double>(number_in_file(group / "cpu.cfs_period_us").value_or(0));
  else
    std::ifstream(group / "cpu.max") >> limit >> period;  // "max 100000" or "150000 100000"
  return limit > 0 && period > 0 ? limit / period : std::numeric_limits<double>::infinity();
}

/// The number beside `key` in a file of keys and numbers; 0 if there is none.
std::int64_t number_of(const std::string& wanted, const fs::path& path) {
  std::ifstream file(path);
  std::string key;
  for (std::int64_t number = 0; file >> key >> number;)
    if (key == wanted) return number;
  return 0;
}

}  // namespace

Quota processor_quota(const fs::path& root) {
  Quota found;
  for (const fs::path& group : control_groups("cpu", root)) {
    found.cores = std::min(found.cores, cores_allowed(group));
    found.stops += number_of("nr_throttled", group / "cpu.stat");
  }
  return found;
}

}  // namespace baton
