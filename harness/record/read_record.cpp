// SPDX-License-Identifier: Apache-2.0
#include "harness/record/read_record.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/record/values.hpp"

namespace baton {
namespace {

using Json = nlohmann::json;
using schema::known;
using schema::value;

std::optional<Failure> failure(const Json& json) {
  if (!json.contains("failed")) return std::nullopt;
  return Failure{.reason = value<std::string>(json, "failed"),
                 .rank = known<int>(json, "failed_rank"),
                 .step = known<int>(json, "failed_step"),
                 .exit_code = value<int>(json, "exit_code"),
                 .seconds = value<double>(json, "failed_after_seconds")};
}

std::optional<Cost> cost(const Json& json) {
  const auto bytes = known<std::int64_t>(json, "sent_bytes");
  const auto hops = known<int>(json, "hops");
  return bytes && hops ? std::optional(Cost{*bytes, *hops}) : std::nullopt;
}

std::optional<Footprint> footprint(const Json& json) {
  const auto tensors = known<std::int64_t>(json, "tensor_bytes");
  const auto scratch = known<std::int64_t>(json, "scratch_bytes");
  return tensors && scratch ? std::optional(Footprint{*tensors, *scratch}) : std::nullopt;
}

Verified verified(const Json& json) {
  Verified read;
  read.wrong = value<std::int64_t>(json, "wrong");
  read.first_wrong = value<std::string>(json, "first_wrong");
  read.relative_error = value<double>(json, "relative_error");
  read.tolerance = value<double>(json, "tolerance");
  read.elements = value<std::int64_t>(json, "verified_elements");
  read.tokens = value<std::int64_t>(json, "verified_tokens");
  read.heads = value<std::vector<std::int64_t>>(json, "verified_head_numbers");
  return read;
}

std::optional<Conditions> conditions(const Json& json) {
  if (!json.contains("conditions")) return std::nullopt;
  const Json& here = json.at("conditions");
  return Conditions{.cores = value<int>(here, "conditions.cores"),
                    .busy_threads = value<int>(here, "conditions.busy_threads"),
                    .other_load = known<double>(here, "conditions.other_load"),
                    .quota = known<double>(here, "conditions.quota"),
                    .throttled = value<std::int64_t>(here, "conditions.throttled")};
}

}  // namespace

Record read_record(const Json& json) {
  Record record;
  record.implementation = value<std::string>(json, "implementation");
  record.blocks = value<int>(json, "blocks");
  record.warmup = value<int>(json, "warmup");
  record.rounds = value<int>(json, "rounds");
  record.skipped = value<std::string>(json, "skipped");
  record.failure = failure(json);
  record.cost = cost(json);
  record.footprint = footprint(json);
  record.known_bound_seconds = known<double>(json, "bound_seconds");
  record.conditions = conditions(json);
  record.verified = verified(json);
  record.wire = value<std::string>(json, "wire_dtype") == "bf16" ? Dtype::bf16 : Dtype::f32;
  record.samples.seconds = value<std::vector<double>>(json, "seconds");
  record.samples.first_seconds = known<double>(json, "first_seconds");
  if (record.is_timed()) record.summary = summarise(record.samples.seconds);
  record.known_rounds_as_last = value<std::vector<int>>(json, "rounds_as_last");
  record.topology = value<std::string>(json, "topology");
  record.stands_on = value<std::string>(json, "stands_on");
  record.predicted_seconds = known<double>(json, "predicted_seconds");
  record.extrapolated = value<std::string>(json, "extrapolated");
  return record;
}

}  // namespace baton
