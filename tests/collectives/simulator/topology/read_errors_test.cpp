// SPDX-License-Identifier: Apache-2.0
// What is said of texts and files that are no topologies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/collectives/simulator/topology/valid_topology.hpp"
#include "tests/scratch_folder.hpp"

namespace {

using namespace baton;
using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

std::string error_of_file(const std::filesystem::path& path) {
  return error_of([&] { read_topology(path.string()); });
}

TEST(TopologyErrors, NameWhatIsMissing) {
  for (const char* key :
       {"name", "description", "machine", "machine/nodes", "machine/source", "links", "links/intra_node",
        "links/inter_node", "links/intra_node/latency_seconds", "links/intra_node/bytes_per_second",
        "links/intra_node/source", "device/kernel", "device/kernel/flops_per_second", "device/copy/source",
        "calibration/stands_on", "links/inter_node/measured/1/seconds"}) {
    std::string path = key;
    std::replace(path.begin(), path.end(), '/', '.');
    if (const auto index = path.find(".1."); index != std::string::npos) path.replace(index, 3, "[1].");
    EXPECT_THAT(error_without(std::string("/") + key),
                StartsWith("my.json: " + path + ": missing, expected "));
  }
}

TEST(TopologyErrors, TellNumbersThatCannotBe) {
  const std::string rate = "/links/intra_node/bytes_per_second",
                    latency = "/links/inter_node/latency_seconds";
  EXPECT_EQ(error_with(rate, 0),
            "my.json: links.intra_node.bytes_per_second: expected a number from 1.0 to 1e+18, found 0");
  EXPECT_EQ(error_with(latency, -1e-6),
            "my.json: links.inter_node.latency_seconds: expected a number from 0.0 to 3600.0, found -1e-06");
  for (const json& wrong :
       std::vector<json>{0, -1, 1e300, nullptr, "fast", true, json::array(), json::object()})
    EXPECT_THAT(error_with(rate, wrong),
                HasSubstr("links.intra_node.bytes_per_second: expected a number from"));
  for (const json& wrong : std::vector<json>{0, -3, 2.5, 2.0, 1e30, std::uint64_t{1} << 63, "two", nullptr})
    EXPECT_THAT(error_with("/machine/nodes", wrong),
                HasSubstr("machine.nodes: expected a whole number from"));
  EXPECT_THAT(error_with("/calibration/residual", -1), HasSubstr("calibration.residual: expected a number"));
}

TEST(TopologyErrors, TellCachesThatCannotBe) {
  EXPECT_THAT(error_with("/device/cache", {{"bytes", 0}, {"slowdown", 1}, {"source", "measured"}}),
              HasSubstr("device.cache.bytes: expected a number from"));
  EXPECT_THAT(error_with("/device/cache", {{"bytes", 1e8}, {"slowdown", -1}, {"source", "measured"}}),
              HasSubstr("device.cache.slowdown: expected a number from"));
  EXPECT_THAT(error_with("/device/cache", {{"bytes", 1e8}, {"source", "measured"}}),
              HasSubstr("device.cache.slowdown: missing"));
}

TEST(TopologyErrors, TellMachinesThatStreamInGroups) {
  json topology = valid();
  topology["machine"]["streams"] = topology["machine"]["groups"] = "yes";
  EXPECT_EQ(error_in(topology.dump()), "my.json: machine.groups: a machine that streams has no groups");
  EXPECT_THAT(error_with("/machine/groups", true), HasSubstr("machine.groups: expected"));
}

TEST(TopologyErrors, TellNumbersThatAreNoJson) {
  for (const char* number : {"NaN", "-NaN", "Infinity", "1e", "0x10", "1_000"})
    EXPECT_THAT(error_in(std::string(R"({"name": )") + number + "}"),
                StartsWith("my.json: not JSON at line 1, "));
  EXPECT_EQ(
      error_in(R"({"links": {"intra_node": {"bytes_per_second": 1e999}}})"),
      "my.json: links.intra_node.bytes_per_second: expected a finite number, found one that is too large");
}

TEST(TopologyErrors, TellRanksThatDoNotFit) {
  json topology = valid();
  topology["machine"]["nodes"] = 1 << 20;
  topology["machine"]["ranks_per_node"] = 1 << 20;
  EXPECT_EQ(error_in(topology.dump()),
            "my.json: machine.ranks_per_node: expected at most 1048576 ranks on all "
            "nodes, found 1099511627776");
}

TEST(TopologyErrors, TellWrongTypes) {
  EXPECT_THAT(error_in("[1, 2]"), HasSubstr("my.json: expected an object, found an array of 2"));
  EXPECT_THAT(error_in("7"), HasSubstr("my.json: expected an object, found 7"));
  EXPECT_THAT(error_with("/links", 3), HasSubstr("links: expected an object, found 3"));
  EXPECT_THAT(error_with("/device/kernels", {1}), HasSubstr("device.kernels: expected an object"));
  EXPECT_THAT(error_with("/name", 3), HasSubstr("name: expected one line of text, found 3"));
  EXPECT_THAT(error_with("/machine/source", ""), HasSubstr("machine.source: expected one line of text"));
  EXPECT_THAT(error_with("/machine/source", "   "), HasSubstr("machine.source: expected one line of text"));
  EXPECT_THAT(error_with("/machine/source", "a\nb"), HasSubstr("machine.source: expected one line of text"));
  EXPECT_THAT(error_with("/links/intra_node/moved_by", "magic"),
              HasSubstr("links.intra_node.moved_by: expected one of wire, engine, found the text \"magic\""));
}

TEST(TopologyErrors, TellUnknownKeysAndWhichThereAre) {
  EXPECT_THAT(error_with("/links/intra_node/latency", 1),
              HasSubstr("links.intra_node: unknown key \"latency\", expected of latency_seconds, "));
  EXPECT_THAT(error_with("/machine/Node", 1),
              HasSubstr("machine: unknown key \"Node\", did you mean \"nodes\"?"));
  EXPECT_THAT(error_with("/comment", "hello"), HasSubstr("my.json: unknown key \"comment\""));
  EXPECT_THAT(error_with("/device/copy/flops_per_second", 1), HasSubstr("device.copy: unknown key"));
  EXPECT_EQ(error_in(R"({"machine": {"nodes": 1, "nodes": 2}})"),
            "my.json: machine.nodes: given twice, expected once");
}

TEST(TopologyErrors, TellCurvesThatGoBack) {
  const std::string at = "/links/inter_node/measured";
  const auto curve = [](const std::vector<std::pair<double, double>>& points) {
    json curve = json::array();
    for (const auto& [bytes, seconds] : points) curve.push_back({{"bytes", bytes}, {"seconds", seconds}});
    return curve;
  };
  EXPECT_EQ(error_with(at, curve({{1, 1}, {2, 1}, {3, 2}})), "no error");
  EXPECT_THAT(error_with(at, curve({{1, 1}})),
              HasSubstr("links.inter_node.measured: expected an array of 2 to"));
  EXPECT_THAT(error_with(at, curve({{1, 1}, {1, 2}})), HasSubstr("measured[1].bytes: expected more than"));
  EXPECT_THAT(error_with(at, curve({{1, 1}, {9, 3}, {20, 2}})),
              HasSubstr("measured[2].seconds: expected no less"));
  EXPECT_THAT(error_with(at, curve({{1, 1}, {2, 1}})), HasSubstr("measured[1].seconds: expected more than"));
  EXPECT_THAT(error_with(at, json{1, 2}),
              HasSubstr("links.inter_node.measured[0]: expected an object, found 1"));
}

TEST(TopologyErrors, TellWhereAFileIsNoJson) {
  EXPECT_EQ(error_in(""), "my.json: not JSON at line 1, column 1");
  EXPECT_EQ(error_in("{\n  \"name\": mine\n}"), "my.json: not JSON at line 2, column 11");
  EXPECT_THAT(error_in("nodes: 4"), StartsWith("my.json: not JSON at line 1"));
  EXPECT_THAT(error_in("{\"name\": \"\xff\"}"), StartsWith("my.json: not JSON at line 1"));
  EXPECT_THAT(error_in(valid().dump() + "}"), StartsWith("my.json: not JSON at line 1"));
}

TEST(TopologyErrors, AreOneShortLineWhateverTheTextIs) {
  const std::string word = valid().dump();
  std::mt19937 random(7);
  const std::string strange = "\n\"{}[],:\\\t\x01\xff\xc3" + std::string(1, '\0') + "9e";
  for (int trial = 0; trial < 3000; ++trial) {
    std::string text = word;
    for (int i = 0; i < 1 + trial % 3; ++i) text[random() % text.size()] = strange[random() % strange.size()];
    const std::string error = error_in(text);
    EXPECT_THAT(error, testing::Not(HasSubstr("\n")));
    EXPECT_LT(error.size(), 300u) << error;
  }
  EXPECT_LT(error_in("{\"" + std::string(1 << 20, 'k') + "\": 1}").size(), 300u);
  EXPECT_LT(error_in("{\"name\": \"" + std::string(1 << 20, 'k') + "\n\"}").size(), 300u);
  EXPECT_LT(error_in("{\"name\": " + std::string(1 << 20, '9') + "}").size(), 300u);
}

TEST(TopologyErrors, TellBracketsWithinBrackets) {
  for (const char* bracket : {"[", "{\"a\":"}) {
    std::string text;
    while (text.size() < 10'000'000) text += bracket;
    EXPECT_EQ(error_in(text), "my.json: brackets within brackets, expected at most 16 levels");
  }
}

/// A folder for the files of one test.
class TopologyFiles : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& text) const {
    const auto path = scratch_.file("file.json");
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  const ScratchFolder scratch_;
};

TEST_F(TopologyFiles, AreReadAsTheirText) {
  EXPECT_EQ(read_topology(file(valid().dump()).string()).name, "mine");
}

TEST_F(TopologyFiles, NameTheirPathInErrors) {
  const auto path = file("{}");
  EXPECT_EQ(error_of_file(path), path.string() + ": name: missing, expected one line of text");
}

TEST_F(TopologyFiles, ThatAreNoneAreRefused) {
  EXPECT_EQ(error_of_file(scratch_.path()), scratch_.path().string() + ": a directory, expected a JSON file");
  EXPECT_THAT(error_of_file(scratch_.path() / "none.json"),
              HasSubstr("none.json: cannot be opened: No such file"));
  EXPECT_THAT(error_of_file(""), HasSubstr("cannot be opened"));
  EXPECT_EQ(error_of_file("/dev/zero"), "/dev/zero: a pipe or a device, expected a JSON file");
  const auto pipe = scratch_.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of_file(pipe), pipe + ": a pipe or a device, expected a JSON file");
  EXPECT_THAT(error_of_file(file("")), HasSubstr("not JSON at line 1, column 1"));
  // Opens and cannot be read, for anybody.
  EXPECT_THAT(error_of_file("/proc/self/mem"), HasSubstr("/proc/self/mem: cannot be read"));
  EXPECT_THAT(error_of_file(file(std::string(10'000'000, '['))), HasSubstr("file.json: more than 1 MiB"));
}

TEST_F(TopologyFiles, WithoutPermissionAreRefused) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const auto path = file(valid().dump());
  std::filesystem::permissions(path, std::filesystem::perms::none);
  EXPECT_THAT(error_of_file(path), HasSubstr("cannot be opened: Permission denied"));
}

}  // namespace
