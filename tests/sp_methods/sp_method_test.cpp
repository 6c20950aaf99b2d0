// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/sp_method.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "collectives/schedule/check.hpp"
#include "collectives/schedule/errors.hpp"

namespace {

using namespace baton;

Layer layer(Pass pass, Mode mode = Mode::overlapped) {
  return {.share = {8, 2, 4, 6, 4, GateKind::vector}, .pass = pass, .mode = mode};
}

std::int64_t state_bytes() { return 2 * 4 * 6 * 4; }

TEST(SpMethods, ZecoSendsOneStateARankAndPass) {
  for (Pass pass : {Pass::forward, Pass::backward, Pass::both}) {
    const auto counts = check("zeco", build_all(find_method("zeco"), layer(pass), 4));
    EXPECT_EQ(counts.busiest_sent_bytes(), (pass == Pass::both ? 2 : 1) * state_bytes());
    EXPECT_EQ(counts.hops, (pass == Pass::both ? 2 : 1) * 3);
  }
}

TEST(SpMethods, NothingTravelsWithoutAnExchange) {
  EXPECT_EQ(check("local", build_all(find_method("local"), layer(Pass::both), 4)).busiest_sent_bytes(), 0);
  const auto alone = build_all(find_method("lasp2"), layer(Pass::both, Mode::compute_only), 4);
  EXPECT_EQ(check("lasp2", alone).busiest_sent_bytes(), 0);
}

/// True if step `later` waits, through any chain, for a step that `is_one`.
template <typename IsOne>
bool waits_for(const Schedule& s, int later, IsOne is_one) {
  for (int before : s.steps()[later].waits_for)
    if (is_one(s.steps()[before]) || waits_for(s, before, is_one)) return true;
  return false;
}

/// The number of the step that runs the kernel called `name`, after `before` others that do.
int step_of(const Schedule& s, const std::string& name, int before = 0) {
  for (int i = 0; i < static_cast<int>(s.steps().size()); ++i) {
    const bool is_one = s.steps()[i].verb == Verb::compute && s.kernels()[s.steps()[i].body].name == name;
    if (is_one && before-- == 0) return i;
  }
  return -1;
}

TEST(SpMethods, LocalWorkWaitsForTheExchangeOnlyWhereItIsExposed) {
  const auto is_message = [](const Step& step) { return step.is_message(); };
  const auto overlapped = build(find_method("zeco"), layer(Pass::forward), 1, 3);
  const auto exposed = build(find_method("zeco"), layer(Pass::forward, Mode::exposed), 1, 3);
  const auto released = build(find_method("lasp2_as_released"), layer(Pass::forward), 1, 3);
  EXPECT_FALSE(waits_for(overlapped, step_of(overlapped, "intra_output"), is_message));
  EXPECT_TRUE(waits_for(exposed, step_of(exposed, "intra_output"), is_message));
  EXPECT_TRUE(waits_for(released, step_of(released, "intra_output"), is_message));
}

TEST(SpMethods, TheSecondHalfOfZigzagTokensWaitsForTheFirstExchangeOnlyWhereItIsExposed) {
  const auto is_message = [](const Step& step) { return step.is_message(); };
  for (const Mode mode : {Mode::overlapped, Mode::exposed}) {
    const auto schedule = build(find_method("zeco_zigzag"), layer(Pass::forward, mode), 1, 3);
    const int second = step_of(schedule, "chunk_states", 1);
    ASSERT_GE(second, 0);
    EXPECT_EQ(waits_for(schedule, second, is_message), mode == Mode::exposed);
  }
}

TEST(SpMethods, Lasp1ComputesBeforeItSendsAndItsReleaseReceivesBeforeItComputes) {
  const auto is_compute = [](const Step& step) { return step.verb == Verb::compute; };
  const auto is_message = [](const Step& step) { return step.is_message(); };
  const auto paper = build(find_method("lasp1"), layer(Pass::forward), 1, 3);
  const auto released = build(find_method("lasp1_as_released"), layer(Pass::forward), 1, 3);
  const auto first_message = std::find_if(paper.steps().begin(), paper.steps().end(), is_message);
  EXPECT_TRUE(waits_for(paper, static_cast<int>(first_message - paper.steps().begin()), is_compute));
  EXPECT_TRUE(waits_for(released, step_of(released, "chunk_states"), is_message));
}

TEST(SpMethods, AnEmbeddedCollectiveSeesTheNodes) {
  Layer hierarchical = layer(Pass::both);
  hierarchical.scan = "hierarchical_scan_chain";
  const auto hops = [&](int ranks_per_node) {
    return check("zeco", build_all(find_method("zeco"), hierarchical, 4, ranks_per_node)).hops;
  };
  EXPECT_EQ(hops(0), 2 * 2);        // two_shot, there and back
  EXPECT_EQ(hops(2), 2 * (1 + 2));  // and one hop across
  EXPECT_EQ(hops(1), 2 * 3);        // a chain
}

TEST(SpMethods, ASecondMethodOfANameIsRefused) {
  const SpMethod second{.name = "zeco", .claim = find_method("zeco").claim};
  EXPECT_EXIT(RegisteredMethod{second}, testing::ExitedWithCode(2), "method 'zeco' is registered twice");
}

TEST(SpMethods, AMethodWithoutAClaimIsRefused) {
  EXPECT_EXIT(RegisteredMethod({.name = "free"}), testing::ExitedWithCode(2), "method 'free' has no .claim");
}

TEST(SpMethods, LinearAttentionRefusesFewerHeadsOfKeys) {
  Layer grouped = layer(Pass::both);
  grouped.share.kv_heads = 1;
  for (const SpMethod* method : sp_methods())
    if (method->attention == Attention::linear) {
      EXPECT_EQ(method->unsupported(grouped, 2).reason(),
                "linear attention has as many heads of keys as of queries, not 1 for 2")
          << method->name;
    }
  grouped.share.gate = GateKind::none;
  EXPECT_EQ(find_method("ring_attention_softmax").unsupported(grouped, 2).reason(), "");
}

TEST(SpMethods, OnlyTextsOfARuleTakeIt) {
  Layer delta = layer(Pass::both);
  for (const Rule rule : {Rule::low_rank, Rule::delta}) {
    delta.rule = rule;
    for (const char* method : {"chunkwise_local", "ring_attention"})
      EXPECT_EQ(find_method(method).unsupported(delta, 2).reason(),
                std::string("its text has the decay rule, not the ") + to_string(rule) + " rule")
          << method;
    for (const char* method : {"zeco", "zeco_corrected", "lasp1", "lasp2", "linear_doubling",
                               "linear_two_shot", "ulysses", "local", "zeco_zigzag"})
      EXPECT_EQ(find_method(method).unsupported(delta, 2).reason(), "") << method;
  }
  EXPECT_EQ(find_method("zeco_corrected").unsupported(layer(Pass::both), 2).reason(),
            "its text has the delta rule, not the decay rule");
  delta.scan = "mpi_exscan";
  for (const char* method : {"zeco", "zeco_zigzag"})
    EXPECT_EQ(find_method(method).unsupported(delta, 2).reason(),
              "the native mpi_exscan takes diagonal maps, not those of a delta rule");
}

/// How many elements the delta_map steps of a rank write: of matrices, and of states.
std::array<std::int64_t, 2> made(const char* method, Pass pass, int rank) {
  Layer delta{.share = {8, 2, 3, 5, 4, GateKind::vector}, .rule = Rule::delta, .pass = pass};
  const Schedule s = build(find_method(method), delta, rank, 4);
  std::array<std::int64_t, 2> all{};
  for (const Step& step : s.steps()) {
    if (step.verb != Verb::compute || s.kernels()[step.body].name != "delta_map") continue;
    for (int i : {0, 1}) all[i] += step.writes[i].count;
  }
  return all;
}

TEST(SpMethods, RanksAtTheEndsOfAChainMakeWhatItReads) {
  using Made = std::array<std::int64_t, 2>;
  constexpr std::int64_t matrix = 2 * 3 * 3, state = 2 * 3 * 5;
  for (const char* method : {"zeco", "lasp1", "lasp1_as_released", "linear_doubling", "linear_two_shot"})
    for (const Pass pass : {Pass::forward, Pass::both}) {
      EXPECT_EQ(made(method, pass, 0), (Made{0, state})) << method;
      EXPECT_EQ(made(method, pass, 1), (Made{matrix, state})) << method;
      EXPECT_EQ(made(method, pass, 3), (Made{0, 0})) << method;
    }
  EXPECT_EQ(made("lasp2", Pass::forward, 3), (Made{matrix, state})) << "the gather reads it";
  EXPECT_EQ(made("local", Pass::both, 1), (Made{0, 0}));
}

/// One head of keys of 512 + 64 channels for 16 of queries: DeepSeek-V2's sizes.
Layer latent_layer(Pass pass) {
  return {.share = {4, 16, 512 + 64, 512, 4, GateKind::none, 1, true}, .pass = pass};
}

TEST(SpMethods, LatentKeysAreExchangedWithoutValues) {
  constexpr std::int64_t tokens = 4, latent = 512 + 64, queries = 16 * (latent + 512);
  const auto sent = [](const char* method, Pass pass, int ranks) {
    return check(method, build_all(find_method(method), latent_layer(pass), ranks)).busiest_sent_bytes() / 4;
  };
  for (const int ranks : {1, 2, 4, 8, 16}) {
    for (const char* method : {"all_gather_kv", "all_gather_kv_zigzag", "all_gather_kv_direct"}) {
      EXPECT_EQ(sent(method, Pass::forward, ranks), (ranks - 1) * tokens * latent);
      EXPECT_EQ(sent(method, Pass::both, ranks), 2 * (ranks - 1) * tokens * latent);
    }
    EXPECT_EQ(sent("ulysses_softmax", Pass::forward, ranks),
              tokens * queries * (ranks - 1) / ranks + (ranks - 1) * tokens * latent);
  }
  const Schedule s = build(find_method("all_gather_kv"), latent_layer(Pass::both), 0, 2);
  EXPECT_EQ(s.buffer("k").count, tokens * latent);
  EXPECT_EQ(s.buffer("dk").count, tokens * latent);
  for (const char* name : {"v", "dv"}) EXPECT_EQ(s.buffer(name).count, 0) << name;
}

TEST(SpMethods, LinearAttentionRefusesLatentKeys) {
  for (const SpMethod* method : sp_methods())
    if (method->attention == Attention::linear) {
      EXPECT_EQ(method->unsupported(latent_layer(Pass::both), 2).reason(),
                "linear attention has values of its own, not those of latent keys")
          << method->name;
    } else if (method->unsupported) {
      Layer taken = latent_layer(Pass::both);
      if (method->needs_window) taken.mask.window = 4;
      EXPECT_EQ(method->unsupported(taken, 2).reason(), "") << method->name;
    }
}

TEST(SpMethods, RefusalsSayWhy) {
  Layer odd = layer(Pass::forward);
  odd.share.tokens = 7;
  odd.share.gate = GateKind::none;
  EXPECT_NE(find_method("ring_attention_zigzag").unsupported(odd, 2).reason(), "");
  Layer groups = layer(Pass::forward);
  groups.groups = 3;
  EXPECT_EQ(find_method("zeco").unsupported(groups, 2).reason(), "2 heads cannot be cut into 3 groups");
  EXPECT_THROW(find_method("no_such_method"), UsageError);
}

TEST(SavedForBackward, IsFoundByTheBackwardRecordingOfTheSameSchedule) {
  Schedule s(0, 1);
  Layer layer;
  layer.saved = std::make_shared<std::map<std::string, Slice>>();
  const Slice kept = saved_for_backward(s, layer, "prefix", 6);
  layer.pass = Pass::backward;
  EXPECT_EQ(saved_for_backward(s, layer, "prefix", 6), kept);
  EXPECT_EQ(s.buffers()[kept.buffer].role, Role::scratch);
  EXPECT_THROW(saved_for_backward(s, layer, "lse", 6), std::out_of_range);
  layer.saved = nullptr;
  EXPECT_EQ(s.buffers()[saved_for_backward(s, layer, "prefix", 6).buffer].role, Role::input);
}

}  // namespace
