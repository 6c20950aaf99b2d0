// SPDX-License-Identifier: Apache-2.0
// The files that describe models.
#pragma once

#include <string>
#include <vector>

#include "sp_methods/models/stack.hpp"

namespace baton {

/// The model that a file describes (docs/models.md). Each number must have a source. Throws
/// UsageError, in one line, if the file cannot be read, lacks a key or a source, or has a wrong
/// value.
ModelShape read_model(const std::string& path);

/// The model called `name`: `tiny`, one of models/, or a file's. Throws UsageError.
ModelShape find_model(const std::string& name);

/// The names of the models that need no path.
std::vector<std::string> model_names();

}  // namespace baton
