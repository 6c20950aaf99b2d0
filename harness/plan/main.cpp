// SPDX-License-Identifier: Apache-2.0
// `usable_cores` prints the number of cores that programs of this shell may keep busy. ./run plans
// by it, since what a shell knows, nproc, obeys variables of OpenMP and knows no quota.
#include <iostream>

#include "collectives/executors/cores.hpp"

int main() { std::cout << baton::usable_cores().count() << "\n"; }
