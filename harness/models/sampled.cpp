// SPDX-License-Identifier: Apache-2.0
#include "harness/models/sampled.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/layers/verify.hpp"

namespace baton {
namespace {

constexpr std::int64_t elements_at_once = 1 << 20;  // 4 MB, which stay in a cache

}  // namespace

Slice RankTensors::find(const std::string& name, std::int64_t count) const {
  const std::vector<Buffer>& buffers = schedule_.buffers();
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].name == name && buffers[i].count == count)
      return {static_cast<int>(i), 0, count, buffers[i].dtype};
  return {};
}

std::vector<float> RankTensors::part(const Slice& slice) const {
  std::vector<float> values(slice.count);
  executor_.read(values, rank_, slice);
  return values;
}

std::vector<std::vector<float>> RankTensors::columns(const Slice& matrix, std::int64_t width,
                                                     std::span<const Columns> of) const {
  const std::int64_t rows = matrix.count / width, step = std::max<std::int64_t>(1, elements_at_once / width);
  std::vector<std::vector<float>> all;
  for (const Columns& columns : of) all.emplace_back().reserve(rows * columns.count);
  for (std::int64_t first = 0; first < rows; first += step) {
    piece_.resize(std::min(step, rows - first) * width);
    executor_.read(piece_, rank_, matrix.part(first * width, std::ssize(piece_)));
    for (std::size_t i = 0; i < of.size(); ++i)
      for (auto row = piece_.begin(); row != piece_.end(); row += width)
        all[i].insert(all[i].end(), row + of[i].first, row + of[i].first + of[i].count);
  }
  return all;
}

std::vector<double> RankTensors::of_head(const Slice& tensor, std::int64_t row, std::int64_t width,
                                         std::int64_t head, std::int64_t first, std::int64_t tokens) const {
  if (width == 0) return {};
  const Columns own{head * width, width};
  const auto values = columns(tensor.part(first * row, tokens * row), row, {&own, 1}).front();
  return {values.begin(), values.end()};
}

std::vector<int> SampledRun::layers(Attention kind) const {
  std::vector<int> found;
  for (int layer = 0; layer < stack().shape.count(); ++layer)
    if (stack().shape.layers[layer] == kind && stack().leaves_tensors(layer)) found.push_back(layer);
  return found;
}

double SampledRun::attention_tolerance() const {
  return layer_tolerance(stack().layer.dtype, wire_roundoff, problem.ranks);
}

void note(Comparison& into, double error, double tolerance, const std::string& what) {
  into.relative_error = std::max(into.relative_error, error);
  into.tolerance = std::max(into.tolerance, tolerance);
  if (error <= tolerance) return;
  if (into.wrong++ == 0)
    into.first = fmt::format("{}: relative error {:.1e}, at most {:.1e} is right", what, error, tolerance);
}

}  // namespace baton
