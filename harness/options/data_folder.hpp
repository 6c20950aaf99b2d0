// SPDX-License-Identifier: Apache-2.0
// Where the files lie that programs read by name.
#pragma once

#include <filesystem>
#include <string>

namespace baton {

/// The folder share/baton/`name` beside an installed program, else `of_sources`, its place in the
/// source tree.
std::filesystem::path data_folder(const std::string& name, const std::string& of_sources);

}  // namespace baton
