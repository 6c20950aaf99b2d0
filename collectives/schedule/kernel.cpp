// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the operator of scans on hosts.
#include "collectives/schedule/kernel.hpp"

#include <algorithm>

namespace baton {
namespace {

/// out [rows, row] = x [rows, row] times w [row, row], plus y [rows, row] unless it is null. `out`
/// may be x or y.
void multiply(float* out, const float* x, const std::vector<float>& w, const float* y, std::int64_t rows,
              std::int64_t row) {
  std::vector<float> sum(row);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t a = 0; a < row; ++a) sum[a] = y == nullptr ? 0 : y[i * row + a];
    for (std::int64_t b = 0; b < row; ++b) {
      const float factor = x[i * row + b];
      const float* weights = w.data() + b * row;
      for (std::int64_t a = 0; a < row; ++a) sum[a] += factor * weights[a];
    }
    std::copy(sum.begin(), sum.end(), out + i * row);
  }
}

/// The matrix that a row is multiplied with from the right to become A x, or A^T x: A transposed,
/// or A as it lies.
std::vector<float> from_the_right(std::span<const float> matrix, std::int64_t row, bool transposed) {
  std::vector<float> w(matrix.begin(), matrix.end());
  for (std::int64_t a = 0; a < row && !transposed; ++a)
    for (std::int64_t b = 0; b < row; ++b) w[b * row + a] = matrix[a * row + b];
  return w;
}

/// Computes the state of a combine whose decays or matrices are shared within heads, head by head.
void apply_by_heads(std::span<float> into, std::span<const float> earlier, std::span<const float> decays,
                    std::span<const float> later, const Combine& by) {
  const auto rows = static_cast<std::int64_t>(later.size()) / by.row;
  const std::int64_t unit = by.form.unit(by.row);
  for (std::int64_t head = 0, from = 0; from < rows; ++head) {
    const std::int64_t to = std::min(rows, (head + 1) * by.form.share - by.form.first), at = from * by.row;
    const auto decay = decays.subspan(head * unit, unit);
    if (by.form.kind == MapKind::affine)
      multiply(into.data() + at, earlier.data() + at, from_the_right(decay, by.row, by.form.transposed),
               later.data() + at, to - from, by.row);
    else
      apply(into.data() + at, earlier.data() + at, decay.data(), later.data() + at, 1, (to - from) * by.row);
    from = to;
  }
}

/// Composes the decays or matrices of two maps: products of numbers, or A2 A1. If matrices act
/// transposed, the result is A1 A2, since A2^T A1^T = (A1 A2)^T.
void compose_decays(std::span<float> into, std::span<const float> earlier, std::span<const float> later,
                    const Combine& by) {
  if (by.form.kind != MapKind::affine) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = later[i] * earlier[i];
    return;
  }
  const auto left = by.form.transposed ? earlier : later, right = by.form.transposed ? later : earlier;
  const std::size_t unit = by.form.unit(by.row);
  for (std::size_t at = 0; at < into.size(); at += unit)
    multiply(into.data() + at, left.data() + at, {right.begin() + at, right.begin() + at + unit}, nullptr,
             by.row, by.row);
}

}  // namespace

void apply(float* into, const float* earlier, const float* later_decay, const float* later, std::int64_t rows,
           std::int64_t row) {
  for (std::int64_t i = 0; i < rows; ++i) {
    const float decay = later_decay[i];
    const std::int64_t begin = i * row;
    for (std::int64_t j = begin; j < begin + row; ++j) into[j] = decay * earlier[j] + later[j];
  }
}

void combine_on_host(const HostOperands& operands, const Combine& by) {
  const bool composes = operands.writes.size() == 2;
  const auto earlier = operands.reads[composes ? 1 : 0];
  const auto later_decay = operands.reads[composes ? 2 : 1];
  const auto later = operands.reads[composes ? 3 : 2];
  const auto into = operands.writes.back();
  if (by.form.kind == MapKind::diagonal) {
    const auto rows = static_cast<std::int64_t>(later_decay.size());
    const auto row = static_cast<std::int64_t>(later.size()) / rows;
    apply(into.data(), earlier.data(), later_decay.data(), later.data(), rows, row);
  } else {
    apply_by_heads(into, earlier, later_decay, later, by);
  }
  // The decay is computed last because in place it overwrites an operand of the state.
  if (composes) compose_decays(operands.writes.front(), operands.reads[0], later_decay, by);
}

}  // namespace baton
