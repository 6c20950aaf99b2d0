// SPDX-License-Identifier: Apache-2.0
//   matrices [heads, d_k, d_k], states [heads, d_v, d_k], both in equally many messages of a kind
//   sent(d_v) = matrices + states,  sent(2 d_v) = matrices + 2 states
//   matrices = 2 sent(d_v) - sent(2 d_v)
#include "harness/cases/matrices.hpp"

#include <algorithm>

#include "harness/cases/case.hpp"

namespace baton {
namespace {

std::int64_t sent_bytes_of(const Schedule& schedule) {
  std::int64_t bytes = 0;
  for (const Step& step : schedule.steps())
    if (step.verb == Verb::send) bytes += step.reads[0].bytes();
  return bytes;
}

double product_flops_of(const Schedule& schedule) {
  double flops = 0;
  for (const Step& step : schedule.steps())
    if (step.verb == Verb::combine && step.combine.form.kind == MapKind::affine)
      flops += step.combine_flops();
  return flops;
}

}  // namespace

std::optional<MatrixCost> matrix_cost_of(const Case& bench_case, int blocks) {
  const auto twice = bench_case.workload->with_twice_the_values();
  if (twice == nullptr || bench_case.workload->map() != MapKind::affine) return std::nullopt;
  const Split split = bench_case.split(blocks);
  MatrixCost cost;
  std::int64_t most = -1;
  int busiest = 0;
  for (int rank = 0; rank < split.ranks; ++rank) {
    const Schedule schedule = bench_case.workload->build_rank(rank, split);
    cost.product_flops = std::max(cost.product_flops, product_flops_of(schedule));
    if (const std::int64_t sent = sent_bytes_of(schedule); sent > most) most = sent, busiest = rank;
  }
  cost.sent_bytes = 2 * most - sent_bytes_of(twice->build_rank(busiest, split));
  return cost;
}

}  // namespace baton
