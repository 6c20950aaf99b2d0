// SPDX-License-Identifier: Apache-2.0
// Models as workloads, the files that describe them, and the command line that asks for them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "harness/cases/case.hpp"
#include "harness/cases/verify.hpp"
#include "harness/options/options.hpp"
#include "models/reference/oracle.hpp"
#include "models/stack.hpp"
#include "sp_methods/layer_oracle.hpp"

namespace baton {

/// The three lines of a method: the data-parallel one, the method's cut and kernels without its
/// exchange, and all of it.
enum class Line { dp, split, full };

const char* to_string(Line line);

/// A model under a method as a workload. The line is that of the stack: `dp` if its method
/// exchanges nothing, `split` in mode compute_only. `peak_flops` of a rank, 0 if unknown. Keeps
/// references to the stack's methods; ignores `layer.blocks`, which the case sets.
std::shared_ptr<const Workload> model_workload(const Stack& stack, double peak_flops);

/// The model that a file describes (docs/models.md). Each number must have a source. Throws
/// UsageError, in one line, if the file cannot be read, lacks a key or a source, or has a wrong
/// value.
ModelShape read_model(const std::string& path);

/// The model called `name`: `tiny`, one of models/, or a file's. Throws UsageError.
ModelShape find_model(const std::string& name);

/// The names of the models that need no path.
std::vector<std::string> model_names();

/// Parses the command line of model_bench, as parse_collective_options does that of its bench.
std::optional<Options> parse_model_options(int argc, char** argv);

/// The most flop of an oracle, some seconds of one core. Larger models are compared part by part.
inline constexpr double most_oracle_flop = 2e10;

/// The largest ||got - expected|| / ||expected|| of an output of a model with these results:
/// rounding in the tensors' dtype, and what the norms of small heads make of it.
double model_tolerance(const ModelOracle& oracle);

/// Writes the problem's inputs into, and poison over the outputs of, this process's ranks. The
/// threads of `work` draw them.
void write_model(Executor& executor, std::span<const Schedule> schedules, const ModelProblem& problem,
                 const OracleWork& work = {});

/// Compares the outputs of this process's ranks; `wrong` counts tensors outside the tolerance, or
/// with elements that were not written or are not finite. A layer's gradients are compared weight
/// by weight, those of a shard together.
Comparison compare_model(const Executor& executor, std::span<const Schedule> schedules,
                         const ModelOracle& oracle);

/// Compares a model that is too large for the oracle part by part: sampled rows of its steps with
/// their own operands, its attention and what ranks exchanged for it with the recurrence from the
/// states that other ranks make, and sharded weights and gradients (harness/models/sampled.hpp).
/// The seed chooses rows and heads. Collective over the team.
Comparison compare_sampled(const Executor& executor, std::span<const Schedule> schedules,
                           const ModelProblem& problem, const Team& team);

}  // namespace baton
