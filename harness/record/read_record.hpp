// SPDX-License-Identifier: Apache-2.0
// Records as they come back from a file or from another process.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "harness/record/record.hpp"

namespace baton {

/// A record from the JSON of json_of or row_json, as far as a table shows it: without the case
/// itself and the ranks' times. Throws nlohmann::json::exception if a key has another type.
Record read_record(const nlohmann::json& json);

}  // namespace baton
