// SPDX-License-Identifier: Apache-2.0
// From a file to JSON, whatever the file is: nothing that somebody hands us as one may crash, hang or fill the memory.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace baton {

/// The text in the file `path`. Throws UsageError, one line with the path, if it cannot be read or exceeds 1 MiB.
std::string read_text(const std::string& path);

/// The JSON in `text`; `name` stands for it in errors. Throws UsageError, one line, if it is no JSON, nests deeper than
/// 16 levels, names a key twice in one object or has a number that is not finite.
nlohmann::json parse_json(const std::string& text, const std::string& name);

}  // namespace baton
