// SPDX-License-Identifier: Apache-2.0
#include "harness/record/axis_values.hpp"

#include <gtest/gtest.h>

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
