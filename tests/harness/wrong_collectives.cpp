// SPDX-License-Identifier: Apache-2.0
// Collectives that are wrong on purpose, linked into a bench of their own: what the harness must
// not let pass.
#include "collectives/collective.hpp"

namespace baton {
namespace {

/// Hands every rank its own state instead of its prefix.
void wrong_scan(Schedule& s, const Operands& x) {
  if (s.rank() > 0) s.copy(x.into, x.own.state);
}

/// Right, but claims what is not so at two ranks.
std::optional<Cost> wrong_claim(const Shape& shape, const Split& split) {
  const int P = split.ranks;
  return Cost{P > 1 ? shape.state_bytes() : 0, P == 2 ? 7 : P - 1};
}

const Registered wrong{{
    .name = "wrong_scan",
    .kind = Kind::exclusive_scan,
    .summary = "wrong results",
    .build = wrong_scan,
    .claim =
        [](const Shape&, const Split&) {
          return Cost{0, 0};
        },
}};

const Registered lying{{
    .name = "lying_scan",
    .kind = Kind::exclusive_scan,
    .summary = "a wrong claim at two ranks",
    .build = [](Schedule& s, const Operands& x) { embed(s, "all_scan", x); },
    .claim = wrong_claim,
}};

}  // namespace
}  // namespace baton
