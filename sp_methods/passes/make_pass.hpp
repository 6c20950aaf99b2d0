// SPDX-License-Identifier: Apache-2.0
// The choice of the pass by which a layer of linear attention is recorded.
#pragma once

#include <memory>

#include "sp_methods/passes/linear_pass.hpp"

namespace baton {

/// Makes the pass of a layer: one whose kernels keep the state of every chunk, one whose kernels
/// work in segments, or that of maps with matrices.
std::unique_ptr<LinearPass> make_pass(Schedule& schedule, const PassInputs& inputs);

}  // namespace baton
