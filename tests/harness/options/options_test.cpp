// SPDX-License-Identifier: Apache-2.0
#include "harness/options/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "collectives/schedule/errors.hpp"
#include "harness/layers/options.hpp"
#include "harness/machine/conditions.hpp"
#include "harness/options/checks.hpp"
#include "tests/harness/options/parse.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;

TEST(Options, DefaultsAreThePapers) {
  const auto options = parse({});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->warmup, 5);
  EXPECT_EQ(options->rounds, 50);
  const std::vector<const Collective*> all = collectives();
  const auto of_gpus = std::count_if(all.begin(), all.end(), [](const Collective* one) {
    return one->name.rfind("nccl_", 0) == 0 || one->name.rfind("auto_", 0) == 0 ||
           one->name.find("_fused") != std::string::npos;
  });
  EXPECT_EQ(options->cases.size() + of_gpus, all.size()) << "natives of NCCL and of peer run on GPUs";
  EXPECT_EQ(options->cases[0].workload->state_bytes(), 2 << 20);
  const int cores = usable_cores().count();
  EXPECT_EQ(options->processes(), std::clamp(cores, 2, 4));
}

TEST(Options, SizesMakeALadderOfHeads) {
  const auto options = parse({"-b", "256K", "-e", "1M", "-f", "2", "--collectives", "two_shot"});
  ASSERT_EQ(options->cases.size(), 3u);
  EXPECT_EQ(options->cases[0].workload->state_rows(), 4 * 128);
  EXPECT_EQ(options->cases[2].workload->state_bytes(), 1 << 20);
}

TEST(Options, RanksAreOnOneNodeUnlessToldOtherwise) {
  EXPECT_EQ(parse({})->cases[0].ranks_per_node, 0);
  EXPECT_EQ(parse({"--ranks-per-node", "3"})->cases[0].ranks_per_node, 3);
}

TEST(Options, MulticastIsOffUnlessAskedFor) {
  EXPECT_FALSE(executor_choices().multicast);
  parse({"--nvls"});
  EXPECT_TRUE(executor_choices().multicast);
  executor_choices() = {};
}

TEST(Options, ExecutorsWithoutAGpuShareNone) {
  EXPECT_EQ(parse({"--ranks-per-gpu", "2"})->cases[0].ranks_per_gpu, 1);
  EXPECT_EQ(executor_choices().ranks_per_gpu, 2);
  executor_choices() = {};
}

TEST(Options, CadencesAreWhatTheyAreCalled) {
  const auto options = parse({"--collectives", "two_shot", "--cadence", "graph,isolated,streaming"});
  ASSERT_EQ(options->cases.size(), 3u);
  EXPECT_EQ(options->cases[0].cadence, Cadence::graph);
  EXPECT_EQ(options->cases[1].cadence, Cadence::isolated);
  EXPECT_EQ(options->cases[2].cadence, Cadence::streaming);
}

TEST(Options, MapsAreAnAxisOfWhatHasMaps) {
  const auto options = parse({"--collectives", "ring_scan,ring_exchange", "--map", "affine,diagonal"});
  ASSERT_EQ(options->cases.size(), 3u);
  EXPECT_EQ(options->cases[0].workload->map(), MapKind::affine);
  EXPECT_EQ(options->cases[1].workload->map(), MapKind::diagonal);
  EXPECT_EQ(options->cases[2].workload->name(), "ring_exchange");
  EXPECT_EQ(options->cases[2].workload->map(), MapKind::diagonal);
}

TEST(Options, UnknownNamesBringTheNearestKnownOne) {
  EXPECT_THAT(error_of({"--collectives", "all_scam"}), HasSubstr("did you mean 'all_scan'?"));
  EXPECT_THAT(error_of({"--baseline", "two_shoot"}), HasSubstr("did you mean 'two_shot'?"));
  EXPECT_THAT(error_of({"--executor", "mpj"}), HasSubstr("unknown executor 'mpj', did you mean 'mpi'?"));
  EXPECT_THAT(error_of({"--methods", "zecco"}, parse_operator_options), HasSubstr("did you mean 'zeco'?"));
  EXPECT_THAT(error_of({"--scan", "all_gather"}, parse_operator_options), HasSubstr("unknown scan"));
}

/// Bad input, the flag that its error must name, and the reason.
struct Refused {
  std::vector<std::string> words;
  std::string flag;
  std::string reason;
};

const Refused refused[] = {
    {{"--heads", "0"}, "--heads", "'0' is not in range 1 to 16777216"},
    {{"--heads", "-3"}, "--heads", "'-3' is not in range 1 to 16777216"},
    {{"--d-k", "x"}, "--d-k", "'x' is not a whole number"},
    {{"-n", "0"}, "--rounds", "'0' is not in range 1 to 1000000"},
    {{"-b", "0"}, "--min-bytes", "'0' is not in range"},
    {{"-b", "-1"}, "--min-bytes", "'-1' is not in range"},
    {{"-b", "100"}, "--min-bytes", "a state of 100 bytes cannot be cut into heads of 65536"},
    {{"-e", "1M"}, "--max-bytes", "requires --min-bytes"},
    {{"--ranks", "0"}, "--ranks", "'0' is not in range 1 to 16384"},
    {{"--ranks-per-node", "-1"}, "--ranks-per-node", "'-1' is not in range 0 to 16384"},
    {{"-c", "0"}, "--check", "'0' is not in range 1 to 1000"},
    {{"--blocks", "0"}, "--blocks", "'auto' or a number from 1 to 2^20, not '0'"},
    {{"--blocks", "four"}, "--blocks", "not 'four'"},
    {{"--blocks", "4x"}, "--blocks", "not '4x'"},
    {{"--blocks", "4,4"}, "--blocks", "names '4' twice"},
    {{"--cadence", "sometimes"},
     "cadence",
     "unknown cadence 'sometimes'; there are: isolated, streaming, graph"},
    {{"--map", "afine"}, "--map", "unknown map 'afine', did you mean 'affine'?"},
    {{"--map", "affine", "--heads", "16777216", "--d-k", "16777216", "--d-v", "1"}, "--heads", "too large"},
    {{"--direction", "up"}, "--direction", "'up' is not one of forward, reverse, both"},
    {{"--no-such-flag"}, "--no-such-flag", "unknown flag"},
    {{"-b", "64K", "--heads", "4"}, "--heads", "excludes --min-bytes"},
    {{"-b", "1E"}, "--min-bytes", "is not in range 1 to 8796093022208"},
    {{"--heads", "16777216", "--d-k", "16777216", "--d-v", "16777216"}, "--heads", "TiB a rank is too large"},
    {{"--ranks", "2,2"}, "--ranks", "names 2 twice"},
    {{"--collectives", "all_scan,all_scan"}, "collective", "'all_scan' is named twice"},
    {{"--collectives", "ALL_SCAN"}, "--collectives", "did you mean 'all_scan'?"},
    {{"--collectives", "all,x"}, "--collectives", "'all' stands alone"},
    {{"--print-schedule"}, "--print-schedule", "--dry-run"},
    {{"-b", "2M", "-e", "1M"}, "--max-bytes", "below --min-bytes"},
    {{"--collectives", "two_shot", "--baseline", "all_scan"},
     "--baseline",
     "'all_scan' is not among what runs"},
    {{"--collectives", "ring_exchange", "--direction", "reverse"}, "--direction", "nothing to run"},
    {{"--blocks", "2000000000"}, "--blocks", "not '2000000000'"},
    {{"-b", "K"}, "--min-bytes", "'K' is not a number of bytes"},
    {{"-b", "1Q"}, "--min-bytes", "'1Q' is not a number of bytes"},
    {{"-b", "99999999999999999999T"}, "--min-bytes", "is not in range"},
    {{"--heads", "99999999999999999999"}, "--heads", "is not in range 1 to 16777216"},
    {{"--heads", "0x10"}, "--heads", "'0x10' is not a whole number"},
    {{"--heads", "1e3"}, "--heads", "'1e3' is not a whole number"},
    {{"--heads", "+4"}, "--heads", "'+4' is not a whole number"},
    {{"--seed", "-1"}, "--seed", "'-1' is not in range 0 to 18446744073709551615"},
    {{"--seed", ""}, "--seed", "'' is not a whole number"},
    {{"--seed="}, "--seed=", "has no value"},
    {{"--json", ""}, "--json", "needs a value"},
    {{"--json", "--dry-run"}, "--json", "needs a value, found '--dry-run'"},
    {{"--trace"}, "--trace", "needs a value"},
    {{"--rounds", "1", "--rounds", "2"}, "--rounds", "is given twice"},
    {{"--list=maybe"}, "--list", "takes no value"},
    {{"--hads", "3"}, "--hads", "did you mean '--heads'?"},
    {{"stray"}, "stray", "belongs to no flag"},
    {{"--ranks", "2,,3"}, "--ranks", "'' is not a whole number"},
    {{"--ranks", "[2,3]"}, "--ranks", "'[2' is not a whole number"},
    {{"--collectives", "ring_exchange", "-b", "8T", "--tokens", "16777216"}, "--tokens", "is too large"},
    {{"--cycles", "1000", "--blocks", "1,2,3,4,5,6,7,8", "--ranks", "2,3,4"},
     "--cycles",
     "cases, at most 100000"}};

TEST(Options, RefusesWhatCannotBe) {
  for (const auto& [words, flag, reason] : refused) {
    const std::string error = error_of(words);
    EXPECT_THAT(error, HasSubstr(flag)) << testing::PrintToString(words);
    EXPECT_THAT(error, HasSubstr(reason)) << testing::PrintToString(words);
  }
}

TEST(Options, NumbersAreDecimal) {
  EXPECT_EQ(parse({"--ranks", "010,3"})->cases[0].ranks, 10);
  EXPECT_EQ(parse({"--seed", "0018446744073709551615"})->seed, 18446744073709551615u);
  for (const char* size : {"1024K", "1024kb", "1M", "1MiB", "1048576", "1048576B"})
    EXPECT_EQ(parse({"-b", size, "--collectives", "two_shot"})->cases[0].workload->state_bytes(), 1 << 20)
        << size;
}

TEST(Options, SizesOfLayersAreBounded) {
  EXPECT_THAT(error_of({"--heads", "16777216", "--d-k", "512", "--d-v", "512"}, parse_operator_options),
              HasSubstr("is too large"));
  EXPECT_THAT(error_of({"--tokens", "16777216", "--d-k", "16777216"}, parse_operator_options),
              HasSubstr("is too large"));
  EXPECT_THAT(error_of({"--tokens", "16777216", "--chunk", "1", "--heads", "4096"}, parse_operator_options),
              HasSubstr("is too large"));
  EXPECT_THAT(error_of({"--tokens", "8,8"}, parse_operator_options), HasSubstr("--tokens names 8 twice"));
}

TEST(Options, SizesAreCountedOfTheKindsThatRun) {
  const std::vector<std::string> maps{"--heads", "4194304", "--d-k", "1", "--d-v", "1023", "--collectives"};
  const auto asking = [&](const std::string& name) {
    std::vector<std::string> words = maps;
    words.push_back(name);
    return words;
  };
  EXPECT_EQ(error_of(asking("ring_all_gather,ring_reduce_scatter")), "no error");
  EXPECT_THAT(error_of(asking("ring_all_gather,ring_exchange")), HasSubstr("is too large"));
}

TEST(Options, HeadsOfKeysDivideTheHeads) {
  EXPECT_THAT(error_of({"--heads", "16", "--kv-heads", "3"}, parse_operator_options),
              HasSubstr("--kv-heads: 3 heads of keys do not divide 16 heads"));
  EXPECT_THAT(error_of({"--heads", "4", "--kv-heads", "8"}, parse_operator_options),
              HasSubstr("--kv-heads: 8 heads of keys do not divide 4 heads"));
}

TEST(Options, LatentKeysSetTheWidthsAndTheHeadsOfKeys) {
  std::vector<std::string> words{"operator_bench", "--mla", "512,64", "--methods", "all_gather_kv"};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  const auto options = parse_operator_options(static_cast<int>(argv.size()), argv.data());
  const AxisValues layer = options->cases[0].workload->axes();
  EXPECT_EQ(layer.whole("d_k"), 576);
  EXPECT_EQ(layer.whole("d_v"), 512);
  EXPECT_EQ(layer.whole("kv_heads"), 1);
  EXPECT_TRUE(layer.truth("latent"));
}

TEST(Options, LatentKeysHaveTwoWidthsAndNoneElsewhere) {
  for (const char* width : {"512", "512,32,32"})
    EXPECT_THAT(error_of({"--mla", width}, parse_operator_options),
                HasSubstr("--mla needs two widths, of values and of positions, such as 512,64, found " +
                          std::string(width)));
  EXPECT_THAT(error_of({"--mla", "0,64"}, parse_operator_options),
              HasSubstr("--mla: the first width, of the values, must be 1 or more"));
  EXPECT_THAT(error_of({"--mla", "512,-64"}, parse_operator_options), HasSubstr("is not in range"));
  for (const char* other : {"--kv-heads", "--d-k", "--d-v"})
    EXPECT_THAT(error_of({"--mla", "512,64", other, "1"}, parse_operator_options),
                HasSubstr(std::string(other) + " excludes --mla"));
  EXPECT_THAT(error_of({"--mla", "512,64", "--heads", "16777216"}, parse_operator_options),
              HasSubstr("is too large"));
}

TEST(Options, ProcessesOfOneHostAreBounded) {
  EXPECT_THROW(refuse_too_many_processes(*parse({"--ranks", "16384"})), UsageError);
  EXPECT_THROW(refuse_too_many_processes(16384, ""), UsageError);
  refuse_too_many_processes(*parse({"--ranks", "64"}));
  refuse_too_many_processes(*parse({"--ranks", "16384", "--executor", "local"}));
}

TEST(Options, ALongValueGetsAShortError) {
  const std::string value(100000, '9');
  for (const char* flag : {"--heads", "--collectives", "--blocks", "--baseline", "--direction", "--cadence"})
    EXPECT_LT(error_of({flag, value}).size(), 400u) << flag;
}

TEST(Options, OldNamesOfFlagsStillWork) {
  for (const auto& [kind, draw] : {std::pair("--gate-kind", "--gate-draw"), std::pair("--gate", "--gates")}) {
    const auto options = parse({"--methods", "zeco", kind, "scalar", draw, "strong"}, parse_operator_options);
    const auto layer = options->cases[0].workload->axes();
    EXPECT_EQ(layer.text("gate"), "scalar");
    EXPECT_EQ(layer.text("gates"), "strong");
  }
}

TEST(Options, ATopologyThatIsNotThereIsRefused) {
  EXPECT_THROW(parse({"--executor", "simulator", "--topology", "none.json"}), UsageError);
  EXPECT_FALSE(read_machine(*parse({"--executor", "local"})));
  EXPECT_THROW(read_machine(*parse({"--executor", "simulator"})), UsageError);
}

TEST(Backends, AreTheExecutorsAndTheSimulator) {
  EXPECT_EQ(backends().size(), executors().size() + 1);
  EXPECT_FALSE(find_backend("simulator").is_measured);
  EXPECT_TRUE(find_backend("local").is_measured);
  EXPECT_THROW(find_backend("none"), UsageError);
  EXPECT_THROW(find_executor("simulator"), UsageError) << "it runs no schedules";
}

TEST(Options, OperatorsVaryPassAndModeAndLocalHasNoMode) {
  const auto options =
      parse({"--methods", "zeco,local", "--pass", "all", "--mode", "all"}, parse_operator_options);
  EXPECT_EQ(options->cases.size(), 3u * (3 + 1));
  EXPECT_EQ(options->baseline, "local");
  EXPECT_EQ(options->cases[0].workload->name(), "local");
}

TEST(Options, ErrorsAreOneLine) {
  EXPECT_EQ(error_of({"--heads", "0"}).find('\n'), std::string::npos);
  EXPECT_EQ(error_of({"--collectives", "nothing"}).find('\n'), std::string::npos);
}

TEST(Options, GoogleBenchmarksFlagsPassThrough) {
  const auto options = parse({"--benchmark_filter=all_scan", "--ranks", "2"});
  EXPECT_EQ(options->benchmark_arguments.back(), "--benchmark_filter=all_scan");
}

}  // namespace
