// SPDX-License-Identifier: Apache-2.0
// A loop whose iterations are independent, cut into one contiguous share a thread.
//
//   share t of n: [count t / n, count (t + 1) / n)
//   the calling thread takes share 0, fresh threads the others
//
// Cost: one thread start a share beyond the first; none for one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace baton {

/// Calls body(first, last) on disjoint ranges that cover [0, count); returns when all are done.
template <class Body>
void parallel_for(std::int64_t count, int threads, const Body& body) {
  const auto shares = std::clamp<std::int64_t>(threads, 1, std::max<std::int64_t>(count, 1));
  std::vector<std::jthread> helpers;
  for (std::int64_t t = 1; t < shares; ++t) {
    helpers.emplace_back([&body, count, shares, t] { body(count * t / shares, count * (t + 1) / shares); });
  }
  body(0, count / shares);
}

}  // namespace baton
