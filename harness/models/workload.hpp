// SPDX-License-Identifier: Apache-2.0
// Models as workloads.
#pragma once

#include <memory>

#include "harness/cases/case.hpp"
#include "sp_methods/models/stack.hpp"

namespace baton {

/// What of a method a row has: data parallelism in its place, its cut and kernels without its
/// exchange, or the whole method. Records and `--lines` say dp, split and full.
enum class Scope { data_parallel, no_exchange, full };

const char* to_string(Scope scope);

/// A model under a method as a workload. The scope is that of the stack: `data_parallel` if its
/// method exchanges nothing, `no_exchange` in mode compute_only, else `full`. `peak_flops` is the
/// peak flop/s of a rank, 0 if unknown. A `sequence` other than 0 is the number of tokens of all
/// ranks, which each number of ranks shares equally. Keeps references to the stack's methods;
/// ignores `layer.blocks`, which the case sets.
std::shared_ptr<const Workload> model_workload(const Stack& stack, double peak_flops,
                                               std::int64_t sequence = 0);

}  // namespace baton
