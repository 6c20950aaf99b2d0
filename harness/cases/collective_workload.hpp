// SPDX-License-Identifier: Apache-2.0
// A collective of some shape and direction as something to be measured.
#pragma once

#include <memory>

#include "harness/cases/workload.hpp"

namespace baton {

/// Keeps a reference to `collective`, which must outlive it.
std::shared_ptr<const Workload> collective_workload(const Collective& collective, const Shape& shape,
                                                    Direction direction);

}  // namespace baton
