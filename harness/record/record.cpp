// SPDX-License-Identifier: Apache-2.0
#include "harness/record/record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "harness/record/fields.hpp"

namespace baton {
namespace {

/// The bound over the time, if it is more than 1 by more than its error.
std::optional<double> impossible_bound_share(const Record& record) {
  double share = 0, least = 0;
  if (record.over_launches) {
    if (!record.bound_share) return std::nullopt;
    share = record.bound_share->value;
    least = record.bound_share->ci95[0] / (1 + schema::ratio_margin);
  } else if (const auto bound = record.bound_seconds()) {
    share = *bound / record.summary.median;
    least = *bound / record.summary.ci95[1] / (1 + schema::bound_margin_in_one_launch);
  }
  return least > 1 ? std::optional(share) : std::nullopt;
}

/// True for ranks that wait for their turn on a core or on a GPU.
bool is_crowded(const Record& record) {
  return record.bench_case.ranks_per_gpu > 1 || (record.conditions && record.conditions->oversubscribed());
}

}  // namespace

Verified sum(Verified before, const Verified& after) {
  before.wrong += after.wrong;
  before.relative_error = std::max(before.relative_error, after.relative_error);
  before.tolerance = std::max(before.tolerance, after.tolerance);
  before.seconds += after.seconds;
  before.elements = std::max(before.elements, after.elements);
  before.tokens = std::max(before.tokens, after.tokens);
  std::vector<std::int64_t> heads;
  std::set_union(before.heads.begin(), before.heads.end(), after.heads.begin(), after.heads.end(),
                 std::back_inserter(heads));
  before.heads = std::move(heads);
  if (before.first_wrong.empty()) before.first_wrong = after.first_wrong;
  return before;
}

std::optional<double> Record::bound_seconds() const {
  if (!cost || bench_case.ranks < 2 || bench_case.ranks_per_gpu > 1) return std::nullopt;
  if (known_bound_seconds) return known_bound_seconds;
  // In rounds back to back the hops of one round may overlap with the bytes of another, and an
  // empty round is read once.
  if (bench_case.cadence != Cadence::isolated)
    return alpha_beta.busy_seconds(cost->sent_bytes, product_flops());
  return alpha_beta.bound_seconds(cost->hops, cost->sent_bytes, product_flops());
}

std::vector<int> Record::rounds_as_last() const {
  const auto& ranks = samples.rank_seconds;
  if (ranks.empty()) return known_rounds_as_last;
  if (ranks.size() < 2 || static_cast<int>(ranks.size()) != bench_case.ranks) return {};
  std::vector<int> rounds(ranks.size(), 0);
  for (std::size_t round = 0; round < ranks.front().size(); ++round) {
    const auto slowest = std::max_element(ranks.begin(), ranks.end(),
                                          [round](auto& a, auto& b) { return a[round] < b[round]; });
    ++rounds[slowest - ranks.begin()];
  }
  return rounds;
}

std::optional<double> Record::peak_share(double seconds) const {
  const AxisValues axes = bench_case.workload->axes();
  if (axes.real("peak_flops") <= 0) return std::nullopt;
  const double tokens = static_cast<double>(axes.whole("tokens"));
  const double sequence = tokens * (axes.text("line") == "full" ? bench_case.ranks : 1);
  const double flops = axes.real("flops_per_token") + axes.real("flops_per_pair") * sequence;
  return tokens * flops / seconds / axes.real("peak_flops");
}

std::string Record::why_impossible() const {
  if (!is_timed() || !find_backend(bench_case.executor).is_measured || is_crowded(*this)) return {};
  if (const auto least = peak_share(shown().ci95[1]); least && *least > 1)
    return fmt::format("takes {:.0f} % of --peak, which cannot be: the peak is not that of this hardware",
                       100 * *peak_share(shown().median));
  if (const auto share = impossible_bound_share(*this))
    return fmt::format(
        "takes {:.0f} % of its bound, less than the error of the bound allows, which cannot be: the link "
        "was measured slower than it is",
        100 / *share);
  return {};
}

}  // namespace baton
