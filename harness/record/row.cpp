// SPDX-License-Identifier: Apache-2.0
#include "harness/record/row.hpp"

#include <fmt/format.h>

namespace baton {
namespace {

/// The bound over the time, if it is more than 1 by more than its error.
std::optional<double> impossible_bound_share(const Row& row) {
  const std::optional<double> bound = row.result.known<double>("bound_seconds");
  if (!bound || (row.launches > 1 && !row.bound_share)) return std::nullopt;
  const double share = row.bound_share ? row.bound_share->value : *bound / row.median();
  const double least = row.bound_share ? row.bound_share->ci95[0] / (1 + schema::ratio_margin)
                                       : *bound / row.result.value<Interval>("ci95_seconds")[1] /
                                             (1 + schema::bound_margin_in_one_launch);
  return least > 1 ? std::optional(share) : std::nullopt;
}

}  // namespace

bool Row::is_crowded() const {
  return bench_case.ranks_per_gpu > 1 || result.value<bool>("conditions.oversubscribed");
}

std::optional<double> Row::peak_share(double seconds) const {
  const AxisValues axes = bench_case.workload->axes();
  if (axes.real("peak_flops") <= 0) return std::nullopt;
  const double tokens = static_cast<double>(axes.whole("tokens"));
  const double sequence = tokens * (axes.text("line") == "full" ? bench_case.ranks : 1);
  const double flops = axes.real("flops_per_token") + axes.real("flops_per_pair") * sequence;
  return tokens * flops / seconds / axes.real("peak_flops");
}

std::string Row::why_impossible() const {
  if (!is_timed() || is_simulated() || is_crowded()) return {};
  if (const auto least = peak_share(result.value<Interval>("ci95_seconds")[1]); least && *least > 1)
    return fmt::format("takes {:.0f} % of --peak, which cannot be: the peak is not that of this hardware",
                       100 * *peak_share(median()));
  if (const auto share = impossible_bound_share(*this))
    return fmt::format(
        "takes {:.0f} % of its bound, less than the error of the bound allows, which cannot be: the link "
        "was measured slower than it is",
        100 / *share);
  return {};
}

}  // namespace baton
