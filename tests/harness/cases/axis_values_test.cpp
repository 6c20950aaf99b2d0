// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/axis_values.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace {

using namespace baton;

TEST(AxisValues, HaveTextsByTheirTypes) {
  EXPECT_EQ((AxisValue{"heads", 4}.text()), "heads:4");
  EXPECT_EQ((AxisValue{"pass", "both"}.text()), "both");
  EXPECT_EQ((AxisValue{"gates", "mixed"}.text()), "gates:mixed") << "the schema says that it is named";
  EXPECT_EQ((AxisValue{"latent", true}.text()), "latent");
  EXPECT_EQ((AxisValue{"layers", 6, in_all, "layers:4+2"}.text()), "layers:4+2");
}

TEST(AxisValues, HaveNoTextWhereAbsenceSaysAsMuch) {
  for (const AxisValue& one :
       {AxisValue{"map", "diagonal"}, AxisValue{"ranks_per_gpu", 1}, AxisValue{"cycle", 0},
        AxisValue{"latent", false}, AxisValue{"beside", ""}, AxisValue{"peak_flops", std::monostate()}})
    EXPECT_EQ(one.text(), "") << one.key.field().key;
}

TEST(AxisValues, ThatAreRealHaveTheShortestTextThatReadsBack) {
  const auto text = [](double value) { return AxisValue{"peak_flops", value}.text(); };
  EXPECT_EQ(text(0.5), "peak_flops:0.5");
  EXPECT_EQ(text(3), "peak_flops:3");
  EXPECT_EQ(text(0.1 + 0.2), "peak_flops:0.30000000000000004");
  EXPECT_EQ(text(1e12), "peak_flops:1e+12");
}

TEST(AxisValues, OfAnyTypeNeverMergeInNamesGroupsAndContests) {
  const std::vector<std::pair<AxisValue, AxisValue>> pairs{
      {{"heads", 3}, {"heads", 4}},
      {{"latent", false}, {"latent", true}},
      {{"peak_flops", 0.5}, {"peak_flops", 2.0}},
      {{"peak_flops", 1.0}, {"peak_flops", std::nextafter(1.0, 2.0)}},
      {{"peak_flops", std::monostate()}, {"peak_flops", 0.0}},
      {{"gates", "mixed"}, {"gates", "weak"}},
      {{"beside", ""}, {"beside", "head"}}};
  for (const auto& [one, other] : pairs)
    for (const Part whole : {in_name, in_group, in_contest})
      EXPECT_NE(AxisValues({{"ranks", 4}, one}).folded(whole),
                AxisValues({{"ranks", 4}, other}).folded(whole))
          << one.key.field().key;
}

TEST(AxisValues, AreFoldedInTheirOrder) {
  const AxisValues axes{{"name", "zeco", in_name}, {"executor", "mpi", in_name | in_group}, {"ranks", 4},
                        {"map", "diagonal"},       {"attention", "linear", in_contest},     {"d_k", 8}};
  EXPECT_EQ(axes.folded(in_name), "zeco/mpi/ranks:4/d_k:8");
  EXPECT_EQ(axes.folded(in_group), "mpi/ranks:4/d_k:8");
  EXPECT_EQ(axes.folded(in_contest), "ranks:4/linear/d_k:8");
}

TEST(AxisValues, ThatAreNotThereAreEmpty) {
  const AxisValues axes{{"ranks", 4}};
  EXPECT_EQ(axes.whole("ranks"), 4);
  EXPECT_EQ(axes.whole("heads"), 0);
  EXPECT_EQ(axes.text("pass"), "");
  EXPECT_FALSE(axes.has("pass"));
}

}  // namespace
