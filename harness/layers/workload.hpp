// SPDX-License-Identifier: Apache-2.0
// Layers as workloads, and the command line that asks for them. Only operator_bench has layers:
// collective_bench is linked without this folder and without sp_methods/.
#pragma once

#include <memory>
#include <optional>

#include "harness/cases/case.hpp"
#include "harness/options/options.hpp"
#include "sp_methods/layer_oracle.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {

/// A layer under a method as a workload. Keeps a reference to `method`; ignores `layer.blocks`,
/// which the case sets.
std::shared_ptr<const Workload> operator_workload(const SpMethod& method, const Layer& layer, GateDraw gates);

/// Parses the command line of operator_bench, as parse_collective_options does that of its bench.
std::optional<Options> parse_operator_options(int argc, char** argv);

}  // namespace baton
