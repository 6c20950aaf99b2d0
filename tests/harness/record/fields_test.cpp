// SPDX-License-Identifier: Apache-2.0
// Records of every kind have the keys of the schema, in its order.
#include "harness/record/fields.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cases/collective_workload.hpp"
#include "harness/cases/matrices.hpp"
#include "tests/harness/record/made_record.hpp"

namespace {

using namespace baton;

/// A record in which every optional part is present.
Record full_record() {
  Record record = timed_record();
  record.messages = 24;
  record.footprint = Footprint{100, 20};
  record.alpha_beta = {1e-6, 1e9, 4e-6, 2e-6, 1e8};
  record.device_facts = {{"gpu", "some"}};
  record.samples.rank_seconds.resize(4, {1, 2, 3});
  record.verified.elements = 7;
  record.verified.heads = {0, 1};
  record.samples.reading_names = {"throttle_reasons"};
  record.samples.readings_before = record.samples.readings_after = {{1}};
  record.topology = "some machine";
  record.stands_on = "another machine, some day";
  record.predicted_seconds = 1;
  record.extrapolated = "for a reason";
  record.standing.ratio_to = "all_scan, 1 block";
  record.over_launches = OverLaunches{3, record.summary, record.standing};
  return record;
}

/// The same of a simulated layer.
Record full_operator_record() {
  Record record = full_record();
  record.bench_case.workload = operator_workload(find_method("zeco"), small_layer(), {GateDraw::layer});
  record.standing.hidden = 0.5;
  record.verified.verified_case = record.bench_case;
  return record;
}

/// The same of softmax blocks by cuDNN, as if it were found.
Record record_of_cudnn() {
  Layer layer = small_layer();
  layer.share.gate = GateKind::none;
  layer.dtype = Dtype::bf16;
  layer.kernels.softmax = SoftmaxBody::cudnn;
  Record record = full_operator_record();
  record.bench_case.workload =
      operator_workload(find_method("ring_attention_softmax"), layer, {GateDraw::layer});
  return record;
}

/// A layer of latent keys and packed documents, as no method takes it, on one thread a rank.
Record record_of_mla() {
  Layer layer = small_layer();
  layer.share.kv_heads = 1;
  layer.share.latent = true;
  Record record = timed_record();
  record.bench_case.executor = "tcp";
  record.standing.exposed_seconds = 1;
  record.bench_case.workload = operator_workload(find_method("all_gather_kv"), layer,
                                                 {.gates = GateDraw::layer, .packing = {.mean = 7}});
  return record;
}

/// Records of every kind, with every part of them.
std::vector<Json> records_of_all_kinds() {
  Record skipped = timed_record();
  skipped.skipped = "for a reason";
  Record failed = timed_record();
  failed.failure = Failure{.reason = "for a reason", .rank = 1, .step = 2, .exit_code = 139, .seconds = 3};
  Record wrong = timed_record();
  wrong.verified.wrong = 1;
  wrong.verified.first_wrong = "element 5";
  Record shared = timed_record();
  shared.bench_case.ranks_per_gpu = 2;
  shared.conditions =
      Conditions{.cores = 2, .busy_threads = 3, .other_load = 0.5, .quota = 1.5, .throttled = 35};
  shared.hosts = HostsOfRanks{.hosts = 2};
  shared.transport = "shared memory";
  Record affine = timed_record();
  affine.bench_case.workload =
      collective_workload(find_collective("all_scan"), Shape{.map = MapKind::affine}, Direction::forward);
  affine.matrices = MatrixCost{.sent_bytes = 1, .product_flops = 1};
  affine.alpha_beta.product_flops_per_second = 1e12;
  const KernelLibrary here =
      std::exchange(cudnn_library(),
                    {.lacking = [] { return Refusal{}; }, .version = [] { return std::string("9.19.0"); }});
  std::vector<Json> all;
  for (const Record& record : {full_record(), full_operator_record(), record_of_cudnn(), record_of_mla(),
                               skipped, failed, wrong, shared, affine})
    all.push_back(to_json(record, {.session = "some"}));
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
    if (!of_models.contains(field.key) && !field.key.starts_with("machine.") && field.key != "device.gpu")
      EXPECT_TRUE(written.contains(std::string(field.key))) << field.key;
}

}  // namespace
