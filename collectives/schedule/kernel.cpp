// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/kernel.hpp"

namespace baton {

void apply(float* into, const float* earlier, const float* later_decay, const float* later, std::int64_t rows,
           std::int64_t row) {
  for (std::int64_t i = 0; i < rows; ++i) {
    const float decay = later_decay[i];
    const std::int64_t begin = i * row;
    for (std::int64_t j = begin; j < begin + row; ++j) into[j] = decay * earlier[j] + later[j];
  }
}

void combine_on_host(const HostOperands& operands) {
  const bool composes = operands.writes.size() == 2;
  const auto earlier = operands.reads[composes ? 1 : 0];
  const auto later_decay = operands.reads[composes ? 2 : 1];
  const auto later = operands.reads[composes ? 3 : 2];
  const auto rows = static_cast<std::int64_t>(later_decay.size());
  const auto row = static_cast<std::int64_t>(later.size()) / rows;
  apply(operands.writes.back().data(), earlier.data(), later_decay.data(), later.data(), rows, row);
  if (!composes) return;
  // The decay is computed last because in place it overwrites an operand of the state.
  const auto decay = operands.writes.front();
  const auto earlier_decay = operands.reads[0];
  for (std::size_t i = 0; i < decay.size(); ++i) decay[i] = later_decay[i] * earlier_decay[i];
}

}  // namespace baton
