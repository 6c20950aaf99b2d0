// SPDX-License-Identifier: Apache-2.0
#include "harness/record/facts.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <variant>

namespace baton {
namespace {

using Json = Result::Json;

/// `value`, or nothing if it is zero.
std::optional<double> unless_zero(double value) { return value > 0 ? std::optional(value) : std::nullopt; }

/// `value`, or nothing if it is infinite or not a number, which JSON cannot tell.
std::optional<double> if_finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// A member of an optional value; nothing if the value is not there.
template <class Whole, class Part>
std::optional<Part> part(const std::optional<Whole>& whole, Part Whole::*member) {
  return whole ? std::optional((*whole).*member) : std::nullopt;
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

/// The readings of every rank's device, by their names.
Json readings(const Samples& samples, const std::vector<std::vector<double>>& rows) {
  Json all = Json::object();
  for (std::size_t i = 0; i < samples.reading_names.size(); ++i)
    for (const auto& row : rows) all[samples.reading_names[i]].push_back(row[i]);
  return all;
}

}  // namespace

std::optional<double> bound_seconds(const Case& bench_case, const CaseTraffic& traffic) {
  if (!traffic.cost || bench_case.ranks < 2 || bench_case.ranks_per_gpu > 1) return std::nullopt;
  if (traffic.known_bound_seconds) return traffic.known_bound_seconds;
  const auto& [bytes, hops] = *traffic.cost;
  // In rounds back to back the hops of one round may overlap with the bytes of another, and an
  // empty round is read once.
  if (bench_case.cadence != Cadence::isolated)
    return traffic.link.busy_seconds(bytes, traffic.product_flops());
  return traffic.link.bound_seconds(hops, bytes, traffic.product_flops());
}

void add_case(Result& result, const Case& bench_case, int warmup, int rounds) {
  result.set("schema", schema::version);
  AxisValues axes = bench_case.axes();
  const bool is_measured = bench_case.backend->is_measured;  // simulated rows have one round
  axes.add({"warmup", warmup, is_measured ? in_contest : in_record_alone});
  axes.add({"rounds", rounds, is_measured ? in_contest : in_record_alone});
  for (const AxisValue& axis : axes) result.set(axis.key, json_of(axis));
  result.set("case", bench_case.key());
  result.set("contest", axes.folded(in_contest));
  result.set("implementation", "schedule");
  result.set("state_bytes", bench_case.workload->state_bytes());
  result.set("blocks", 1);
  if (bench_case.blocks != auto_blocks) result.set("blocks_asked", bench_case.blocks);
  result.set("predicted_seconds", nullptr);
  result.set("start_skew_seconds", 0.0);
}

void add_traffic(Result& result, const Case& bench_case, const CaseTraffic& traffic) {
  result.set("sent_bytes", part(traffic.cost, &Cost::sent_bytes));
  if (traffic.cost && traffic.matrices) {
    result.set("sent_matrix_bytes", traffic.matrices->sent_bytes);
    result.set("sent_state_bytes", traffic.cost->sent_bytes - traffic.matrices->sent_bytes);
    result.set("product_flops", traffic.matrices->product_flops);
    result.set("product_flops_per_second", unless_zero(traffic.link.product_flops_per_second));
  }
  result.set("hops", part(traffic.cost, &Cost::hops));
  result.set("messages", traffic.messages);
  result.set("tensor_bytes", part(traffic.footprint, &Footprint::tensors));
  result.set("scratch_bytes", part(traffic.footprint, &Footprint::scratch));
  if (bench_case.workload->is_layer() && bench_case.ranks > 1) result.set("balance", traffic.balance);
  result.set("wire_dtype", to_string(traffic.wire));
  result.set("bound_seconds", bound_seconds(bench_case, traffic));
  result.set("alpha_seconds", traffic.link.alpha_seconds);
  result.set("beta_bytes_per_second", traffic.link.beta);
  result.set("floor_seconds", unless_zero(traffic.link.floor_seconds));
  if (traffic.link.message_beta > 0) {
    result.set("message_alpha_seconds", traffic.link.message_alpha_seconds);
    result.set("message_beta_bytes_per_second", traffic.link.message_beta);
  }
}

void add_verification(Result& result, const Comparison& found, double seconds) {
  result.set("wrong", found.wrong);
  result.set("first_wrong", found.first);
  result.set("relative_error", found.relative_error);
  result.set("tolerance", found.tolerance);
  result.set("verification_seconds", seconds);
  result.set("verified_elements", found.elements);
  result.set("verified_tokens", found.heads.empty() ? 0 : found.tokens);
  result.set("verified_heads", found.heads.size());
  result.set("verified_head_numbers", found.heads);
}

void add_verified_case(Result& result, const Case& smaller) {
  const AxisValues axes = smaller.workload->axes();
  result.set("verified_tokens", axes.whole("tokens"));
  result.set("verified_heads", axes.whole("heads"));
  result.set("verified_d_k", axes.whole("d_k"));
  result.set("verified_d_v", axes.whole("d_v"));
  if (axes.has("chunk")) result.set("verified_chunk", axes.whole("chunk"));
  if (axes.has("dtype")) result.set("verified_dtype", axes.text("dtype"));
  result.set("verified_blocks", smaller.blocks);
  result.set("verified_ranks", smaller.ranks);
}

void add_times(Result& result, const Case& bench_case, const Samples& samples) {
  const Summary summary = summarise(samples.seconds);
  result.set("seconds", samples.seconds);
  Json ranks = Json::array();
  for (const auto& row : samples.rank_seconds) ranks.push_back(rounded(row));
  result.set("rank_seconds", std::move(ranks));
  result.set("rounds_as_last", rounds_as_last(samples.rank_seconds, bench_case.ranks));
  result.set("first_seconds", samples.first_seconds);
  set_summary(result, summary);
  add_bandwidths(result, bench_case, summary.median);
  if (samples.reading_names.empty()) return;
  result.set("device_before", readings(samples, samples.readings_before));
  result.set("device_after", readings(samples, samples.readings_after));
}

void round_times(Result& result) {
  if (result.is_timed()) result.set("seconds", rounded(result.value<std::vector<double>>("seconds")));
}

void set_summary(Result& result, const Summary& summary) {
  result.set("mean_seconds", summary.mean);
  result.set("median_seconds", summary.median);
  result.set("ci95_seconds", summary.ci95);
  result.set("min_seconds", summary.min);
  result.set("p50_seconds", summary.p50);
  result.set("p95_seconds", summary.p95);
  result.set("p99_seconds", summary.p99);
  result.set("max_seconds", summary.max);
}

void add_bandwidths(Result& result, const Case& bench_case, double median) {
  const Workload& workload = *bench_case.workload;
  const double payload = workload.payload_bytes(bench_case.ranks);
  if (payload <= 0) return;
  result.set("algbw_bytes_per_second", payload / median);
  result.set("busbw_bytes_per_second", workload.port_bytes(bench_case.ranks) / median);
}

std::vector<int> rounds_as_last(const std::vector<std::vector<double>>& rank_seconds, int ranks) {
  if (ranks < 2 || static_cast<int>(rank_seconds.size()) != ranks) return {};
  std::vector<int> rounds(rank_seconds.size(), 0);
  for (std::size_t round = 0; round < rank_seconds.front().size(); ++round) {
    const auto slowest = std::max_element(rank_seconds.begin(), rank_seconds.end(),
                                          [round](auto& a, auto& b) { return a[round] < b[round]; });
    ++rounds[slowest - rank_seconds.begin()];
  }
  return rounds;
}

void add_conditions(Result& result, const Conditions& conditions) {
  result.set("conditions.cores", conditions.cores);
  result.set("conditions.busy_threads", conditions.busy_threads);
  result.set("conditions.oversubscribed", conditions.oversubscribed());
  result.set("conditions.other_load", conditions.other_load);
  result.set("conditions.quota", conditions.quota);
  result.set("conditions.throttled", conditions.throttled);
}

void add_hosts(Result& result, const HostsOfRanks& hosts, const AlphaBeta& link) {
  result.set("hosts.count", hosts.hosts);
  result.set("hosts.placement", hosts.placement);
  result.set("hosts.within_by", hosts.within_by);
  result.set("hosts.between_by", hosts.between_by);
  result.set("hosts.between_alpha_seconds", link.between_alpha_seconds);
  result.set("hosts.between_beta_bytes_per_second", link.between_beta);
  result.set("hosts.clock_error_seconds", if_finite(hosts.clock_error_seconds));
}

void add_machine(Result& result, const Machine& machine) {
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
  result.set("machine", std::move(json));
}

void add_failure(Result& result, const Failure& failure) {
  result.set("failed", failure.reason);
  result.set("failed_rank", failure.rank);
  result.set("failed_step", failure.step);
  result.set("exit_code", failure.exit_code);
  result.set("failed_after_seconds", failure.seconds);
}

}  // namespace baton
