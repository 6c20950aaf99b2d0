// SPDX-License-Identifier: Apache-2.0
// Files that a flag names, to be written at the end of a run: looked at before it starts.
#pragma once

#include <string>
#include <vector>

namespace baton {

/// Throws UsageError where `what` cannot be written to `path`. Leaves no file behind that was not there.
void require_writable(const std::string& path, const std::string& what);

/// Throws UsageError where two of `paths` are one file; empty ones stand for none.
void require_different_files(const std::vector<std::string>& paths);

/// Writes `text` in place of what was there. Throws SystemError if it fails.
void write_text(const std::string& path, const std::string& text);

}  // namespace baton
