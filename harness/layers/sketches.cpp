// SPDX-License-Identifier: Apache-2.0
#include "harness/layers/sketches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/cases/fold.hpp"

namespace baton {

std::string given_outputs(const std::vector<Schedule>& schedules) {
  for (const Schedule& schedule : schedules)
    for (const Buffer& buffer : schedule.buffers())
      if (buffer.role == Role::input && buffer.name == "lse") return " with given outputs";
  return "";
}

void LayerSketch::begin(const std::string& name, const LayerProblem& problem) {
  const std::int64_t rows = LayerProblem::is_state(name) ? 1 : problem.all_tokens();
  tensors[name].resize(rows * problem.heads(name));
}

void LayerSketch::add(const std::string& name, std::int64_t first, std::span<const float> rows,
                      const LayerProblem& problem, const Positions& positions) {
  const std::int64_t width = problem.width(name), heads = problem.heads(name);
  const bool is_state = LayerProblem::is_state(name);
  std::vector<float> signs(width);
  for (std::int64_t c = 0; c < width; ++c)
    signs[c] = (mixed(static_cast<std::uint64_t>(c)) >> 63) != 0 ? 1.0F : -1.0F;
  std::vector<double>& sums = tensors.at(name);
  const float* row = rows.data();
  for (std::int64_t t = first; row < rows.data() + rows.size(); ++t)
    for (std::int64_t head = 0; head < heads; ++head, row += width)
      sums[(is_state ? 0 : positions.at(t)) * heads + head] =
          std::inner_product(signs.begin(), signs.end(), row, 0.0);
}

Comparison compare_sketches(const LayerSketch& got, const LayerSketch& other, std::int64_t tokens,
                            double tolerance, const LeastNorm& least_norm) {
  Comparison result;
  for (const auto& [name, sums] : got.tensors) {
    const auto& others = other.tensors.at(name);
    const std::int64_t rows = LayerProblem::is_state(name) ? 1 : tokens;
    const auto heads = static_cast<std::int64_t>(sums.size()) / rows;
    std::vector<double> errors(heads, 0.0), values(heads, 0.0);  // squared
    for (std::size_t i = 0; i < sums.size(); ++i) {
      errors[i % heads] += (sums[i] - others[i]) * (sums[i] - others[i]);
      values[i % heads] += others[i] * others[i];
    }
    // Heads whose values are far below those of the others count as if they were not.
    const double least =
        0.0025 * std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(heads);
    const double most = 2 * tolerance * most_rms(rows) / 4;
    for (std::int64_t head = 0; head < heads; ++head) {
      double error = std::sqrt(errors[head] / std::max({values[head], least, 1e-300}));
      if (error <= most) continue;
      error = std::min(error, std::sqrt(errors[head]) / std::max(least_norm(name, head), 1e-300));
      if (error <= most) continue;
      if (result.wrong++ == 0)
        result.first = fmt::format("{} of head {}: {:.1e} from the result of {}, at most {:.1e} is right",
                                   name, head, error, other.method, most);
    }
  }
  return result;
}

}  // namespace baton
