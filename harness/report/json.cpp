// SPDX-License-Identifier: Apache-2.0
// Records as JSON lines.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/record/fields.hpp"
#include "harness/report/record.hpp"

namespace baton {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const auto& value) { return value ? Json(*value) : Json(nullptr); }

/// Seconds to a tenth of a nanosecond, which is finer than any timer here: shorter lines.
std::vector<double> rounded(std::vector<double> seconds) {
  for (double& value : seconds) value = std::round(value * 1e10) / 1e10;
  return seconds;
}

void add_description(Json& json, const Description& d) {
  json["bench"] = d.bench;
  json["name"] = d.name;
  if (!d.layer) json["kind"] = d.kind;
  if (d.layer) json.update({{"pass", d.layer->pass}, {"mode", d.layer->mode}});
  json["direction"] = d.direction;
  if (d.layer)
    json.update({{"attention", d.layer->attention},
                 {"layout", d.layer->layout},
                 {"gate", d.layer->gate},
                 {"gates", d.layer->gates},
                 {"chunk", d.layer->chunk},
                 {"dtype", d.layer->dtype},
                 {"groups", d.layer->groups},
                 {"scan", d.layer->scan}});
  if (d.model)
    json.update({{"model", d.model->model},
                 {"line", d.model->line},
                 {"layers", d.model->layers},
                 {"width", d.model->width},
                 {"beside", d.model->beside},
                 {"flops_a_token", d.model->flops_a_token},
                 {"flops_a_pair", d.model->flops_a_pair},
                 {"peak_flops", d.model->peak_flops > 0 ? Json(d.model->peak_flops) : Json(nullptr)}});
  json["heads"] = d.heads;
  if (d.layer && d.layer->kv_heads != d.heads) json["kv_heads"] = d.layer->kv_heads;
  if (d.layer && d.layer->latent) json["latent"] = true;
  if (d.layer && d.layer->packed > 0) json["packed"] = d.layer->packed;
  if (d.layer && !d.layer->kernel.empty()) json["kernel"] = d.layer->kernel;
  if (d.layer && !d.layer->kernel_version.empty()) json["kernel_version"] = d.layer->kernel_version;
  json["d_k"] = d.d_k;
  json["d_v"] = d.d_v;
  if (d.map != MapKind::diagonal) json["map"] = to_string(d.map);
  json["tokens"] = d.tokens;
}

/// The contest of the case among cases of as many rounds. Simulated rows have one whatever is asked.
std::string contest_of(const Record& record) {
  const Case& c = record.bench_case;
  const bool is_measured = find_backend(c.executor).is_measured;
  return c.contest() + (is_measured ? fmt::format("/warmup:{}/rounds:{}", record.warmup, record.rounds) : "");
}

void add_case(Json& json, const Record& record) {
  const Case& c = record.bench_case;
  json["case"] = c.key();
  json["family"] = find_backend(c.executor).family;
  json["contest"] = contest_of(record);
  add_description(json, c.workload->describe());
  json["implementation"] = record.implementation;
  json["executor"] = c.executor;
  json["ranks"] = c.ranks;
  json["ranks_a_node"] = record.ranks_a_node;
  if (c.ranks_a_gpu > 1) json["ranks_per_gpu"] = c.ranks_a_gpu;
  json["state_bytes"] = c.workload->state_bytes();
  json["blocks"] = record.blocks;
  json["blocks_asked"] = c.blocks == auto_blocks ? Json("auto") : Json(c.blocks);
  json["cadence"] = to_string(c.timing);
  json["cycle"] = c.cycle;
}

void add_cost(Json& json, const Record& record) {
  json["sent_bytes"] = record.cost ? Json(record.cost->sent_bytes) : Json(nullptr);
  if (record.cost && record.matrices) {
    json["sent_matrix_bytes"] = record.matrices->sent_bytes;
    json["sent_state_bytes"] = record.cost->sent_bytes - record.matrices->sent_bytes;
    json["product_flops"] = record.matrices->product_flops;
    if (record.alpha_beta.product_flops_a_second > 0)
      json["product_flops_per_second"] = record.alpha_beta.product_flops_a_second;
  }
  json["hops"] = record.cost ? Json(record.cost->hops) : Json(nullptr);
  json["messages"] = or_null(record.messages);
  json["tensor_bytes"] = record.footprint ? Json(record.footprint->tensors) : Json(nullptr);
  json["scratch_bytes"] = record.footprint ? Json(record.footprint->scratch) : Json(nullptr);
  json["wire_dtype"] = to_string(record.wire);
  json["bound_seconds"] = or_null(record.bound_seconds());
  json["alpha_seconds"] = record.alpha_beta.alpha_seconds;
  json["beta_bytes_per_second"] = record.alpha_beta.beta;
  if (record.alpha_beta.floor_seconds > 0) json["floor_seconds"] = record.alpha_beta.floor_seconds;
  if (record.alpha_beta.message_beta > 0) {
    json["message_alpha_seconds"] = record.alpha_beta.message_alpha_seconds;
    json["message_beta_bytes_per_second"] = record.alpha_beta.message_beta;
  }
}

/// Adds what was compared, and the sizes of the smaller case that was, if there is one.
void add_verified_sizes(Json& json, const Record& record) {
  const Verified& verified = record.verified;
  if (verified.elements > 0) json["verified_elements"] = verified.elements;
  if (!verified.heads.empty()) {
    json["verified_tokens"] = verified.tokens;
    json["verified_heads"] = verified.heads.size();
    json["verified_head_numbers"] = verified.heads;
  }
  if (!verified.verified_case) return;
  const Case& smaller = *verified.verified_case;
  const Description d = smaller.workload->describe();
  json["verified_tokens"] = d.tokens;
  json["verified_heads"] = d.heads;
  json["verified_d_k"] = d.d_k;
  json["verified_d_v"] = d.d_v;
  if (d.layer) json["verified_chunk"] = d.layer->chunk;
  if (d.layer) json["verified_dtype"] = d.layer->dtype;
  json["verified_blocks"] = smaller.blocks;
  json["verified_ranks"] = smaller.ranks;
}

void add_verification(Json& json, const Record& record) {
  json["wrong"] = record.verified.wrong;
  if (record.verified.wrong > 0) json["first_wrong"] = record.verified.first_wrong;
  json["relative_error"] = record.verified.relative_error;
  json["tolerance"] = record.verified.tolerance;
  json["verification_seconds"] = record.verified.seconds;
  add_verified_sizes(json, record);
}

void add_timings(Json& json, const Record& record) {
  json["seconds"] = rounded(record.samples.seconds);
  for (const auto& row : record.samples.rank_seconds) json["rank_seconds"].push_back(rounded(row));
  json["timed_seconds"] = record.timed_seconds;
  json["first_seconds"] = or_null(record.samples.first_seconds);
  json["mean_seconds"] = record.summary.mean;
  json["median_seconds"] = record.summary.median;
  json["ci95_seconds"] = record.summary.ci95;
  json["min_seconds"] = record.summary.min;
  json["p50_seconds"] = record.summary.p50;
  json["p95_seconds"] = record.summary.p95;
  json["p99_seconds"] = record.summary.p99;
  json["max_seconds"] = record.summary.max;
  if (const auto rounds = record.rounds_as_last(); !rounds.empty()) json["rounds_as_last"] = rounds;
  const Case& c = record.bench_case;
  if (c.workload->payload_bytes(c.ranks) > 0) {
    json["algbw_bytes_per_second"] = c.workload->payload_bytes(c.ranks) / record.summary.median;
    json["busbw_bytes_per_second"] = c.workload->port_bytes(c.ranks) / record.summary.median;
  }
  const auto& ratio = record.standing.ratio;
  json["ratio"] = ratio ? Json(ratio->value) : Json(nullptr);
  json["hidden"] = or_null(record.standing.hidden);
  if (record.standing.exposed_seconds) json["exposed_seconds"] = *record.standing.exposed_seconds;
  json["ratio_ci95"] = ratio ? Json(ratio->ci95) : Json(nullptr);
}

void add_launches(Json& json, const OverLaunches& over) {
  const auto& ratio = over.standing.ratio;
  json["over_launches"] = {{"launches", over.launches},
                           {"median_seconds", over.summary.median},
                           {"ci95_seconds", over.summary.ci95},
                           {"ratio", ratio ? Json(ratio->value) : Json(nullptr)},
                           {"ratio_ci95", ratio ? Json(ratio->ci95) : Json(nullptr)},
                           {"hidden", or_null(over.standing.hidden)}};
}

void add_failure(Json& json, const Failure& failure) {
  json["failed"] = failure.reason;
  json["failed_rank"] = or_null(failure.rank);
  json["failed_step"] = or_null(failure.step);
  json["exit_code"] = failure.exit_code;
  json["failed_after_seconds"] = failure.seconds;
}

void add_prediction(Json& json, const Record& record) {
  if (!record.topology.empty()) json["topology"] = record.topology;
  if (!record.stands_on.empty()) json["stands_on"] = record.stands_on;
  json["predicted_seconds"] = or_null(record.predicted_seconds);
  if (!record.extrapolated.empty()) json["extrapolated"] = record.extrapolated;
}

void add_conditions(Json& json, const Conditions& conditions) {
  json["conditions"] = {{"cores", conditions.cores},
                        {"busy_threads", conditions.busy_threads},
                        {"oversubscribed", conditions.oversubscribed()},
                        {"other_load", or_null(conditions.other_load)}};
}

/// The readings of every rank's device, by their names.
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

Json machine_json(const Machine& machine) {
  Json json{{"host", machine.host},
            {"cpu", machine.cpu},
            {"cores", machine.cores},
            {"memory_gib", machine.memory_gib},
            {"system", machine.system},
            {"kernel", machine.kernel},
            {"compiler", machine.compiler},
            {"build", machine.build},
            {"mpi", machine.mpi}};
  for (const auto& [name, version] : machine.libraries) json[name] = version;
  json["environment"] = Json::object();
  for (const auto& [name, value] : machine.environment) json["environment"][name] = value;
  return json;
}

void add_hosts(Json& json, const HostsOfRanks& hosts, const AlphaBeta& model) {
  const auto finite_or_null = [](double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); };
  json["hosts"] = {{"count", hosts.hosts},
                   {"placement", hosts.placement},
                   {"within_by", hosts.within_by},
                   {"between_by", hosts.between_by},
                   {"between_alpha_seconds", model.between_alpha_seconds},
                   {"between_beta_bytes_per_second", model.between_beta},
                   {"clock_error_seconds", finite_or_null(hosts.clock_error_seconds)}};
}

}  // namespace

std::string json_line(const Record& record, const Provenance& provenance) {
  Json json{{"schema", schema::version}};
  add_case(json, record);
  json["warmup"] = record.warmup;
  json["rounds"] = record.rounds;
  if (record.failure) {
    add_failure(json, *record.failure);
  } else if (!record.skipped.empty()) {
    json["skipped"] = record.skipped;
  } else {
    add_cost(json, record);
    add_verification(json, record);
  }
  if (record.is_timed()) add_timings(json, record);
  if (record.over_launches) add_launches(json, *record.over_launches);
  add_prediction(json, record);
  if (record.conditions) add_conditions(json, *record.conditions);
  add_device(json, record);
  json["baseline"] = provenance.baseline;
  json["seed"] = provenance.seed;
  // JSON has no word for "not a number": an unknown skew is null.
  json["start_skew_seconds"] =
      std::isfinite(record.start_skew_seconds) ? Json(record.start_skew_seconds) : Json(nullptr);
  if (record.hosts) add_hosts(json, *record.hosts, record.alpha_beta);
  json["machine"] = machine_json(provenance.machine);
  json["commit"] = provenance.commit;
  json["time"] = utc_now();
  json["run"] = provenance.run;
  if (!provenance.session.empty()) json["session"] = provenance.session;
  json["launch"] = provenance.launch;
  json["launches"] = provenance.launches;
  // Names and variables of the environment may hold any bytes.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace baton
