// SPDX-License-Identifier: Apache-2.0
// Collectives that are wrong on purpose, linked into a bench of their own: what the harness must
// not let pass.
#include "collectives/collective.hpp"

namespace baton {
namespace {

/// Hands every rank its own state instead of its prefix, in rows of four elements. Scans run on
/// words in shorter rows, so that only the comparison of results finds it.
void wrong_scan(Schedule& s, const Operands& x) {
  find_collective("ring_scan").build(s, x);
  if (s.rank() > 0 && x.own.row == 4) s.copy(x.into, x.own.state);
}

/// Right, but claims what is not so at two ranks.
std::optional<Cost> wrong_claim(const Shape& shape, const Split& split) {
  const int P = split.ranks;
  return Cost{P > 1 ? shape.state_bytes() : 0, P == 2 ? 7 : P - 1};
}

/// A chain of whole states in which ranks from the seventh on combine the wrong way round.
void disordered_scan(Schedule& s, const Operands& x) {
  const int P = s.ranks(), r = s.rank();
  const Map prefix{{}, x.into, x.own.row};
  if (r > 0) s.recv(prefix, r - 1);
  if (r + 1 == P) return;
  const Map carry = s.scratch_map("carry", x.own);
  if (r == 0) s.copy(carry, x.own);
  if (r > 0 && r < 6) s.combine(carry.only_state(), prefix, x.own);
  if (r >= 6) s.combine(carry.only_state(), x.own.only_state(), x.own);
  s.send(r + 1, carry.only_state());
}

const Registered disordered{{
    .name = "disordered_scan",
    .kind = Kind::exclusive_scan,
    .summary = "a wrong order on eight ranks and more",
    .build = disordered_scan,
    .claim = [](const Shape& shape,
                const Split& split) { return find_collective("ring_scan").claim(shape, split); },
}};

const Registered wrong{{
    .name = "wrong_scan",
    .kind = Kind::exclusive_scan,
    .summary = "wrong results",
    .build = wrong_scan,
    .claim = [](const Shape& shape,
                const Split& split) { return find_collective("ring_scan").claim(shape, split); },
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
