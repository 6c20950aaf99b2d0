// SPDX-License-Identifier: Apache-2.0
// Models as workloads.
#pragma once

#include <memory>

#include "harness/cases/case.hpp"
#include "sp_methods/models/stack.hpp"

namespace baton {

/// The three lines of a method: the data-parallel one, the method's cut and kernels without its
/// exchange, and the whole method.
enum class Line { dp, split, full };

const char* to_string(Line line);

/// A model under a method as a workload. The line is that of the stack: `dp` if its method
/// exchanges nothing, `split` in mode compute_only, else `full`. `peak_flops` is the peak flop/s of
/// a rank, 0 if unknown. Keeps references to the stack's methods; ignores `layer.blocks`, which the
/// case sets.
std::shared_ptr<const Workload> model_workload(const Stack& stack, double peak_flops);

}  // namespace baton
