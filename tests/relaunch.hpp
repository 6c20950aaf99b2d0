// SPDX-License-Identifier: Apache-2.0
// How a test program becomes several ranks.
#pragma once

#include <unistd.h>

#include <string>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "harness/process/launch.hpp"
#include "harness/process/world.hpp"

namespace baton {

/// Replaces this process by `ranks` ranks of the same program, unless it is one of them. Throws
/// SystemError if there is no launcher.
inline void relaunch(int ranks, char** argv) {
  if (is_launched()) return;
  std::vector<std::string> command = launch_command(ranks, 1, argv);
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  execvp(words[0], words.data());
  throw SystemError("cannot start " + command[0]);
}

}  // namespace baton
