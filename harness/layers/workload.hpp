// SPDX-License-Identifier: Apache-2.0
// Layers as workloads. Only operator_bench has layers:
// collective_bench is linked without this folder and without sp_methods/.
#pragma once

#include <cstdint>
#include <memory>

#include "harness/cases/case.hpp"
#include "sp_methods/layer_oracle.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {

/// The packed documents of a layer: their mean length in tokens, 0 for one document, and the seed
/// of their starts.
struct Packing {
  std::int64_t mean = 0;
  std::uint64_t seed = 1;
};

/// A layer under a method as a workload. Keeps a reference to `method`; ignores `layer.blocks` and
/// `layer.starts`, which the case and `packing` set.
std::shared_ptr<const Workload> operator_workload(const SpMethod& method, const Layer& layer, GateDraw gates,
                                                  const Packing& packing = {});

}  // namespace baton
