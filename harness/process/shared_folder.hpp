// SPDX-License-Identifier: Apache-2.0
// A folder of shared memory that outlives its process until the next start at most.
#pragma once

#include <filesystem>
#include <string>

namespace baton {

/// Returns a new folder in `parent`, empty if none can be made there. It is locked while this
/// process runs. Removes the folders that this function made there for processes that were killed
/// before they could remove them.
std::string new_shared_folder(const std::filesystem::path& parent);

}  // namespace baton
