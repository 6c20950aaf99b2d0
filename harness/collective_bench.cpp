// SPDX-License-Identifier: Apache-2.0
// collective_bench: times the exchanges of sequence-parallel attention.
#include "harness/options/collective.hpp"
#include "harness/run/bench.hpp"

int main(int argc, char** argv) { return baton::bench_main(argc, argv, baton::parse_collective_options); }
