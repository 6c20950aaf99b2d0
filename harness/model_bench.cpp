// SPDX-License-Identifier: Apache-2.0
// model_bench: times a model's blocks, forward and backward, under each sequence-parallel method.
#include "harness/models/options.hpp"
#include "harness/run/bench.hpp"

int main(int argc, char** argv) { return baton::bench_main(argc, argv, baton::parse_model_options); }
