// SPDX-License-Identifier: Apache-2.0
// Steps of a model that has run, each compared with its own operands: for sizes whose oracle would
// take hours.
//
//   for each compute step of a product, a norm, a gate or an MLP:
//     skip it if a later step has overwritten an operand, or it has itself, and no row of it can be
//     made again from what is there
//     product:  256 neighbouring results in each of three rows, summed up in double precision
//     others:   three rows of the operands through the host body
//   what is at the ends:  ends.cpp
#include "harness/models/sampled_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/models/ends.hpp"
#include "harness/models/sampled.hpp"
#include "sp_methods/models/kernels/gates.hpp"
#include "sp_methods/models/kernels/key_parts.hpp"

namespace baton {
namespace {

constexpr int sampled_rows = 3;
using Sample = std::array<std::int64_t, sampled_rows>;

/// Three rows, one from each third of `count`; each seed gives others.
Sample rows_of(std::int64_t count, std::uint64_t seed) {
  Sample rows;
  for (int i = 0; i < sampled_rows; ++i)
    rows[i] = std::min(
        count - 1, (i * count + static_cast<std::int64_t>(seed * 977 % 1000) * count / 1000) / sampled_rows);
  return rows;
}

/// True if a step of `steps` from number `from` on writes some of `slice`.
bool is_overwritten(const std::vector<Step>& steps, std::size_t from, const Slice& slice) {
  return std::any_of(steps.begin() + static_cast<std::ptrdiff_t>(from), steps.end(), [&](const Step& step) {
    return std::any_of(step.writes.begin(), step.writes.end(),
                       [&](const Slice& written) { return written.overlaps(slice); });
  });
}

/// The host body of the kernel with these parameters that is called `name`.
template <class Contract, class... Others>
std::function<void(const HostOperands&)> host_body(const std::string& name,
                                                   const typename Contract::Parameters& parameters) {
  if (name == Contract::name) return kernel_of<Contract>(parameters).body;
  if constexpr (sizeof...(Others) > 0) return host_body<Others...>(name, parameters);
  throw std::logic_error("no kernel on rows is called " + name);
}

/// The rows that a kernel works on, if it works on each alone. Their width is 0 if that of each
/// operand is another.
std::optional<Rows> rows_of(const Kernel& kernel) {
  if (const auto* keys = std::any_cast<KeyParts>(&kernel.parameters)) return Rows{.count = keys->tokens};
  if (const auto* rows = std::any_cast<Rows>(&kernel.parameters)) return *rows;
  if (const auto* gates = std::any_cast<GateRows>(&kernel.parameters)) return gates->rows();
  const auto* turn = std::any_cast<Rotation>(&kernel.parameters);
  if (turn == nullptr) return std::nullopt;
  return Rows{.count = turn->tokens, .width = turn->heads * turn->width, .dtype = turn->dtype};
}

/// Runs the host body of a kernel on some of its rows, whose operands lie side by side.
void run_on(const Kernel& kernel, std::span<const std::int64_t> rows, const HostOperands& operands) {
  const auto count = static_cast<std::int64_t>(rows.size());
  if (const auto* p = std::any_cast<Rows>(&kernel.parameters))
    return host_body<RmsNorm, RmsNormGradients, GatedNorm, GatedNormGradients, LogGates, LogGateGradients,
                     FixedGates, Logistic, LogisticGradients, SigmoidGate, SigmoidGateGradients, SwiGlu,
                     SwiGluGradients>(kernel.name, {count, p->width, p->constant, {}, p->groups})(operands);
  if (const auto* p = std::any_cast<GateRows>(&kernel.parameters))
    return host_body<DecayGates, DecayGateGradients>(
        kernel.name, {count, p->heads, p->group, Dtype::f32, p->bound})(operands);
  if (const auto* p = std::any_cast<KeyParts>(&kernel.parameters))
    return host_body<JoinKeys, JoinKeyGradients>(kernel.name, {count, p->heads, p->shared, p->own})(operands);
  auto one = std::any_cast<Rotation>(kernel.parameters);
  const std::size_t width = static_cast<std::size_t>(one.heads * one.width);
  one.tokens = 1;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Rotation turn = one;
    turn.positions = Positions::run(one.positions.at(rows[i]), 1);
    kernel_of<Rotate>(turn).body({.writes = {operands.writes[0].subspan(i * width, width)},
                                  .reads = {operands.reads[0].subspan(i * width, width)}});
  }
}

/// The numbers of a row of an operand; 0 if it is a vector.
std::int64_t width_of(const Slice& slice, const Rows& p) {
  if (p.width == 0) return slice.count / p.count;
  return slice.count == p.count * p.width ? p.width : 0;
}

/// A matrix at some of its rows, or all of a vector.
std::vector<float> sample_of(const RankTensors& tensors, const Slice& slice, const Rows& p,
                             std::span<const std::int64_t> rows) {
  const std::int64_t width = width_of(slice, p);
  if (width == 0) return tensors.part(slice);
  std::vector<float> values;
  for (const std::int64_t row : rows) {
    const std::vector<float> part = tensors.part(slice.part(row * width, width));
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

/// The results of the host body of a kernel for some of its rows. Its sums over all rows are wrong.
std::vector<std::vector<float>> made_rows(const RankTensors& tensors, const Step& step, const Kernel& kernel,
                                          const Rows& p, std::span<const std::int64_t> rows) {
  const auto count = static_cast<std::int64_t>(rows.size());
  std::vector<std::vector<float>> reads, writes;
  HostOperands operands;
  for (const Slice& slice : step.reads) reads.push_back(sample_of(tensors, slice, p, rows));
  for (const Slice& slice : step.writes) {
    const std::int64_t width = width_of(slice, p);
    writes.emplace_back(width > 0 ? count * width : slice.count);
  }
  for (auto& values : writes) operands.writes.emplace_back(values);
  for (auto& values : reads) operands.reads.emplace_back(values);
  run_on(kernel, rows, operands);
  return writes;
}

/// The relative error of sampled rows of a kernel on rows. Sums over all rows are left out.
double row_error(const RankTensors& tensors, const Step& step, const Kernel& kernel, const Rows& p,
                 const Sample& rows) {
  const auto expected = made_rows(tensors, step, kernel, p, rows);
  double error = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (width_of(step.writes[i], p) > 0) {
      const double one = relative_error(sample_of(tensors, step.writes[i], p, rows),
                                        {expected[i].begin(), expected[i].end()});
      if (std::isnan(one)) return one;
      error = std::max(error, one);
    }
  return error;
}

/// True if neither step `at` nor a later one writes what step `at` reads.
bool has_its_operands(const Schedule& schedule, std::size_t at) {
  return std::none_of(schedule.steps()[at].reads.begin(), schedule.steps()[at].reads.end(),
                      [&](const Slice& slice) { return is_overwritten(schedule.steps(), at, slice); });
}

/// The step that made `matrix`, which step `at` reads, if it is a kernel on rows whose operands are
/// still there, so that it can run again. Otherwise the number of steps.
std::size_t maker_of(const Schedule& schedule, std::size_t at, const Slice& matrix) {
  const auto& steps = schedule.steps();
  for (std::size_t i = at; i-- > 0;) {
    if (!is_overwritten({steps[i]}, 0, matrix)) continue;
    const bool makes_rows = steps[i].verb == Verb::compute && steps[i].writes.front() == matrix &&
                            std::any_cast<Rows>(&schedule.kernels()[steps[i].body].parameters) != nullptr;
    return makes_rows && has_its_operands(schedule, i) ? i : steps.size();
  }
  return steps.size();
}

/// The factors of one row of a product that does not sum over tokens; empty if they were
/// overwritten.
std::vector<float> factors_of(const RankTensors& tensors, std::size_t at, const Product& p,
                              std::int64_t row) {
  const Schedule& schedule = tensors.schedule();
  const Slice& a = schedule.steps()[at].reads[0];
  if (!is_overwritten(schedule.steps(), at, a)) return tensors.part(a.part(row * p.depth, p.depth));
  const std::size_t maker = maker_of(schedule, at, a);
  if (maker == schedule.steps().size()) return {};
  const Step& step = schedule.steps()[maker];
  const Kernel& kernel = schedule.kernels()[step.body];
  const auto rows = *std::any_cast<Rows>(&kernel.parameters);
  if (rows.count * rows.width != p.rows * p.depth) return {};
  // A row of a product may be that of several heads.
  std::vector<std::int64_t> of_heads(p.depth / rows.width);
  std::iota(of_heads.begin(), of_heads.end(), row * p.depth / rows.width);
  std::vector<float> made = made_rows(tensors, step, kernel, rows, of_heads).front();
  for (float& x : made) x = a.dtype == Dtype::bf16 ? from_bf16(to_bf16(x)) : x;
  return made;
}

/// The operands of a window of one row of a product: factors [depth], and b [depth, window].
struct Window {
  std::int64_t row, left, count;
  std::vector<float> factors, b;
};

/// The windows of a product: some columns of each sampled row, since all would take longer than the
/// rest of a case. Empty if the factors were overwritten.
std::vector<Window> windows_of(const RankTensors& tensors, std::size_t at, const Product& p,
                               const Sample& rows) {
  const Step& step = tensors.schedule().steps()[at];
  const std::int64_t count = std::min<std::int64_t>(p.columns, 256);
  std::vector<Window> windows;
  std::vector<Columns> of_a, of_b;
  for (const std::int64_t row : rows) {
    const std::int64_t left = row * 256 % (p.columns - count + 1);
    windows.push_back({row, left, count, {}, {}});
    of_a.push_back({row, 1});
    of_b.push_back({left, count});
    if (p.transposes_a) continue;
    windows.back().factors = factors_of(tensors, at, p, row);
    if (windows.back().factors.empty()) return {};
  }
  const auto a =
      p.transposes_a ? tensors.columns(step.reads[0], p.rows, of_a) : std::vector<std::vector<float>>{};
  for (std::size_t i = 0; i < a.size(); ++i) windows[i].factors = a[i];
  if (!p.transposes_b) {
    const auto b = tensors.columns(step.reads[1], p.columns, of_b);
    for (std::size_t i = 0; i < b.size(); ++i) windows[i].b = b[i];
    return windows;
  }
  for (Window& window : windows) {
    const auto lines = tensors.part(step.reads[1].part(window.left * p.depth, count * p.depth));
    window.b.resize(lines.size());
    for (std::int64_t j = 0; j < count; ++j)
      for (std::int64_t n = 0; n < p.depth; ++n) window.b[n * count + j] = lines[j * p.depth + n];
  }
  return windows;
}

/// The relative error of sampled rows of a product; -1 if its factors were overwritten.
double product_error(const RankTensors& tensors, std::size_t at, const Product& p, const Sample& rows) {
  const Step& step = tensors.schedule().steps()[at];
  const Slice &c = step.reads[2], &out = step.writes[0];
  std::vector<float> got;
  std::vector<double> expected;
  const std::vector<Window> windows = windows_of(tensors, at, p, rows);
  if (windows.empty()) return -1;
  for (const auto& [row, left, count, factors, b] : windows) {
    const std::int64_t at_out = row * p.columns + left;
    std::vector<double> sums(count, 0.0);
    if (!c.empty())
      for (std::int64_t j = 0; const float x : tensors.part(c.part(at_out, count))) sums[j++] = x;
    for (std::int64_t n = 0; n < p.depth; ++n)
      for (std::int64_t j = 0; j < count; ++j) sums[j] += double{factors[n]} * b[n * count + j];
    const std::vector<float> of_row = tensors.part(out.part(at_out, count));
    got.insert(got.end(), of_row.begin(), of_row.end());
    expected.insert(expected.end(), sums.begin(), sums.end());
  }
  return relative_error(got, expected);
}

/// The relative error of a step; -1 if it is not compared.
double step_error(const RankTensors& tensors, std::size_t at, std::uint64_t seed) {
  const Schedule& schedule = tensors.schedule();
  const Step& step = schedule.steps()[at];
  if (step.verb != Verb::compute) return -1;
  const Kernel& kernel = schedule.kernels()[step.body];
  const auto* product = std::any_cast<Product>(&kernel.parameters);
  const std::optional<Rows> rows = rows_of(kernel);
  if (product == nullptr && !rows) return end_error(tensors, at, seed);
  const auto is_lost = [&](std::size_t from, const Slice& slice) {
    return is_overwritten(schedule.steps(), from, slice);
  };
  if (std::any_of(step.writes.begin(), step.writes.end(),
                  [&](auto& slice) { return is_lost(at + 1, slice); }))
    return -1;
  if (rows)
    return has_its_operands(schedule, at)
               ? row_error(tensors, step, kernel, *rows, rows_of(rows->count, seed))
               : -1;
  // A product that sums over tokens reads whole matrices, and needs them as they are.
  const bool sums_tokens = product->transposes_a;
  if (sums_tokens && ((at + seed) % 3 != 0 || is_lost(at, step.reads[0]))) return -1;
  if (is_lost(at, step.reads[1]) || is_lost(at, step.reads[2])) return -1;
  return product_error(tensors, at, *product, rows_of(product->rows, seed));
}

/// The largest accepted relative error of a step: about twice the mean error of rounding to bf16,
/// or the error of sums in f32.
double step_tolerance(Dtype dtype) { return dtype == Dtype::bf16 ? bf16_roundoff : 2e-5; }

}  // namespace

Comparison compare_steps(const SampledRun& run) {
  Comparison result;
  int compared = 0;
  result.tokens = sampled_rows;
  for (const RankTensors& tensors : run.ranks) {
    const Schedule& schedule = tensors.schedule();
    for (std::size_t at = 0; at < schedule.steps().size(); ++at) {
      const double error = step_error(tensors, at, run.problem.seed);
      if (error < 0) continue;
      ++compared;
      note(result, error, step_tolerance(run.stack().layer.dtype),
           fmt::format("rank {}, step {} ({}), sampled rows", tensors.rank(), at,
                       schedule.kernels()[schedule.steps()[at].body].name));
    }
  }
  if (compared == 0 && result.wrong++ == 0) result.first = "no step could be compared with its operands";
  return result;
}

}  // namespace baton
