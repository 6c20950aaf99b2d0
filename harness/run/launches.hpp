// SPDX-License-Identifier: Apache-2.0
// The process that outlives the launches of a run.
#pragma once

namespace baton {

struct Options;

/// Runs the cases of `options` in launches of this program with the arguments of `argv`, prints
/// what they measure and outlives them: this is the process that the user started. A case that ends
/// its launch becomes a failed row, and the launch is started again for the others. Names what gave
/// no time at the end. Returns the exit code. Throws UsageError or SystemError if no launch can
/// start.
int run_launches(const Options& options, char** argv);

}  // namespace baton
