// SPDX-License-Identifier: Apache-2.0
// Collectives as workloads.
#pragma once

#include <memory>

#include "collectives/collective.hpp"
#include "harness/cases/case.hpp"

namespace baton {

/// A collective as a workload. Keeps a reference to `collective`.
std::shared_ptr<const Workload> collective_workload(const Collective& collective, const Shape& shape,
                                                    Direction direction);

}  // namespace baton
