// SPDX-License-Identifier: Apache-2.0
// All-Scan under other names. `all_scan_twin` is one case under two names; under each of the others
// the executor `faulty` misbehaves in rank 1, in the fourth round.
#include <string>

#include "collectives/collective.hpp"

namespace baton {
namespace {

Registered all_scan_as(const std::string& name, const std::string& summary) {
  const auto original = [] { return find_collective("all_scan"); };
  return Registered({
      .name = name,
      .kind = Kind::exclusive_scan,
      .summary = summary,
      .build =
          [=](Schedule& s, const Operands& x) {
            const Region region(s, name);
            original().build(s, x);
          },
      .claim = [=](const Shape& shape, const Split& split) { return original().claim(shape, split); },
      .sent = [=](const Shape& shape, const Split& split,
                  int rank) { return original().sent(shape, split, rank); },
      .cuts_blocks = true,
  });
}

const Registered registered[]{
    all_scan_as("all_scan_twin", "all_scan under a second name"),
    all_scan_as("hang", "rank 1 waits without end"),
    all_scan_as("crash", "rank 1 aborts"),
    all_scan_as("throw", "rank 1 throws"),
    all_scan_as("kill", "rank 1 is killed"),
    all_scan_as("stop", "rank 1 is stopped"),
    all_scan_as("memory", "rank 1 has no more memory"),
};

}  // namespace
}  // namespace baton
