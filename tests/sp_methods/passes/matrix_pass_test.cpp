// SPDX-License-Identifier: Apache-2.0
// What a pass under a rule with matrices keeps of its maps for later steps of the same tokens.
#include "sp_methods/passes/matrix_pass.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;

const LayerShape share{256, 2, 64, 128, 64, GateKind::scalar};

/// A layer under the delta rule, recorded by one rank of four.
Schedule recorded(const std::string& method, Dtype dtype, int rank = 1, Pass pass = Pass::both) {
  const Layer layer{.share = share, .rule = Rule::delta, .pass = pass, .dtype = dtype};
  return build(find_method(method), layer, rank, 4);
}

/// Number of steps that run the kernel called `name`.
std::int64_t count_of(const Schedule& s, const std::string& name) {
  return std::count_if(s.steps().begin(), s.steps().end(), [&](const Step& step) {
    return step.verb == Verb::compute && s.kernels()[step.body].name == name;
  });
}

/// The only step that runs the kernel called `name`.
const Step& step_of(const Schedule& s, const std::string& name) {
  const Step* found = nullptr;
  for (const Step& step : s.steps())
    if (step.verb == Verb::compute && s.kernels()[step.body].name == name) {
      EXPECT_EQ(found, nullptr) << name << " is recorded twice";
      found = &step;
    }
  if (found == nullptr) throw std::logic_error(name + " is not recorded");
  return *found;
}

void expect_same(const Slice& kept, const Slice& read, const char* what) {
  EXPECT_FALSE(kept.empty()) << what;
  EXPECT_EQ(kept.buffer, read.buffer) << what;
  EXPECT_EQ(kept.offset, read.offset) << what;
  EXPECT_EQ(kept.count, read.count) << what;
}

TEST(MatrixPass, WhatAMapKeepsIsReadByTheOutputAndTheGradients) {
  const Schedule s = recorded("zeco", Dtype::bf16);
  const Slice kept = step_of(s, "delta_map").writes.at(2);
  EXPECT_EQ(kept.count, DeltaMap::kept({share, {}, Dtype::bf16}).end);
  const Step &output = step_of(s, "delta_output"), &of_states = step_of(s, "delta_state_gradients"),
             &gradients = step_of(s, "delta_gradients");
  expect_same(kept, output.reads.back(), "output");
  EXPECT_TRUE(output.writes.back().empty()) << "the output keeps what the map has kept";
  expect_same(kept, of_states.reads.back(), "state gradients");
  expect_same(kept, gradients.reads.at(gradients.reads.size() - 2), "gradients");
  expect_same(of_states.writes.back(), gradients.reads.back(), "gradients before segments");
}

TEST(MatrixPass, AnOutputWithoutAMapKeepsForTheGradients) {
  const Schedule s = recorded("local", Dtype::bf16);
  const Step &output = step_of(s, "delta_output"), &gradients = step_of(s, "delta_gradients");
  EXPECT_TRUE(output.reads.back().empty());
  expect_same(output.writes.back(), gradients.reads.at(gradients.reads.size() - 2), "gradients");
  EXPECT_TRUE(gradients.reads.back().empty()) << "no gradient of the state is made";
}

TEST(MatrixPass, ARankWhoseMapNobodyReadsMakesItBeforeTheStateComes) {
  const Schedule s = recorded("zeco", Dtype::bf16, 3);  // the last of the chain
  const Step& map = step_of(s, "delta_map");
  EXPECT_TRUE(map.writes.at(0).empty());
  EXPECT_TRUE(map.writes.at(1).empty());
  const Step& output = step_of(s, "delta_output");
  expect_same(map.writes.at(2), output.reads.back(), "output");
  const Schedule back = recorded("zeco", Dtype::bf16, 0, Pass::backward);  // the last of the way back
  const Step& kept = step_of(back, "delta_map");
  const Step &of_states = step_of(back, "delta_state_gradients"), &all = step_of(back, "delta_gradients");
  EXPECT_TRUE(of_states.writes.at(0).empty()) << "no rank reads the gradient of the state";
  expect_same(kept.writes.at(2), of_states.reads.back(), "state gradients");
  expect_same(kept.writes.at(2), all.reads.at(all.reads.size() - 2), "gradients");
  expect_same(of_states.writes.back(), all.reads.back(), "gradients before segments");
}

TEST(MatrixPass, ARankMakesNoMapInVain) {
  const auto maps = [](const char* method, Dtype dtype) {
    return count_of(recorded(method, dtype, 3, Pass::forward), "delta_map");
  };
  EXPECT_EQ(maps("zeco", Dtype::bf16), 1);
  EXPECT_EQ(maps("zeco", Dtype::f32), 0) << "processors keep nothing";
  EXPECT_EQ(maps("lasp1_as_released", Dtype::bf16), 0) << "no work is done before the state";
  EXPECT_EQ(maps("zeco_corrected", Dtype::bf16), 0) << "outputs are made from zero";
  EXPECT_EQ(maps("local", Dtype::bf16), 0) << "no state comes";
}

TEST(MatrixPass, ProcessorsKeepNothing) {
  for (const char* method : {"zeco", "local"}) {
    const Schedule s = recorded(method, Dtype::f32);
    EXPECT_TRUE(step_of(s, "delta_output").writes.back().empty()) << method;
    EXPECT_TRUE(step_of(s, "delta_gradients").reads.back().empty()) << method;
  }
}

}  // namespace
