// SPDX-License-Identifier: Apache-2.0
// Fewer heads of q and k than of v: a layer with copies of them is the same layer, which methods
// cost what, and which refuse it. That every method computes them is in every_method_test.
#include "sp_methods/passes/grouped_heads.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "collectives/schedule/check.hpp"

namespace {

using namespace baton;
using testing::ElementsAre;

using Values = std::map<std::string, std::vector<float>>;

/// The outputs of a layer on one rank.
Values run(const std::string& method, const Layer& layer, const Values& inputs) {
  const std::vector<Schedule> schedules = build_all(find_method(method), layer, 1);
  const auto executor = find_executor("local").make(1);
  executor->prepare(schedules);
  Values outputs;
  for (const Buffer& buffer : schedules[0].buffers())
    if (buffer.role == Role::input && buffer.count > 0)
      executor->write(0, schedules[0].buffer(buffer.name), inputs.at(buffer.name));
  executor->run();
  for (const Buffer& buffer : schedules[0].buffers())
    if (buffer.role == Role::output) {
      outputs[buffer.name].resize(buffer.count);
      executor->read(outputs[buffer.name], 0, schedules[0].buffer(buffer.name));
    }
  return outputs;
}

/// A layer without gates of one channel in q, k and v.
Layer layer_of(std::int64_t tokens, std::int64_t heads, std::int64_t qk_heads) {
  Layer layer{.share = {tokens, heads, 1, 1, 4, GateKind::none}, .pass = Pass::both};
  layer.share.qk_heads = qk_heads;
  return layer;
}

/// Two tokens of two heads: o_1 = q_1 k_1 v_1, o_2 = q_2 (k_1 v_1 + k_2 v_2), with q = 1 and 2 and
/// k = 3 and 5 in both heads.
TEST(GroupedHeads, TwoHeadsOfValuesReadOneOfQAndK) {
  for (const char* method : {"local", "zeco", "ulysses", "chunkwise_local"}) {
    const Values got = run(method, layer_of(2, 2, 1),
                           {{"q", {1, 2}}, {"k", {3, 5}}, {"v", {1, 10, 2, 20}}, {"d_o", {1, 1, 1, 1}}});
    EXPECT_THAT(got.at("o"), ElementsAre(3, 30, 26, 260)) << method;
    EXPECT_THAT(got.at("dq"), ElementsAre(3 + 30, 13 + 130)) << method;
    EXPECT_THAT(got.at("dk"), ElementsAre(3 * 1 + 3 * 10, 2 * 2 + 2 * 20)) << method;
  }
}

/// Heads 0 and 1 of each sequence share the first head of q and k, heads 2 and 3 the second one.
TEST(GroupedHeads, AreRepeatedEachWithinTheirSequence) {
  Layer few = layer_of(1, 8, 4);
  few.share.batch = 2;
  few.pass = Pass::forward;
  const Values got =
      run("local", few, {{"q", {1, 10, 100, 1000}}, {"k", {1, 1, 1, 1}}, {"v", {1, 2, 3, 4, 5, 6, 7, 8}}});
  EXPECT_THAT(got.at("o"), ElementsAre(1, 2, 30, 40, 500, 600, 7000, 8000));
}

TEST(GroupedHeads, AreRefusedByName) {
  Layer layer{.share = {64, 8, 4, 4, 4}};
  layer.share.qk_heads = 2;
  const auto reason = [&](const char* method, int ranks) {
    return find_method(method).unsupported(layer, ranks).reason();
  };
  EXPECT_EQ(reason("ring_attention", 2), "it has as many heads of q and k as of values, not 2 for 8");
  EXPECT_EQ(reason("ulysses", 4), "2 heads of q and k cannot be shared by 4 ranks");
  for (const char* method : {"zeco", "zeco_zigzag", "local", "chunkwise_local", "ulysses"})
    EXPECT_EQ(reason(method, 2), "") << method;
  layer.share.gate = GateKind::none;
  EXPECT_EQ(reason("ring_attention_softmax", 2),
            "softmax attention has as many heads of q as of its output, not 2 for 8");
}

}  // namespace
