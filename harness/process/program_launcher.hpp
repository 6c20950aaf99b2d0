// SPDX-License-Identifier: Apache-2.0
// The launcher of a program that is no executable of its own, such as one in Python.
#pragma once

#include <string>
#include <vector>

namespace baton {

/// The words that start the ranks of a launch of such a program: the number of ranks and the
/// bench's arguments follow them. Empty where mpiexec starts ranks.
inline std::vector<std::string>& program_launcher() {
  static std::vector<std::string> words;
  return words;
}

/// The command that starts `processes` ranks with the arguments `argv[1]` and on; empty if there is
/// no such launcher.
inline std::vector<std::string> program_command(int processes, char** argv) {
  std::vector<std::string> command = program_launcher();
  if (command.empty()) return command;
  command.push_back(std::to_string(processes));
  for (char** argument = argv + 1; *argument != nullptr; ++argument) command.emplace_back(*argument);
  return command;
}

}  // namespace baton
