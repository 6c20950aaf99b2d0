// SPDX-License-Identifier: Apache-2.0
// Records as JSON lines: each value under its key. The schema says where it stands, and when it is
// left out.
#include "harness/record/json.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <variant>

#include "harness/record/values.hpp"

namespace baton {
namespace {

using Json = nlohmann::ordered_json;
using schema::Values;

/// `value`, or nothing if it is zero.
std::optional<double> unless_zero(double value) { return value > 0 ? std::optional(value) : std::nullopt; }

/// A member of an optional value; nothing if the value is not there.
template <class Whole, class Part>
std::optional<Part> part(const std::optional<Whole>& whole, Part Whole::*member) {
  return whole ? std::optional((*whole).*member) : std::nullopt;
}

/// `value`, or nothing if it is infinite or not a number, which JSON cannot tell.
std::optional<double> if_finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// Seconds to a tenth of a nanosecond, which is finer than any timer here, for shorter lines.
std::vector<double> rounded(std::vector<double> seconds) {
  for (double& value : seconds) value = std::round(value * 1e10) / 1e10;
  return seconds;
}

Json json_of(const AxisValue& axis) {
  return std::visit(
      [](const auto& value) -> Json {
        if constexpr (std::is_same_v<decltype(value), const std::monostate&>)
          return nullptr;
        else
          return value;
      },
      axis.value);
}

void add_case(Values& values, const Record& record) {
  const Case& c = record.bench_case;
  AxisValues axes = c.axes();
  const bool is_measured = find_backend(c.executor).is_measured;  // simulated rows have one round
  axes.add({"warmup", record.warmup, is_measured ? in_contest : in_record_alone});
  axes.add({"rounds", record.rounds, is_measured ? in_contest : in_record_alone});
  for (const AxisValue& axis : axes) values.set(axis.key, json_of(axis));
  values.set("case", c.key());
  values.set("contest", axes.folded(in_contest));
  values.set("implementation", record.implementation);
  values.set("ranks_per_node", record.ranks_per_node);
  values.set("state_bytes", c.workload->state_bytes());
  values.set("blocks", record.blocks);
  if (c.blocks != auto_blocks) values.set("blocks_asked", c.blocks);
}

void add_cost(Values& values, const Record& record) {
  values.set("sent_bytes", part(record.cost, &Cost::sent_bytes));
  if (record.cost && record.matrices) {
    values.set("sent_matrix_bytes", record.matrices->sent_bytes);
    values.set("sent_state_bytes", record.cost->sent_bytes - record.matrices->sent_bytes);
    values.set("product_flops", record.matrices->product_flops);
    values.set("product_flops_per_second", unless_zero(record.alpha_beta.product_flops_per_second));
  }
  values.set("hops", part(record.cost, &Cost::hops));
  values.set("messages", record.messages);
  values.set("tensor_bytes", part(record.footprint, &Footprint::tensors));
  values.set("scratch_bytes", part(record.footprint, &Footprint::scratch));
  values.set("wire_dtype", to_string(record.wire));
  values.set("bound_seconds", record.bound_seconds());
  values.set("alpha_seconds", record.alpha_beta.alpha_seconds);
  values.set("beta_bytes_per_second", record.alpha_beta.beta);
  values.set("floor_seconds", unless_zero(record.alpha_beta.floor_seconds));
  if (record.alpha_beta.message_beta > 0) {
    values.set("message_alpha_seconds", record.alpha_beta.message_alpha_seconds);
    values.set("message_beta_bytes_per_second", record.alpha_beta.message_beta);
  }
}

/// Adds the numbers of compared elements, tokens and heads, and the sizes of the smaller case that
/// was verified, if there is one.
void add_verified_sizes(Values& values, const Record& record) {
  const Verified& verified = record.verified;
  values.set("verified_elements", verified.elements);
  values.set("verified_tokens", verified.heads.empty() ? 0 : verified.tokens);
  values.set("verified_heads", verified.heads.size());
  values.set("verified_head_numbers", verified.heads);
  if (!verified.verified_case) return;
  const Case& smaller = *verified.verified_case;
  const AxisValues axes = smaller.workload->axes();
  values.set("verified_tokens", axes.whole("tokens"));
  values.set("verified_heads", axes.whole("heads"));
  values.set("verified_d_k", axes.whole("d_k"));
  values.set("verified_d_v", axes.whole("d_v"));
  if (axes.has("chunk")) values.set("verified_chunk", axes.whole("chunk"));
  if (axes.has("dtype")) values.set("verified_dtype", axes.text("dtype"));
  values.set("verified_blocks", smaller.blocks);
  values.set("verified_ranks", smaller.ranks);
}

void add_verification(Values& values, const Record& record) {
  values.set("wrong", record.verified.wrong);
  values.set("first_wrong", record.verified.first_wrong);
  values.set("relative_error", record.verified.relative_error);
  values.set("tolerance", record.verified.tolerance);
  values.set("verification_seconds", record.verified.seconds);
  add_verified_sizes(values, record);
}

void add_timings(Values& values, const Record& record) {
  values.set("seconds", rounded(record.samples.seconds));
  values.set("timed_seconds", record.timed_seconds);
  values.set("first_seconds", record.samples.first_seconds);
  values.set("mean_seconds", record.summary.mean);
  values.set("median_seconds", record.summary.median);
  values.set("ci95_seconds", record.summary.ci95);
  values.set("min_seconds", record.summary.min);
  values.set("p50_seconds", record.summary.p50);
  values.set("p95_seconds", record.summary.p95);
  values.set("p99_seconds", record.summary.p99);
  values.set("max_seconds", record.summary.max);
  values.set("rounds_as_last", record.rounds_as_last());
  const Case& c = record.bench_case;
  if (c.workload->payload_bytes(c.ranks) > 0) {
    values.set("algbw_bytes_per_second", c.workload->payload_bytes(c.ranks) / record.summary.median);
    values.set("busbw_bytes_per_second", c.workload->port_bytes(c.ranks) / record.summary.median);
  }
}

/// Adds the times of each rank, and how the case compares with others.
void add_ranks_and_standing(Values& values, const Record& record) {
  Json ranks = Json::array();
  for (const auto& row : record.samples.rank_seconds) ranks.push_back(rounded(row));
  values.set("rank_seconds", std::move(ranks));
  values.set("ratio", part(record.standing.ratio, &Ratio::value));
  values.set("hidden", record.standing.hidden);
  values.set("exposed_seconds", record.standing.exposed_seconds);
  values.set("ratio_ci95", part(record.standing.ratio, &Ratio::ci95));
  values.set("ratio_to", record.standing.ratio_to);
}

void add_launches(Values& values, const OverLaunches& over) {
  values.set("over_launches.launches", over.launches);
  values.set("over_launches.median_seconds", over.summary.median);
  values.set("over_launches.ci95_seconds", over.summary.ci95);
  values.set("over_launches.ratio", part(over.standing.ratio, &Ratio::value));
  values.set("over_launches.ratio_ci95", part(over.standing.ratio, &Ratio::ci95));
  values.set("over_launches.ratio_to", over.standing.ratio_to);
  values.set("over_launches.hidden", over.standing.hidden);
}

void add_failure(Values& values, const Failure& failure) {
  values.set("failed", failure.reason);
  values.set("failed_rank", failure.rank);
  values.set("failed_step", failure.step);
  values.set("exit_code", failure.exit_code);
  values.set("failed_after_seconds", failure.seconds);
}

void add_prediction(Values& values, const Record& record) {
  values.set("topology", record.topology);
  values.set("stands_on", record.stands_on);
  values.set("predicted_seconds", record.predicted_seconds);
  values.set("extrapolated", record.extrapolated);
}

void add_conditions(Values& values, const Conditions& conditions) {
  values.set("conditions.cores", conditions.cores);
  values.set("conditions.busy_threads", conditions.busy_threads);
  values.set("conditions.oversubscribed", conditions.oversubscribed());
  values.set("conditions.other_load", conditions.other_load);
  if (conditions.quota) values.set("conditions.quota", *conditions.quota);
  if (conditions.throttled > 0) values.set("conditions.throttled", conditions.throttled);
}

/// The readings of every rank's device, by their names.
Json readings(const Samples& samples, const std::vector<std::vector<double>>& rows) {
  Json all = Json::object();
  for (std::size_t i = 0; i < samples.reading_names.size(); ++i)
    for (const auto& row : rows) all[samples.reading_names[i]].push_back(row[i]);
  return all;
}

void add_device(Values& values, const Record& record) {
  Json facts;
  for (const auto& [name, text] : record.device_facts) facts[name] = text;
  values.set("device", std::move(facts));
  if (record.samples.reading_names.empty()) return;
  values.set("device_before", readings(record.samples, record.samples.readings_before));
  values.set("device_after", readings(record.samples, record.samples.readings_after));
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
  for (const auto& [name, value] : machine.settings) json["settings"][name] = value;
  return json;
}

void add_hosts(Values& values, const HostsOfRanks& hosts, const AlphaBeta& model) {
  values.set("hosts.count", hosts.hosts);
  values.set("hosts.placement", hosts.placement);
  values.set("hosts.within_by", hosts.within_by);
  values.set("hosts.between_by", hosts.between_by);
  values.set("hosts.between_alpha_seconds", model.between_alpha_seconds);
  values.set("hosts.between_beta_bytes_per_second", model.between_beta);
  values.set("hosts.clock_error_seconds", if_finite(hosts.clock_error_seconds));
}

void add_provenance(Values& values, const Provenance& provenance) {
  values.set("baseline", provenance.baseline);
  values.set("seed", provenance.seed);
  values.set("machine", machine_json(provenance.machine));
  values.set("commit", provenance.commit);
  values.set("time", utc_now());
  values.set("run", provenance.run);
  values.set("session", provenance.session);
  values.set("launch", provenance.launch);
  values.set("launches", provenance.launches);
}

/// Escapes what no reader of records takes in a text, such as a tab in a variable.
void make_printable(Json& json) {
  if (json.is_string()) json = printable(json.get<std::string>());
  if (json.is_array() && !json.empty() && json.front().is_number()) return;
  if (json.is_array())
    for (Json& one : json) make_printable(one);
  if (!json.is_object()) return;
  Json shown = Json::object();
  for (auto& [key, value] : json.items()) {
    make_printable(value);
    shown[printable(key)] = std::move(value);
  }
  json = std::move(shown);
}

Values row_of(const Record& record) {
  Values values;
  values.set("schema", schema::version);
  add_case(values, record);
  if (record.failure) {
    add_failure(values, *record.failure);
  } else if (!record.skipped.empty()) {
    values.set("skipped", record.skipped);
  } else {
    add_cost(values, record);
    add_verification(values, record);
  }
  if (record.is_timed()) add_timings(values, record);
  add_prediction(values, record);
  if (record.conditions) add_conditions(values, *record.conditions);
  return values;
}

}  // namespace

nlohmann::ordered_json row_json(const Record& record) { return row_of(record).json(); }

nlohmann::ordered_json json_of(const Record& record, const Provenance& provenance) {
  Values values = row_of(record);
  if (record.is_timed()) add_ranks_and_standing(values, record);
  if (record.over_launches) add_launches(values, *record.over_launches);
  add_device(values, record);
  values.set("transport", record.transport);
  values.set("start_skew_seconds", if_finite(record.start_skew_seconds));
  if (record.hosts) add_hosts(values, *record.hosts, record.alpha_beta);
  add_provenance(values, provenance);
  Json json = values.json();
  make_printable(json);
  return json;
}

std::string line_of(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace baton
