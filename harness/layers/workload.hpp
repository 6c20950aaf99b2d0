// SPDX-License-Identifier: Apache-2.0
// Layers as workloads. Only operator_bench has layers:
// collective_bench is linked without this folder and without sp_methods/.
#pragma once

#include <memory>

#include "harness/cases/case.hpp"
#include "harness/layers/draw.hpp"
#include "sp_methods/layer_oracle.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {

/// A layer under a method as a workload. Keeps a reference to `method`; ignores `layer.blocks` and
/// `layer.starts`, which the case and `draw` set.
std::shared_ptr<const Workload> operator_workload(const SpMethod& method, const Layer& layer,
                                                  const LayerDraw& draw = {});

}  // namespace baton
