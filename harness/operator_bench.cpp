// SPDX-License-Identifier: Apache-2.0
// operator_bench: times one layer's attention under each sequence-parallel method.
#include "harness/layers/options.hpp"
#include "harness/run/bench.hpp"

int main(int argc, char** argv) { return baton::bench_main(argc, argv, baton::parse_operator_options); }
