// SPDX-License-Identifier: Apache-2.0
// The memory that processes of this host can still have.
#pragma once

#include <filesystem>
#include <string>

namespace baton {

/// Bytes that are left, and the limit that leaves no more, in words.
struct FreeMemory {
  double bytes = 0;
  std::string limit;
};

/// What `processes` processes like this one can have together beside what they have: the least that
/// the host, the control groups around this process, and the limits of each process leave. `root`
/// is the folder that /proc and /sys are in; a test makes one up.
FreeMemory free_memory(int processes = 1, const std::filesystem::path& root = "/");

/// A number of bytes in words, such as "1.5 GiB".
std::string memory_words(double bytes);

}  // namespace baton
