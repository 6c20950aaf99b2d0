// SPDX-License-Identifier: Apache-2.0
#include "harness/runners/link_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/measure/prediction.hpp"
#include "harness/measure/statistics.hpp"

namespace baton {

Comparison LinkCheck::too_fast(const Prepared& prepared, const Samples& samples, double start_skew_seconds,
                               HostLoad& load) {
  constexpr int most_tries = 5;
  constexpr double least_of_floor = 0.8;  // by which launches may differ
  const Case& bench_case = prepared.bench_case;
  if (ranks_ < 2 || bench_case.ranks_per_gpu > 1 || bench_case.cadence != Cadence::isolated ||
      !bench_case.backend->process_per_rank)
    return {};
  const double found = median(samples.seconds);
  const double skew = std::isnan(start_skew_seconds) ? 0 : start_skew_seconds;
  const auto is_below_floor = [&] { return found < least_of_floor * best_link_.floor_seconds; };
  const auto is_possible = [&] {
    return !is_below_floor() &&
           found + std::min(skew, best_link_.alpha_seconds) >= bound(prepared, best_link_) / 2;
  };
  if (is_possible()) return {};
  for (int tries = 0; tries < most_tries && !is_possible(); ++tries) {
    best_link_ = best_of(best_link_, measure_alpha_beta(executor_, team_, placement_));
    double& products = best_link_.product_flops_per_second;
    if (products > 0) products = std::max(products, measure_products(executor_, team_, ranks_, 1));
  }
  executor_.prepare(prepared.schedules);
  const Conditions here = load.conditions(team_, bench_case.threads_per_rank);
  const bool shared = team_.max(here.shared_cores() ? 1.0 : 0.0) > 0;  // ranks read loads apart
  if (is_possible() || shared || team_.rank() > 0) return {};
  if (is_below_floor())
    return {.wrong = 1,
            .first = fmt::format("the median of {:.3g} us is below the {:.3g} us of an empty round",
                                 found * 1e6, best_link_.floor_seconds * 1e6)};
  return {.wrong = 1,
          .first = fmt::format("the median of {:.3g} us is below half of the bound of {:.3g} us", found * 1e6,
                               bound(prepared, best_link_) * 1e6)};
}

double LinkCheck::bound(const Prepared& prepared, const AlphaBeta& link) const {
  CaseTraffic traffic = prepared.traffic;
  traffic.link = link;
  traffic.known_bound_seconds = bound_over_hosts(prepared, link);
  return bound_seconds(prepared.bench_case, traffic).value_or(0);
}

std::optional<double> LinkCheck::bound_over_hosts(const Prepared& prepared, const AlphaBeta& link) const {
  const Case& bench_case = prepared.bench_case;
  if (!prepared.traffic.cost || prepared.traffic.wire != Dtype::f32 ||
      bench_case.cadence != Cadence::isolated)
    return std::nullopt;
  return baton::bound_over_hosts(bench_case, prepared.blocks, link, placement_);
}

}  // namespace baton
