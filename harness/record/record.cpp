// SPDX-License-Identifier: Apache-2.0
#include "harness/record/record.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace baton {
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

}  // namespace baton
