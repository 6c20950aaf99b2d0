// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "collectives/schedule/errors.hpp"
#include "harness/cases/collective_workload.hpp"
#include "harness/cases/sweep.hpp"
#include "harness/layers/workload.hpp"
#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;

Axes axes_of(std::vector<std::string> names) {
  Axes axes{.executors = {"local"}, .points = {{.ranks = 2}, {.ranks = 3}}, .blocks = {1, 4}};
  axes.comparison_groups.emplace_back();
  for (const auto& name : names)
    axes.comparison_groups[0].push_back(
        collective_workload(find_collective(name), Shape{}, Direction::forward));
  return axes;
}

TEST(Cases, BlocksVaryOnlyWhereTheyAreCut) {
  EXPECT_EQ(cases(axes_of({"all_scan"})).size(), 2u * 2);
  EXPECT_EQ(cases(axes_of({"ring_scan"})).size(), 2u);
}

TEST(Cases, CyclesRepeatTheSweepUnderOtherNames) {
  Axes axes = axes_of({"ring_scan"});
  axes.cycles = 3;
  const auto all = cases(axes);
  ASSERT_EQ(all.size(), 6u);
  EXPECT_NE(all[0].name(), all[2].name());
  EXPECT_NE(all[0].comparison_group(), all[2].comparison_group());
}

TEST(Cases, NodesStandInTheNameOnlyWhereTheyAreNamed) {
  Axes axes = axes_of({"ring_scan"});
  EXPECT_EQ(cases(axes)[0].name().find("ranks_per_node"), std::string::npos);
  axes.points = {{.ranks = 2, .ranks_per_node = 2}};
  const Case bench_case = cases(axes)[0];
  EXPECT_NE(bench_case.comparison_group().find("ranks:2/ranks_per_node:2/"), std::string::npos)
      << bench_case.comparison_group();
  EXPECT_EQ(bench_case.split(5).blocks, 5);
  EXPECT_EQ(bench_case.split(5).ranks_per_node, 2);
}

TEST(Cases, RanksThatShareAGpuAreAContestOfTheirOwn) {
  Case bench_case = cases(axes_of({"all_scan"}))[0];
  const std::string apart = bench_case.comparison_group();
  bench_case.ranks_per_gpu = 2;
  EXPECT_EQ(apart.find("ranks_per_gpu"), std::string::npos);
  EXPECT_NE(bench_case.comparison_group().find("/ranks_per_gpu:2/"), std::string::npos);
}

TEST(Cases, ThreadsOfARankAreAnAxisOfLayersThatCanHaveTwo) {
  Layer layer;
  layer.share = {.tokens = 8, .heads = 1, .d_k = 4, .d_v = 4, .chunk = 4};
  const auto contest = [&](const char* executor, int threads) {
    Axes axes = axes_of({"ring_scan"});
    axes.executors = {executor};
    axes.points = {{.ranks = 2, .threads_per_rank = threads}};
    axes.comparison_groups = {{operator_workload(find_method("zeco"), layer, {GateDraw::layer})}};
    const Case one = cases(axes)[0];
    return std::pair(one.threads_per_rank, one.contest().find("/threads_per_rank:1/") != std::string::npos);
  };
  EXPECT_EQ(contest("tcp", 1), std::pair(1, true));
  EXPECT_EQ(contest("tcp", 2), std::pair(2, false)) << "as without the key";
  EXPECT_EQ(contest("local", 2), std::pair(1, false)) << "which has one and no such axis";
  Axes exchanges = axes_of({"ring_scan"});
  exchanges.executors = {"tcp"};
  exchanges.points = {{.ranks = 2, .threads_per_rank = 2}};
  EXPECT_EQ(cases(exchanges)[0].threads_per_rank, 1);
}

TEST(Cases, TheBaselineLeadsEveryContest) {
  Axes axes = axes_of({"all_scan", "two_shot", "ring_scan"});
  axes.baseline = "ring_scan";
  std::set<std::string> begun;
  for (const Case& c : cases(axes)) {
    const bool leads = begun.insert(c.comparison_group()).second;
    EXPECT_EQ(c.workload->name() == "ring_scan", leads);
  }
}

TEST(Cases, MapsThatAreNotDiagonalAreNamedAndNativesRefuseThem) {
  const Shape diagonal{}, affine{.map = MapKind::affine};
  const auto workload = [](const char* name, const Shape& shape) {
    return collective_workload(find_collective(name), shape, Direction::forward);
  };
  EXPECT_EQ(workload("all_scan", affine)->shape_name(),
            workload("all_scan", diagonal)->shape_name() + "/map:affine");
  EXPECT_FALSE(workload("all_scan", affine)->unsupported(4));
  EXPECT_FALSE(workload("mpi_exscan", diagonal)->unsupported(4));
  EXPECT_EQ(workload("mpi_exscan", affine)->unsupported(4).reason(), "its native takes diagonal maps alone");
  EXPECT_EQ(workload("mpi_exscan", affine)->native(), "mpi_exscan");
  Collective takes_all = find_collective("mpi_exscan");
  takes_all.native_takes_all_maps = true;
  EXPECT_FALSE(collective_workload(takes_all, affine, Direction::forward)->unsupported(4));
}

TEST(Cases, ANativeOfAnotherBackendIsLeftOut) {
  Axes axes = axes_of({"all_scan", "mpi_exscan"});
  EXPECT_EQ(axes.comparison_groups[0][0]->native(), "");
  EXPECT_EQ(axes.comparison_groups[0][1]->native(), "mpi_exscan");
  for (const Case& c : cases(axes)) EXPECT_EQ(c.workload->name(), "all_scan");
  axes.executors = {"mpi", "simulator"};
  std::set<std::string> executors;
  for (const Case& c : cases(axes))
    if (c.workload->name() == "mpi_exscan") executors.insert(c.backend->name);
  EXPECT_EQ(executors, std::set<std::string>{"mpi"});
}

TEST(Cases, IfOnlySuchNativesAreAskedForTheErrorSaysSo) {
  try {
    cases(axes_of({"mpi_exscan"}));
    FAIL() << "cases";
  } catch (const UsageError& error) {
    EXPECT_STREQ(
        error.what(),
        "mpi_exscan calls the native mpi_exscan, which executor local does not run, and nothing else is "
        "to run");
  }
}

TEST(Cases, AContestIsOverBeforeAnotherBegins) {
  Axes axes = axes_of({"all_scan", "ring_scan", "ring_all_gather"});
  axes.executors = {"local", "mpi", "local_bf16"};
  std::set<std::string> begun;
  std::string now;
  for (const Case& c : cases(axes)) {
    if (c.contest() != now) {
      EXPECT_TRUE(begun.insert(c.contest()).second) << c.name();
    }
    now = c.contest();
  }
  EXPECT_EQ(begun.size(), 3u * 2 * 2) << "executors, ranks and kinds";
}

TEST(Cases, ContestsAreThoseOfTheFamilyOnEveryExecutor) {
  std::map<std::string, std::string> contests;  // by family
  for (const ExecutorEntry* entry : executors()) {
    Axes axes = axes_of({"all_scan"});
    axes.executors = {entry->name};
    axes.cycles = 2;
    const std::string family = find_backend(entry->name).family;
    const std::string expected =
        entry->tensors == Dtype::bf16 && entry->wire == Dtype::f32 ? "GPUs" : entry->name;
    EXPECT_EQ(family, expected);
    const auto all = cases(axes);
    EXPECT_TRUE(all.front().contest().starts_with(family + "/")) << all.front().contest();
    EXPECT_EQ(contests.emplace(family, all.front().contest()).first->second, all.front().contest());
    EXPECT_EQ(all.front().contest(), all[all.size() / 2].contest()) << "another cycle is no other contest";
    EXPECT_NE(all.front().contest(), all[all.size() / 2 - 1].contest()) << "other ranks are";
  }
  std::set<std::string> distinct;
  for (const auto& [family, contest] : contests) EXPECT_TRUE(distinct.insert(contest).second) << family;
}

TEST(Cases, AContestOfLayersIsOverBeforeAnotherBegins) {
  Axes axes{.executors = {"local"}, .points = {{.ranks = 2}}, .blocks = {1}};
  axes.comparison_groups.emplace_back();
  Layer layer;
  layer.share = {64, 2, 4, 6, 8, GateKind::none};
  for (const SpMethod* method : sp_methods())
    axes.comparison_groups[0].push_back(operator_workload(*method, layer, {GateDraw::layer}));
  for (const char* baseline : {"local", "ring_attention_softmax", ""}) {
    axes.baseline = baseline;
    const auto all = cases(axes);
    int changes = 0;
    for (std::size_t i = 1; i < all.size(); ++i) changes += all[i].contest() != all[i - 1].contest();
    EXPECT_EQ(changes, 1) << "from one kind of attention to the other, baseline " << baseline;
  }
}

TEST(Cases, HeadsOfKeysStandInTheNameOnlyWhereTheyAreFewer) {
  const auto shape_name = [](std::int64_t kv_heads) {
    const Layer layer{.share = {64, 4, 4, 6, 8, GateKind::none, kv_heads}};
    return operator_workload(find_method("ring_attention_softmax"), layer, {GateDraw::layer})->shape_name();
  };
  EXPECT_NE(shape_name(2).find("/heads:4/kv_heads:2/d_k:4/"), std::string::npos) << shape_name(2);
  EXPECT_NE(shape_name(0).find("/heads:4/d_k:4/"), std::string::npos) << shape_name(0);
  EXPECT_EQ(shape_name(4), shape_name(0));
}

TEST(Cases, LatentKeysStandInTheNameAndStayLatentWhereTheLayerIsReduced) {
  const Layer layer{.share = {64, 4, 96, 64, 8, GateKind::none, 1, true}};
  const auto whole = operator_workload(find_method("all_gather_kv"), layer, {GateDraw::layer});
  EXPECT_NE(whole->shape_name().find("/heads:4/kv_heads:1/latent/d_k:96/"), std::string::npos)
      << whole->shape_name();
  const AxisValues small = whole->reduced(4)->axes();
  EXPECT_TRUE(small.truth("latent"));
  EXPECT_EQ(small.whole("kv_heads"), 1);
  EXPECT_LT(small.whole("d_v"), small.whole("d_k"));
}

TEST(Cases, PackedDocumentsStandInTheNameAndAreShorterWhereTheLayerIsReduced) {
  const Layer layer{.share = {200, 4, 96, 64, 8, GateKind::vector}};
  const auto whole = operator_workload(find_method("zeco"), layer,
                                       {.gates = GateDraw::layer, .packing = {.mean = 50, .seed = 3}});
  EXPECT_NE(whole->shape_name().find("/tokens:200/packed:50/heads:4/"), std::string::npos)
      << whole->shape_name();
  EXPECT_EQ(whole->reduced(4)->axes().whole("packed"), 5) << "20 tokens in place of 200";
  EXPECT_EQ(operator_workload(find_method("zeco"), layer, {GateDraw::layer})->shape_name().find("packed"),
            std::string::npos);
}

TEST(Cases, AReducedLayerSharesKeysAsTheWholeDoes) {
  const Layer layer{.share = {64, 32, 64, 64, 8, GateKind::none, 8}};
  const auto small =
      operator_workload(find_method("ring_attention_softmax"), layer, {GateDraw::layer})->reduced(4)->axes();
  EXPECT_EQ(small.whole("heads"), 8);
  EXPECT_EQ(small.whole("kv_heads"), 2);
}

TEST(Cases, NamesAreDistinctAndContestsAreOfOneKind) {
  std::set<std::string> names;
  for (const Case& c : cases(axes_of({"all_scan", "ring_scan", "ring_all_gather"})))
    EXPECT_TRUE(names.insert(c.name()).second) << c.name();
  const auto all = cases(axes_of({"ring_scan", "ring_all_gather"}));
  EXPECT_NE(all[0].comparison_group(), all[1].comparison_group());
}

TEST(Case, WhatDoesNotFitIsRefusedWithItsAmount) {
  constexpr double tebibyte = 1099511627776.0;
  EXPECT_FALSE(lacks_memory(1 << 20));
  EXPECT_TRUE(
      lacks_memory(6e5 * tebibyte).reason().starts_with("needs 1024000000.0 GiB of memory on this host, "));
  EXPECT_TRUE(lacks_memory(6e5 * tebibyte, 4).reason().ends_with(")"));
  EXPECT_FALSE(lacks_memory(6e5 * tebibyte, 1, 2e6 * tebibyte)) << "what the last case holds makes room";
}

TEST(Workload, BytesOfItsResultFollowTheKind) {
  const Shape shape{.heads = 2, .d_k = 4, .d_v = 8, .tokens = 16};
  const auto scan = collective_workload(find_collective("all_scan"), shape, Direction::forward);
  const auto gather = collective_workload(find_collective("ring_all_gather"), shape, Direction::forward);
  const auto exchange = collective_workload(find_collective("ring_exchange"), shape, Direction::forward);
  EXPECT_EQ(scan->payload_bytes(4), 4 * 2 * 4 * 8);
  EXPECT_EQ(scan->port_bytes(4), scan->payload_bytes(4));
  EXPECT_EQ(scan->port_bytes(1), 0);
  EXPECT_EQ(gather->payload_bytes(4), 4 * 4 * 2 * 4 * (8 + 1));
  EXPECT_EQ(gather->port_bytes(4), gather->payload_bytes(4) * 3 / 4);
  const auto sums = collective_workload(find_collective("ring_reduce_scatter"), shape, Direction::forward);
  EXPECT_EQ(sums->payload_bytes(4), gather->payload_bytes(4));
  EXPECT_EQ(sums->port_bytes(4), gather->port_bytes(4));
  EXPECT_EQ(exchange->payload_bytes(4), 3 * 4 * 16 * 2 * (4 + 8));
  const auto all_to_all =
      collective_workload(find_collective("direct_all_to_all"), shape, Direction::forward);
  EXPECT_EQ(all_to_all->payload_bytes(4), 4 * 16 * 2 * (4 + 8));
  EXPECT_EQ(all_to_all->port_bytes(4), 4 * 16 * 2 * (4 + 8) * 3 / 4);
  EXPECT_EQ(all_to_all->payload_bytes(5), 4 * 5 * 77) << "each of 5 blocks is rounded up";
  const auto to_zigzag = collective_workload(find_collective("direct_to_zigzag"), shape, Direction::forward);
  EXPECT_EQ(to_zigzag->payload_bytes(4), 4 * 16 * 2 * 4);
  EXPECT_EQ(to_zigzag->port_bytes(4), 4 * 16 * 2 * 4);
  EXPECT_EQ(to_zigzag->port_bytes(2), 4 * 16 * 4) << "each of two ranks keeps a piece";
}

}  // namespace
