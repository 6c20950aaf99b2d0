// SPDX-License-Identifier: Apache-2.0
// Topologies as files: what comes back, and what is said of files that are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "collectives/schedule/errors.hpp"
#include "collectives/simulator/topology/topology.hpp"

namespace {

using namespace baton;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

/// Draws topologies that a file can say.
class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  Topology topology() {
    Topology t;
    t.name = "drawn";
    t.description = "quoted \" and \\ and \xC3\xA9";
    t.nodes = whole(1, 40);
    t.ranks_a_node = whole(1, 40);
    t.round_seconds = number(0, 1);
    t.streams = number(0, 1) < 0.5;
    t.source = text();
    t.intra_node = link();
    if (t.nodes > 1) t.inter_node = link();
    if (t.nodes > 1 && whole(0, 1)) t.spine = link();
    t.device.kernel = rate();
    t.device.copy = rate();
    t.device.copy.flops_a_second = 1;
    t.device.combine = rate();
    for (int i = whole(0, 3); i > 0; --i) t.device.kernels["kernel " + std::to_string(i)] = rate();
    if (whole(0, 1))
      t.calibration = {text(), whole(1, 1000), whole(0, 99), whole(100, 1 << 30), number(0, 2)};
    return t;
  }

 private:
  int whole(int least, int most) { return std::uniform_int_distribution(least, most)(random_); }
  double number(double least, double most) { return std::uniform_real_distribution(least, most)(random_); }
  std::string text() { return "measured " + std::to_string(random_()); }

  Curve curve() {
    Curve curve;
    Curve::Point point;
    for (int i = whole(0, 1) * whole(2, 9); i > 0; --i) {
      point = {point.bytes + number(1, 1e6), point.seconds + (i == 1 ? 1e-9 : whole(0, 1) * number(0, 1))};
      curve.points.push_back(point);
    }
    return curve;
  }

  LinkClass link() {
    LinkClass link;
    link.latency_seconds = number(0, 1);
    link.overhead_seconds = number(0, 1);
    link.bytes_a_second = number(1, 1e12);
    link.measured = curve();
    link.measured_idle = curve();
    link.moved_by = whole(0, 1) ? Mover::wire : Mover::engine;
    link.node_bytes_a_second = whole(0, 1) * number(1, 1e12);
    link.node_measured = curve();
    link.source = text();
    return link;
  }

  Rate rate() {
    Rate rate;
    rate.launch_seconds = number(0, 1);
    rate.flops_a_second = number(1, 1e15);
    rate.bytes_a_second = number(1, 1e13);
    rate.measured = curve();
    rate.node_measured = curve();
    rate.source = text();
    return rate;
  }

  std::mt19937 random_;
};

void expect_same(const Curve& a, const Curve& b) {
  ASSERT_EQ(a.points.size(), b.points.size());
  for (std::size_t i = 0; i < a.points.size(); ++i) {
    EXPECT_EQ(a.points[i].bytes, b.points[i].bytes);
    EXPECT_EQ(a.points[i].seconds, b.points[i].seconds);
  }
}

void expect_same(const LinkClass& a, const LinkClass& b) {
  EXPECT_EQ(a.latency_seconds, b.latency_seconds);
  EXPECT_EQ(a.overhead_seconds, b.overhead_seconds);
  EXPECT_EQ(a.bytes_a_second, b.bytes_a_second);
  EXPECT_EQ(a.moved_by, b.moved_by);
  EXPECT_EQ(a.node_bytes_a_second, b.node_bytes_a_second);
  expect_same(a.measured_idle, b.measured_idle);
  EXPECT_EQ(a.source, b.source);
  expect_same(a.measured, b.measured);
  expect_same(a.node_measured, b.node_measured);
}

void expect_same(const Rate& a, const Rate& b) {
  EXPECT_EQ(a.launch_seconds, b.launch_seconds);
  EXPECT_EQ(a.flops_a_second, b.flops_a_second);
  EXPECT_EQ(a.bytes_a_second, b.bytes_a_second);
  EXPECT_EQ(a.source, b.source);
  expect_same(a.measured, b.measured);
  expect_same(a.node_measured, b.node_measured);
}

void expect_same(const DeviceRates& a, const DeviceRates& b) {
  expect_same(a.kernel, b.kernel);
  expect_same(a.copy, b.copy);
  expect_same(a.combine, b.combine);
  ASSERT_EQ(a.kernels.size(), b.kernels.size());
  for (const auto& [name, rate] : a.kernels) expect_same(rate, b.kernels.at(name));
}

void expect_same(const Calibration& a, const Calibration& b) {
  EXPECT_EQ(a.stands_on, b.stands_on);
  EXPECT_EQ(a.most_ranks, b.most_ranks);
  EXPECT_EQ(a.least_bytes, b.least_bytes);
  EXPECT_EQ(a.most_bytes, b.most_bytes);
  EXPECT_EQ(a.residual, b.residual);
}

void expect_same(const Topology& a, const Topology& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.description, b.description);
  EXPECT_EQ(a.nodes, b.nodes);
  EXPECT_EQ(a.ranks_a_node, b.ranks_a_node);
  EXPECT_EQ(a.round_seconds, b.round_seconds);
  EXPECT_EQ(a.streams, b.streams);
  EXPECT_EQ(a.source, b.source);
  expect_same(a.intra_node, b.intra_node);
  expect_same(a.inter_node, b.inter_node);
  ASSERT_EQ(a.spine.has_value(), b.spine.has_value());
  if (a.spine) expect_same(*a.spine, *b.spine);
  expect_same(a.device, b.device);
  expect_same(a.calibration, b.calibration);
}

TEST(TopologyText, ComesBackAsItWasWritten) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const Topology topology = Draw(seed).topology();
    const std::string text = write_topology(topology);
    const Topology back = parse_topology(text, "back");
    expect_same(topology, back);
    EXPECT_EQ(write_topology(back), text);
  }
}

TEST(TopologyText, GetsTheCalibrationsSourceWhereThereIsNoOther) {
  Topology topology = Draw(1).topology();
  topology.calibration = {"ping-pongs of today", 8, 8, 4096, 0.1};
  topology.intra_node.source = topology.device.copy.source = "";
  const Topology back = parse_topology(write_topology(topology), "back");
  EXPECT_EQ(back.intra_node.source, "ping-pongs of today");
  EXPECT_EQ(back.device.copy.source, "ping-pongs of today");
  EXPECT_EQ(back.device.kernel.source, topology.device.kernel.source);
}

/// What is thrown, or "no error".
std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

std::string error_in(const std::string& text) {
  return error_of([&] { parse_topology(text, "my.json"); });
}

std::string error_of_file(const std::filesystem::path& path) {
  return error_of([&] { read_topology(path.string()); });
}

TEST(TopologyText, IsNotWrittenWhereNobodyCouldReadIt) {
  const auto error_of_writing = [](const std::function<void(Topology&)>& spoil) {
    Topology topology = Draw(1).topology();
    spoil(topology);
    return error_of([&] { write_topology(topology); });
  };
  EXPECT_EQ(error_of_writing([](Topology&) {}), "no error");
  EXPECT_THAT(error_of_writing([](Topology& t) { t.intra_node.latency_seconds = std::nan(""); }),
              HasSubstr("links.intra_node.latency_seconds: expected a number"));
  EXPECT_THAT(error_of_writing([](Topology& t) { t.device.copy.source = t.calibration.stands_on = ""; }),
              HasSubstr("device.copy.source"));
}

/// The least that a topology must say, and a little more.
json valid() {
  return json::parse(R"({
    "name": "mine", "description": "two hosts",
    "machine": {"nodes": 2, "ranks_a_node": 4, "source": "counted"},
    "links": {"intra_node": {"latency_seconds": 1e-6, "bytes_a_second": 1e9, "source": "measured"},
              "inter_node": {"latency_seconds": 1e-5, "source": "measured",
                             "measured": [{"bytes": 8, "seconds": 1e-6}, {"bytes": 800, "seconds": 2e-6}]}},
    "device": {"kernel": {"flops_a_second": 1e12, "bytes_a_second": 1e11, "source": "measured"},
               "copy": {"bytes_a_second": 1e11, "source": "measured"},
               "combine": {"flops_a_second": 1e12, "bytes_a_second": 1e11, "source": "measured"}},
    "calibration": {"stands_on": "me", "most_ranks": 8, "least_bytes": 8, "most_bytes": 800, "residual": 0}})");
}

/// The error after `spoiled` took the place of what stands at the path `at`.
std::string error_with(const std::string& at, const json& spoiled) {
  json topology = valid();
  topology[json::json_pointer(at)] = spoiled;
  return error_in(topology.dump());
}

std::string error_without(const std::string& at) {
  json topology = valid();
  const json::json_pointer pointer(at);
  topology[pointer.parent_pointer()].erase(pointer.back());
  return error_in(topology.dump());
}

TEST(TopologyText, MayLeaveOutWhatHasADefault) {
  const Topology topology = parse_topology(valid().dump(), "mine");
  EXPECT_EQ(topology.round_seconds, 0);
  EXPECT_FALSE(topology.streams);
  EXPECT_EQ(topology.intra_node.overhead_seconds, 0);
  EXPECT_EQ(topology.intra_node.moved_by, Mover::wire);
  EXPECT_EQ(topology.intra_node.node_bytes_a_second, 0);
  EXPECT_EQ(topology.device.copy.launch_seconds, 0);
  EXPECT_DOUBLE_EQ(topology.inter_node.busy_seconds(800), 2e-6);
  EXPECT_FALSE(topology.spine);
  EXPECT_EQ(error_without("/calibration"), "no error");
}

TEST(TopologyErrors, NameWhatIsMissing) {
  for (const char* key :
       {"name", "description", "machine", "machine/nodes", "machine/source", "links", "links/intra_node",
        "links/inter_node", "links/intra_node/latency_seconds", "links/intra_node/bytes_a_second",
        "links/intra_node/source", "device/kernel", "device/kernel/flops_a_second", "device/copy/source",
        "calibration/stands_on", "links/inter_node/measured/1/seconds"}) {
    std::string path = key;
    std::replace(path.begin(), path.end(), '/', '.');
    if (const auto index = path.find(".1."); index != std::string::npos) path.replace(index, 3, "[1].");
    EXPECT_THAT(error_without(std::string("/") + key),
                StartsWith("my.json: " + path + ": missing, expected "));
  }
}

TEST(TopologyErrors, TellNumbersThatCannotBe) {
  const std::string rate = "/links/intra_node/bytes_a_second", latency = "/links/inter_node/latency_seconds";
  EXPECT_EQ(error_with(rate, 0),
            "my.json: links.intra_node.bytes_a_second: expected a number from 1.0 to 1e+18, found 0");
  EXPECT_EQ(error_with(latency, -1e-6),
            "my.json: links.inter_node.latency_seconds: expected a number from 0.0 to 3600.0, found -1e-06");
  for (const json& wrong :
       std::vector<json>{0, -1, 1e300, nullptr, "fast", true, json::array(), json::object()})
    EXPECT_THAT(error_with(rate, wrong),
                HasSubstr("links.intra_node.bytes_a_second: expected a number from"));
  for (const json& wrong : std::vector<json>{0, -3, 2.5, 2.0, 1e30, std::uint64_t{1} << 63, "two", nullptr})
    EXPECT_THAT(error_with("/machine/nodes", wrong),
                HasSubstr("machine.nodes: expected a whole number from"));
  EXPECT_THAT(error_with("/calibration/residual", -1), HasSubstr("calibration.residual: expected a number"));
}

TEST(TopologyErrors, TellNumbersThatAreNoJson) {
  for (const char* number : {"NaN", "-NaN", "Infinity", "1e", "0x10", "1_000"})
    EXPECT_THAT(error_in(std::string(R"({"name": )") + number + "}"),
                StartsWith("my.json: not JSON at line 1, "));
  EXPECT_EQ(
      error_in(R"({"links": {"intra_node": {"bytes_a_second": 1e999}}})"),
      "my.json: links.intra_node.bytes_a_second: expected a finite number, found one that is too large");
}

TEST(TopologyErrors, TellRanksThatDoNotFit) {
  json topology = valid();
  topology["machine"]["nodes"] = 1 << 20;
  topology["machine"]["ranks_a_node"] = 1 << 20;
  EXPECT_EQ(error_in(topology.dump()),
            "my.json: machine.ranks_a_node: expected at most 1048576 ranks on all "
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
  EXPECT_THAT(error_with("/comment", "hello"), HasSubstr("my.json: unknown key \"comment\""));
  EXPECT_THAT(error_with("/device/copy/flops_a_second", 1), HasSubstr("device.copy: unknown key"));
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
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("topology_files_" + std::to_string(getpid()));
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path file(const std::string& text) const {
    const auto path = folder_ / "file.json";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  std::filesystem::path folder_;
};

TEST_F(TopologyFiles, AreReadAsTheirText) {
  EXPECT_EQ(read_topology(file(valid().dump()).string()).name, "mine");
}

TEST_F(TopologyFiles, NameTheirPathInErrors) {
  const auto path = file("{}");
  EXPECT_EQ(error_of_file(path), path.string() + ": name: missing, expected one line of text");
}

TEST_F(TopologyFiles, ThatAreNoneAreRefused) {
  EXPECT_EQ(error_of_file(folder_), folder_.string() + ": a directory, expected a JSON file");
  EXPECT_THAT(error_of_file(folder_ / "none.json"), HasSubstr("none.json: cannot be opened: No such file"));
  EXPECT_THAT(error_of_file(""), HasSubstr("cannot be opened"));
  EXPECT_THAT(error_of_file("/dev/zero"), HasSubstr("/dev/zero: more than 1 MiB"));
  EXPECT_THAT(error_of_file("/dev/null"), HasSubstr("/dev/null: not JSON at line 1, column 1"));
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
