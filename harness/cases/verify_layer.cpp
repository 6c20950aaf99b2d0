// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs of a layer by the names of their buffers.
#include "harness/cases/verify_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "harness/cases/verify.hpp"

namespace baton {

double layer_tolerance(Dtype dtype, double roundoff, int ranks) {
  // dg is the difference of two sums of products, each of two tensors that messages went into.
  constexpr int tensors = 4;
  return (dtype == Dtype::bf16 ? 5e-3 : 2e-5) + tensors * scan_tolerance(roundoff, ranks - 1);
}

void write_layer(Executor& executor, std::span<const Schedule> schedules, const SpMethod& method,
                 const LayerOracle& oracle, std::int64_t tokens) {
  for (int rank : executor.local_ranks()) {
    const Schedule& s = schedules[rank];
    const Positions positions = positions_of(method, rank, s.ranks(), tokens);
    for (const Buffer& buffer : s.buffers()) {
      const Slice slice = s.buffer(buffer.name);
      if (buffer.role == Role::input) executor.write(rank, slice, oracle.input(buffer.name, rank, positions));
      if (buffer.role == Role::output)
        executor.write(rank, slice,
                       std::vector<float>(buffer.count, std::numeric_limits<float>::quiet_NaN()));
    }
  }
}

Comparison compare_layer(const Executor& executor, std::span<const Schedule> schedules,
                         const SpMethod& method, const LayerOracle& oracle, std::int64_t tokens) {
  Comparison result;
  for (int rank : executor.local_ranks()) {
    const Schedule& s = schedules[rank];
    const Positions positions = positions_of(method, rank, s.ranks(), tokens);
    for (const Buffer& buffer : s.buffers()) {
      if (buffer.role != Role::output) continue;
      std::vector<float> got(buffer.count);
      executor.read(got, rank, s.buffer(buffer.name));
      const double error = relative_error(got, oracle.expected(buffer.name, positions));
      result.relative_error = std::max(result.relative_error, error);
      const double tolerance = layer_tolerance(buffer.dtype, wire_roundoff(executor), s.ranks());
      result.tolerance = std::max(result.tolerance, tolerance);
      if (error <= tolerance) continue;
      if (result.wrong++ == 0)
        result.first = fmt::format("rank {}, {}: relative error {:.1e}", rank, buffer.name, error);
    }
  }
  return result;
}

}  // namespace baton
