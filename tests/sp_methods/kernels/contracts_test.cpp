// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/contracts.hpp"

#include <gtest/gtest.h>

#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;

/// sums += factor * x; offset is left out where its slice is empty.
struct AddScaled {
  static constexpr const char* name = "add_scaled";
  struct Parameters {
    float factor = 1;
  };
  template <class A>
  struct Operands {
    In<A, Tensor> x{};
    In<A, State> offset{};
    InOut<A, State> sums{};
    auto reads() { return std::tie(sums, x, offset); }
    auto writes() { return std::tie(sums); }
  };
  static double flops(const Parameters&) { return 2; }
  static double bytes(const Parameters&) { return 12; }
  static void on_host(const Operands<OnHost>& x, const Parameters& p) {
    x.sums[0] += p.factor * x.x[0] + (x.offset == nullptr ? 0 : x.offset[0]);
  }
};

/// A contract with the same parameters and another name.
struct OtherName : AddScaled {
  static constexpr const char* name = "other_name";
};

using NarrowOperands = AddScaled::Operands<Pointers<std::uint16_t>>;
static_assert(std::is_same_v<decltype(NarrowOperands::x), const std::uint16_t*>);
static_assert(std::is_same_v<decltype(NarrowOperands::sums), float*>);

TEST(Contracts, RecordsTheSlicesInTheOrderOfTheTies) {
  Schedule s(0, 1);
  const Slice x = s.input("x", 1), sums = s.output("sums", 1);
  record<AddScaled>(s, {3}, {.x = x, .sums = sums});
  const Step& step = s.steps().at(0);
  EXPECT_EQ(step.writes, std::vector{sums});
  EXPECT_EQ(step.reads, (std::vector{sums, x, Slice{}}));
  EXPECT_EQ(s.kernels().at(0).name, "add_scaled");
  EXPECT_EQ(s.kernels().at(0).flops, 2);
  EXPECT_EQ(s.kernels().at(0).bytes, 12);
}

TEST(Contracts, TheHostBodyGetsTheMembersAndNullForAnEmptySlice) {
  float x = 5, sums = 1, offset = 100;
  const Kernel kernel = kernel_of<AddScaled>({3});
  kernel.body({.writes = {{&sums, 1}}, .reads = {{&sums, 1}, {&x, 1}, {}}});
  EXPECT_EQ(sums, 16);
  kernel.body({.writes = {{&sums, 1}}, .reads = {{&sums, 1}, {&x, 1}, {&offset, 1}}});
  EXPECT_EQ(sums, 131);
}

TEST(Contracts, ParametersAreThoseOfTheKernelAndOfNoOther) {
  const Kernel kernel = kernel_of<AddScaled>({3});
  EXPECT_EQ(parameters_of<AddScaled>(kernel).factor, 3);
  EXPECT_THROW(parameters_of<OtherName>(kernel), std::logic_error);
  EXPECT_THROW(parameters_of<AddScaled>(Kernel{.name = "add_scaled"}), std::logic_error);
}

TEST(Contracts, TraitsNameTheWidthsThatNoKernelTakes) {
  const KernelTraits traits;
  EXPECT_EQ(traits.unsupported(Dtype::bf16, {64, 128}).reason(), "");
  EXPECT_EQ(traits.unsupported(Dtype::f32, {7}).reason(), "");
  EXPECT_EQ(traits.unsupported(Dtype::bf16, {64, 96}).reason(),
            "kernels of bf16 are for d_k and d_v of 64 and 128, not 96");
}

}  // namespace
