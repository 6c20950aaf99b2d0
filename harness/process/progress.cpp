// SPDX-License-Identifier: Apache-2.0
// The progress line.
#include "harness/process/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace baton {

Progress::Progress(bool is_speaker, int cases)
    : speaks_(is_speaker && isatty(STDERR_FILENO) != 0), cases_(cases) {}

void Progress::enter(const std::string& case_name) {
  ++entered_;
  if (speaks_) fmt::print(stderr, "\r\x1b[K[{}/{}] {}", entered_, cases_, case_name);
}

void Progress::clear() const {
  if (speaks_) fmt::print(stderr, "\r\x1b[K");
}

}  // namespace baton
