// SPDX-License-Identifier: Apache-2.0
// One layer under a method as something to be measured.
#pragma once

#include <memory>

#include "harness/cases/workload.hpp"
#include "sp_methods/layer_oracle.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {

/// Keeps a reference to `method`, which must outlive it. `layer.blocks` is the case's and not read here.
std::shared_ptr<const Workload> operator_workload(const SpMethod& method, const Layer& layer, GateDraw gates);

}  // namespace baton
