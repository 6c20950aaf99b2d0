// SPDX-License-Identifier: Apache-2.0
// Records as JSON lines.
#include "harness/report/record.hpp"

#include <cmath>
#include <filesystem>

#include "collectives/schedule/errors.hpp"
#include "harness/process/machine.hpp"

namespace baton {
namespace {

constexpr int schema = 1;

using Json = nlohmann::ordered_json;

Json or_null(const auto& value) { return value ? Json(*value) : Json(nullptr); }

/// Seconds to a tenth of a nanosecond, which no timer here resolves: shorter lines.
std::vector<double> rounded(std::vector<double> seconds) {
  for (double& value : seconds) value = std::round(value * 1e10) / 1e10;
  return seconds;
}

void add_question(Json& json, const Record& record) {
  const Case& c = record.question;
  c.workload->describe(json);
  json["implementation"] = record.implementation;
  json["executor"] = c.executor;
  json["ranks"] = c.ranks;
  json["ranks_a_node"] = record.ranks_a_node;
  json["state_bytes"] = c.workload->state_bytes();
  json["blocks"] = record.blocks;
  json["blocks_asked"] = c.blocks == auto_blocks ? Json("auto") : Json(c.blocks);
  json["cadence"] = to_string(c.cadence);
  json["cycle"] = c.cycle;
}

void add_timings(Json& json, const Record& record) {
  json["seconds"] = rounded(record.samples.seconds);
  for (const auto& row : record.samples.rank_seconds) json["rank_seconds"].push_back(rounded(row));
  json["first_seconds"] = or_null(record.samples.first_seconds);
  json["mean_seconds"] = record.summary.mean;
  json["median_seconds"] = record.summary.median;
  json["ci95_seconds"] = record.summary.ci95;
  json["min_seconds"] = record.summary.min;
  json["p95_seconds"] = record.summary.p95;
  json["max_seconds"] = record.summary.max;
  const Case& c = record.question;
  if (c.workload->payload_bytes(c.ranks) > 0) {
    json["algbw_bytes_per_second"] = c.workload->payload_bytes(c.ranks) / record.summary.median;
    json["busbw_bytes_per_second"] = c.workload->port_bytes(c.ranks) / record.summary.median;
  }
  json["ratio"] = record.ratio ? Json(record.ratio->value) : Json(nullptr);
  json["hidden"] = or_null(record.hidden);
  json["ratio_ci95"] = record.ratio ? Json(record.ratio->ci95) : Json(nullptr);
}

void add_traffic(Json& json, const Record& record) {
  json["sent_bytes"] = record.traffic ? Json(record.traffic->sent_bytes) : Json(nullptr);
  json["hops"] = record.traffic ? Json(record.traffic->hops) : Json(nullptr);
  json["messages"] = or_null(record.messages);
  json["wire_dtype"] = to_string(record.wire);
  json["bound_seconds"] = or_null(record.bound_seconds());
  json["alpha_seconds"] = record.link.alpha_seconds;
  json["beta_bytes_per_second"] = record.link.beta;
  if (record.link.floor_seconds > 0) json["floor_seconds"] = record.link.floor_seconds;
  if (record.link.message_beta > 0) {
    json["message_alpha_seconds"] = record.link.message_alpha_seconds;
    json["message_beta_bytes_per_second"] = record.link.message_beta;
  }
}

/// What each rank's device showed, by the reading's name.
Json readings(const Samples& samples, const std::vector<std::vector<double>>& rows) {
  Json all = Json::object();
  for (std::size_t i = 0; i < samples.reading_names.size(); ++i)
    for (const auto& row : rows) all[samples.reading_names[i]].push_back(row[i]);
  return all;
}

void add_device(Json& json, const Record& record) {
  for (const auto& [name, text] : record.device_facts) json["device"][name] = text;
  if (record.samples.reading_names.empty()) return;
  json["device_before"] = readings(record.samples, record.samples.readings_before);
  json["device_after"] = readings(record.samples, record.samples.readings_after);
}

void add_prediction(Json& json, const Record& record) {
  if (!record.topology.empty()) json["topology"] = record.topology;
  json["predicted_seconds"] = or_null(record.predicted_seconds);
  if (!record.extrapolated.empty()) json["extrapolated"] = record.extrapolated;
}

}  // namespace

std::optional<double> Record::bound_seconds() const {
  if (!traffic || question.ranks < 2) return std::nullopt;
  // Of rounds back to back the hops of one may pass while another's bytes do, and an empty round is read once for all.
  if (question.cadence != Cadence::isolated) return static_cast<double>(traffic->sent_bytes) / link.beta;
  return link.bound_seconds(traffic->hops, traffic->sent_bytes);
}

Json Record::verification() const {
  Json json = Json::object();
  const Case& verified = stand_in ? *stand_in : question;
  if (stand_in) {
    Json shape;
    verified.workload->describe(shape);
    for (const char* size : {"heads", "d_k", "d_v", "tokens", "chunk", "dtype"})
      if (shape.contains(size)) json[std::string("verified_") + size] = shape[size];
    json["verified_blocks"] = verified.blocks;
    json["verified_ranks"] = verified.ranks;
  }
  verified.workload->describe_verification(json, verified.ranks);
  return json;
}

Json to_json(const Record& record, const Provenance& provenance) {
  Json json{{"schema", schema}};
  add_question(json, record);
  json["warmup"] = record.warmup;
  json["rounds"] = record.rounds;
  if (record.skipped.empty()) {
    add_traffic(json, record);
    json["wrong"] = record.wrong;
    json["relative_error"] = record.relative_error;
    json["tolerance"] = record.tolerance;
    json.update(record.verification());
  } else {
    json["skipped"] = record.skipped;
  }
  if (record.is_timed()) add_timings(json, record);
  add_prediction(json, record);
  add_device(json, record);
  json["baseline"] = provenance.baseline;
  json["seed"] = provenance.seed;
  // JSON has no word for "not a number": an unknown skew is null.
  json["start_skew_seconds"] =
      std::isfinite(provenance.start_skew_seconds) ? Json(provenance.start_skew_seconds) : Json(nullptr);
  json["machine"] = provenance.machine;
  json["commit"] = provenance.commit;
  json["time"] = utc_now();
  json["run"] = provenance.run;
  return json;
}

Journal::Journal(const std::string& path) : path_(path) {
  if (path.empty()) return;
  if (std::filesystem::is_directory(path))
    throw UsageError("cannot write records to '" + path + "': it is a directory");
  file_.open(path, std::ios::app);
  if (!file_) throw UsageError("cannot write records to '" + path + "'");
}

void Journal::append(const Json& line) {
  if (path_.empty()) return;
  file_ << line.dump() << '\n' << std::flush;
  if (!file_) throw SystemError("cannot append to '" + path_ + "'");
}

}  // namespace baton
