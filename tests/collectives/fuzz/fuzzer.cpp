// SPDX-License-Identifier: Apache-2.0
// The entry of libFuzzer: the checker held to account on the schedules that its bytes stand for.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/collectives/fuzz/finding.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it by this name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string found = baton::finding({data, size});
  if (found.empty()) return 0;
  std::fprintf(stderr, "%s", found.c_str());
  std::abort();
}
