// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/proof.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cases/collective_workload.hpp"
#include "harness/layers/workload.hpp"
#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StrEq;

/// Folds the maps before a rank three by three. It takes the threes from the last one to the first,
/// which is wrong from the seventh rank on.
void threes_backwards(Schedule& s, const Operands& x) {
  const std::int64_t rows = x.own.rows(), n = rows + x.own.state.count;
  const Slice maps = s.scratch("maps", s.ranks() * n);
  embed(s, "direct_all_gather", {x.own, maps, 1});
  const auto map = [&](int j) -> Map {
    const Slice packed = maps.part(j * n, n);
    return {packed.part(0, rows), packed.part(rows, n - rows), x.own.row};
  };
  std::vector<int> order;
  for (int three = s.rank() / 3; three-- > 0;)
    for (int j = 0; j < 3; ++j) order.push_back(3 * three + j);
  for (int j = s.rank() / 3 * 3; j < s.rank(); ++j) order.push_back(j);
  const Map prefix{{}, x.into, x.own.row};
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0) s.copy(prefix, map(order[i]).only_state());
    if (i > 0) s.combine(prefix, prefix, map(order[i]));
  }
}

TEST(ProveScan, AWrongOrderIsFoundAtTheFirstNumberOfRanksThatHasIt) {
  const Collective wrong{.name = "tree", .build = threes_backwards};
  try {
    prove_scan(wrong);
    FAIL() << "a wrong order was not noticed";
  } catch (const ScheduleError& error) {
    EXPECT_THAT(error.what(), StrEq("tree, 7 ranks: rank 6 has 3 4 5 0 1 2, must have 0 1 2 3 4 5"));
  }
}

TEST(ProveScan, EveryRegisteredScanIsRightOrHasNoWords) {
  int proved = 0;
  for (const Collective* collective : collectives()) {
    if (collective->kind != Kind::exclusive_scan) continue;
    // On nodes, in both directions and in blocks a scan has 24 settings.
    const bool looks_at_nodes = collective->name.starts_with("hierarchical");
    const Refusal refusal = prove_scan(*collective, looks_at_nodes ? 16 : most_proved_ranks);
    proved += refusal ? 0 : 1;
  }
  EXPECT_GE(proved, 9);
}

TEST(ProveScan, EveryRegisteredScanIsRightWithMapsOfEveryKind) {
  for (const MapKind map : {MapKind::scalar, MapKind::affine})
    for (const Collective* collective : collectives())
      if (collective->kind == Kind::exclusive_scan) {
        EXPECT_NO_THROW(prove_scan(*collective, 8, map));
      }
}

TEST(ProveScan, AScanThatForgetsHowMatricesActIsNamed) {
  const auto forgets = [](Schedule& s, const Operands& x) {
    Operands forgotten = x;
    forgotten.own.form.transposed = false;
    find_collective("ring_scan").build(s, forgotten);
  };
  const Collective wrong{.name = "chain", .build = forgets};
  try {
    prove_scan(wrong, 8, MapKind::affine);
    FAIL() << "matrices that act the wrong way round were not noticed";
  } catch (const ScheduleError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("chain, 3 ranks, affine maps, reverse: rank 0 has maps of another form"));
  }
}

TEST(ProveScan, ANativeHasNoWords) {
  EXPECT_THAT(prove_scan(find_collective("all_scan_by_hand")).reason(), HasSubstr("native"));
}

TEST(ScansOf, NamesTheScansThatALayerEmbeds) {
  const Layer layer{.share = {64, 2, 8, 8, 8, GateKind::vector}, .pass = Pass::both};
  const auto scans = [&](const char* method, const char* scan) {
    Layer with_scan = layer;
    with_scan.scan = scan;
    return scans_of(*operator_workload(find_method(method), with_scan, {GateDraw::layer}));
  };
  EXPECT_THAT(scans("zeco", ""), ElementsAre("all_scan"));
  EXPECT_THAT(scans("zeco", "two_shot"), ElementsAre("two_shot"));
  EXPECT_THAT(scans("ring_attention", ""), ElementsAre("recursive_doubling"));
  EXPECT_THAT(scans("local", ""), IsEmpty());
  EXPECT_THAT(scans_of(*collective_workload(find_collective("ring_scan"), {}, Direction::forward)),
              ElementsAre("all_scan", "ring_scan"));
}

TEST(Prove, AWrongCaseIsNamedAndTheOthersAreNot) {
  const Collective lying{.name = "lying",
                         .kind = Kind::all_gather,
                         .build = find_collective("ring_all_gather").build,
                         .claim = [](const Shape&, const Split&) {
                           return Cost{1, 1};
                         }};
  const Shape shape{1, 4, 2, 1};
  const auto case_of = [&](const Collective& collective) {
    return Case{collective_workload(collective, shape, Direction::forward), &find_backend("local"), 4};
  };
  const auto errors = prove(std::vector{case_of(find_collective("all_scan")), case_of(lying)});
  EXPECT_THAT(errors, ElementsAre(IsEmpty(), HasSubstr("lying/local/ranks:4")));
  EXPECT_THAT(errors[1], HasSubstr("claims 1 bytes and 1 hops"));
}

}  // namespace
