// SPDX-License-Identifier: Apache-2.0
// Records of every kind have the keys of the schema, in its order.
#include "harness/schema/fields.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/harness/record/made_case.hpp"

namespace {

using namespace baton;
using Json = Result::Json;

/// A case in which every optional part is present.
MadeCase full_case() {
  MadeCase made;
  made.traffic.messages = 24;
  made.traffic.footprint = Footprint{100, 20};
  made.traffic.link = {1e-6, 1e9, 4e-6, 2e-6, 1e8};
  made.samples.rank_seconds.resize(4, {1, 2, 3});
  made.samples.reading_names = {"throttle_reasons"};
  made.samples.readings_before = made.samples.readings_after = {{1}};
  made.found.elements = 7;
  made.found.heads = {0, 1};
  return made;
}

/// Its result with all that a run, a prediction and other cases add.
Result full_result(const MadeCase& made) {
  Result result = made.result();
  const Interval ends{1, 2};
  result.set("device", Json{{"gpu", "some"}});
  result.set("timed_seconds", 1.0);
  for (const schema::Key text :
       {schema::Key("topology"), schema::Key("stands_on"), schema::Key("extrapolated"),
        schema::Key("ratio_to"), schema::Key("over_launches.ratio_to"), schema::Key("session"),
        schema::Key("transport")})
    result.set(text, "some");
  for (const schema::Key number :
       {schema::Key("predicted_seconds"), schema::Key("ratio"), schema::Key("hidden"),
        schema::Key("exposed_seconds"), schema::Key("over_launches.launches"),
        schema::Key("over_launches.median_seconds"), schema::Key("over_launches.ratio"),
        schema::Key("over_launches.hidden")})
    result.set(number, 2);
  for (const schema::Key interval : {schema::Key("ratio_ci95"), schema::Key("over_launches.ci95_seconds"),
                                     schema::Key("over_launches.ratio_ci95")})
    result.set(interval, ends);
  for (const schema::Key origin :
       {schema::Key("baseline"), schema::Key("commit"), schema::Key("time"), schema::Key("run"),
        schema::Key("seed"), schema::Key("launch"), schema::Key("launches")})
    result.set(origin, "some");
  add_machine(result, {});
  return result;
}

/// The same of a simulated layer.
Result full_layer() {
  MadeCase made = full_case();
  made.bench_case.workload = operator_workload(find_method("zeco"), small_layer(), {GateDraw::layer});
  Result result = full_result(made);
  add_verified_case(result, made.bench_case);
  return result;
}

/// The same of softmax blocks by cuDNN, as if it were found, of documents that are padded.
Result of_cudnn() {
  Layer layer = small_layer();
  layer.share.gate = GateKind::none;
  layer.dtype = Dtype::bf16;
  layer.kernels.softmax = SoftmaxBody::cudnn;
  layer.mask.end = 61;
  MadeCase made = full_case();
  made.traffic.balance = 1.5;
  const LayerDraw draw{.packing = {.mean = 7, .multiple = 4}};
  made.bench_case.workload = operator_workload(find_method("ring_attention_softmax"), layer, draw)->sized(2);
  return full_result(made);
}

/// A batch of latent keys and packed documents behind a convolution, with a full mask and states,
/// unequally shared, as no method takes it, on one thread a rank.
Result of_mla() {
  Layer layer = small_layer();
  layer.share.batch = 2;
  layer.share.conv = 4;
  layer.share.heads = 4;
  layer.share.kv_heads = 2;
  layer.share.qk_heads = 2;
  layer.share.latent = true;
  layer.mask = {MaskKind::full, 61};
  layer.shares = {ShareRule::even, 61};
  layer.states = States::both;
  MadeCase made;
  made.bench_case.backend = &find_backend("tcp");
  const LayerDraw draw{.packing = {.mean = 7, .draw = LengthDraw::lognormal, .lengths = {61}}};
  made.bench_case.workload = operator_workload(find_method("all_gather_kv"), layer, draw)->sized(2);
  return made.result();
}

Result of_failure() {
  Result result;
  add_case(result, MadeCase{}.bench_case, 5, 50);
  add_failure(result, {.reason = "for a reason", .rank = 1, .step = 2, .exit_code = 139, .seconds = 3});
  return result;
}

/// Results of every kind, with every part of them.
std::vector<Json> records_of_all_kinds() {
  Result skipped;
  skipped.set("skipped", "for a reason");
  MadeCase wrong = made_case({});
  wrong.found = {.wrong = 1, .first = "element 5"};
  MadeCase shared;
  shared.bench_case.ranks_per_gpu = 2;
  Result crowded = shared.result();
  add_conditions(crowded, {.cores = 2, .busy_threads = 3, .other_load = 0.5, .quota = 1.5, .throttled = 35});
  add_hosts(crowded, {.hosts = 2}, {});
  MadeCase affine;
  affine.bench_case.workload =
      collective_workload(find_collective("all_scan"), Shape{.map = MapKind::affine}, Direction::forward);
  affine.traffic.matrices = MatrixCost{.sent_bytes = 1, .product_flops = 1};
  affine.traffic.link.product_flops_per_second = 1e12;
  const KernelLibrary here =
      std::exchange(cudnn_library(),
                    {.lacking = [] { return Refusal{}; }, .version = [] { return std::string("9.19.0"); }});
  std::vector<Json> all;
  for (const Result& result : {full_result(full_case()), full_layer(), of_cudnn(), of_mla(), of_failure(),
                               skipped, wrong.result(), crowded, affine.result()})
    all.push_back(result.json());
  cudnn_library() = here;
  return all;
}

/// The keys of a record in its order. Those of an object whose parts the schema names stand behind
/// it.
std::vector<std::string> keys_of(const Json& record) {
  constexpr std::array open{"machine", "device", "device_before", "device_after"};  // which name their parts
  std::vector<std::string> keys;
  for (const auto& [key, value] : record.items()) {
    keys.push_back(key);
    if (value.is_object() && std::find(open.begin(), open.end(), key) == open.end())
      for (const auto& [part, ignored] : value.items()) keys.push_back(key + "." + part);
  }
  return keys;
}

TEST(Fields, AreWrittenInTheirOrder) {
  for (const Json& record : records_of_all_kinds()) {
    auto place = schema::fields.begin();
    for (const std::string& key : keys_of(record)) {
      place = std::find_if(place, schema::fields.end(), [&](const auto& field) { return field.key == key; });
      ASSERT_NE(place, schema::fields.end()) << key << " is not there, or not behind the key before it";
    }
  }
}

TEST(Fields, AreAllWritten) {
  const std::set<std::string_view> of_models{"mlp",    "model",      "line",       "layers", "width",
                                             "beside", "peak_flops", "vocabulary", "softmax"};
  std::set<std::string> written;
  for (const Json& record : records_of_all_kinds())
    for (const std::string& key : keys_of(record)) written.insert(key);
  for (const schema::Field& field : schema::fields)
    if (!of_models.contains(field.key) && !field.key.starts_with("machine.") && field.key != "device.gpu") {
      EXPECT_TRUE(written.contains(std::string(field.key))) << field.key;
    }
}

}  // namespace
