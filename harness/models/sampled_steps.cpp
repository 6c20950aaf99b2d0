// SPDX-License-Identifier: Apache-2.0
// Steps of a model that has run, each compared with its own operands: for sizes whose oracle would
// take hours.
//
//   for each compute step of a product, a norm, a gate or an MLP:
//     skip it if a later step has overwritten an operand, or it has itself, and no row of it can be
//     made again from what is there
//     product:  256 neighbouring results in each of three rows, summed up in double precision
//     others:   three rows of the operands through the host body
//   the first layer's attention: one head, forward, by the recurrence over its own operands
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/models/workload.hpp"
#include "models/kernels/block.hpp"
#include "sp_methods/kernels/reference/attention.hpp"
#include "sp_methods/layer_oracle.hpp"

namespace baton {
namespace {

constexpr int sampled_rows = 3;
constexpr double attention_tolerance = 5e-3;  // as for layers of bf16
using Sample = std::array<std::int64_t, sampled_rows>;

/// Rows from all thirds of `count`, others for each seed.
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

/// What one rank has, read as it is asked for; a slice that is asked for twice in a row is kept.
class RankTensors {
 public:
  RankTensors(const Executor& executor, int rank) : executor_(executor), rank_(rank) {}

  const std::vector<float>& all(const Slice& slice) {
    for (auto& [held, values] : held_)
      if (held == slice) return values;
    auto& [held, values] = held_[turn_++ % held_.size()];
    held = slice;
    values = part(slice);
    return values;
  }
  std::vector<float> part(const Slice& slice) const {
    std::vector<float> values(slice.count);
    executor_.read(values, rank_, slice);
    return values;
  }

 private:
  const Executor& executor_;
  int rank_;
  std::size_t turn_ = 0;
  std::array<std::pair<Slice, std::vector<float>>, 3> held_;
};

/// The host body of the kernel on rows that is called `name`.
template <class Contract, class... Others>
std::function<void(const HostOperands&)> host_body(const std::string& name, const Rows& rows) {
  if (name == Contract::name) return kernel_of<Contract>(rows).body;
  if constexpr (sizeof...(Others) > 0) return host_body<Others...>(name, rows);
  throw std::logic_error("no kernel on rows is called " + name);
}

/// A matrix [rows.count, rows.width] at some rows, or all of a vector.
std::vector<float> sample_of(const RankTensors& tensors, const Slice& slice, const Rows& p,
                             std::span<const std::int64_t> rows) {
  if (slice.count != p.count * p.width) return tensors.part(slice);
  std::vector<float> values;
  for (const std::int64_t row : rows) {
    const std::vector<float> part = tensors.part(slice.part(row * p.width, p.width));
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

/// What the host body of a kernel on rows makes of some of them. Sums over all rows are wrong.
std::vector<std::vector<float>> made_rows(const RankTensors& tensors, const Step& step, const Kernel& kernel,
                                          const Rows& p, std::span<const std::int64_t> rows) {
  const auto count = static_cast<std::int64_t>(rows.size());
  std::vector<std::vector<float>> reads, writes;
  HostOperands operands;
  for (const Slice& slice : step.reads) reads.push_back(sample_of(tensors, slice, p, rows));
  for (const Slice& slice : step.writes)
    writes.emplace_back(slice.count == p.count * p.width ? count * p.width : slice.count);
  for (auto& values : writes) operands.writes.emplace_back(values);
  for (auto& values : reads) operands.reads.emplace_back(values);
  host_body<RmsNorm, RmsNormGradients, GatedNorm, GatedNormGradients, LogGates, LogGateGradients, SwiGlu,
            SwiGluGradients>(kernel.name, {count, p.width, p.constant})(operands);
  return writes;
}

/// The error of sampled rows of a kernel on rows. Sums over all rows are left out.
double row_error(const RankTensors& tensors, const Step& step, const Kernel& kernel, const Rows& p,
                 const Sample& rows) {
  const auto expected = made_rows(tensors, step, kernel, p, rows);
  double error = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (step.writes[i].count == p.count * p.width) {
      const double one = relative_error(sample_of(tensors, step.writes[i], p, rows),
                                        {expected[i].begin(), expected[i].end()});
      if (std::isnan(one)) return one;
      error = std::max(error, one);
    }
  return error;
}

/// True if no step behind number `at` writes what that step reads, nor itself.
bool has_its_operands(const Schedule& schedule, std::size_t at) {
  return std::none_of(schedule.steps()[at].reads.begin(), schedule.steps()[at].reads.end(),
                      [&](const Slice& slice) { return is_overwritten(schedule.steps(), at, slice); });
}

/// The step that made a matrix of rows which step `at` reads, if it has its operands: what is made
/// again in the backward pass can be made once more. Else the number of steps.
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

/// The factors of one row of a product; nothing if they are no longer there.
std::vector<float> factors_of(RankTensors& tensors, const Schedule& schedule, std::size_t at,
                              const Product& p, std::int64_t row) {
  const Slice& a = schedule.steps()[at].reads[0];
  if (p.transposes_a) {
    const std::vector<float>& whole = tensors.all(a);
    std::vector<float> column(p.depth);
    for (std::int64_t n = 0; n < p.depth; ++n) column[n] = whole[n * p.rows + row];
    return column;
  }
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

/// The error of sampled rows of a product, or -1 if its factors are no longer there.
double product_error(RankTensors& tensors, const Schedule& schedule, std::size_t at, const Product& p,
                     const Sample& rows) {
  const Step& step = schedule.steps()[at];
  const Slice &c = step.reads[2], &out = step.writes[0];
  std::vector<float> got;
  std::vector<double> expected;
  for (const std::int64_t row : rows) {
    const std::vector<float> factors = factors_of(tensors, schedule, at, p, row);
    if (factors.empty()) return -1;
    const std::vector<float>& b = tensors.all(step.reads[1]);
    // A window of the columns: all of them would take longer than the rest of a case.
    const std::int64_t count = std::min<std::int64_t>(p.columns, 256),
                       left = row * 256 % (p.columns - count + 1), at_out = row * p.columns + left;
    std::vector<double> sums(count, 0.0);
    if (!c.empty())
      for (std::int64_t j = 0; const float x : tensors.part(c.part(at_out, count))) sums[j++] = x;
    for (std::int64_t n = 0; n < p.depth && !p.transposes_b; ++n)
      for (std::int64_t j = 0; j < count; ++j) sums[j] += double{factors[n]} * b[n * p.columns + left + j];
    for (std::int64_t j = 0; j < count && p.transposes_b; ++j)
      for (std::int64_t n = 0; n < p.depth; ++n) sums[j] += double{factors[n]} * b[(left + j) * p.depth + n];
    const std::vector<float> of_row = tensors.part(out.part(at_out, count));
    got.insert(got.end(), of_row.begin(), of_row.end());
    expected.insert(expected.end(), sums.begin(), sums.end());
  }
  return relative_error(got, expected);
}

/// The error of a step, or -1 if it is not compared.
double step_error(RankTensors& tensors, const Schedule& schedule, std::size_t at, std::uint64_t seed) {
  const Step& step = schedule.steps()[at];
  if (step.verb != Verb::compute) return -1;
  const Kernel& kernel = schedule.kernels()[step.body];
  const auto* product = std::any_cast<Product>(&kernel.parameters);
  const auto* rows = std::any_cast<Rows>(&kernel.parameters);
  if (product == nullptr && rows == nullptr) return -1;
  const auto is_lost = [&](std::size_t from, const Slice& slice) {
    return is_overwritten(schedule.steps(), from, slice);
  };
  if (std::any_of(step.writes.begin(), step.writes.end(),
                  [&](auto& slice) { return is_lost(at + 1, slice); }))
    return -1;
  if (rows != nullptr)
    return has_its_operands(schedule, at)
               ? row_error(tensors, step, kernel, *rows, rows_of(rows->count, seed))
               : -1;
  // A product that sums over tokens reads whole matrices, and needs them as they are.
  const bool sums_tokens = product->transposes_a;
  if (sums_tokens && ((at + seed) % 3 != 0 || is_lost(at, step.reads[0]))) return -1;
  if (is_lost(at, step.reads[1]) || is_lost(at, step.reads[2])) return -1;
  return product_error(tensors, schedule, at, *product, rows_of(product->rows, seed));
}

/// The error of one head of the first layer's attention, forward, on a rank whose tokens need no
/// others; 0 where there is no such layer.
double attention_error(const RankTensors& tensors, const Schedule& schedule, const Stack& stack,
                       std::int64_t head) {
  const Attention kind = stack.shape.layers.front();
  if (kind != Attention::linear) return 0;
  const GlaShape shape = stack.shape.share(kind, stack.tokens);
  const auto of_head = [&](const char* name, std::int64_t width) {
    const std::vector<float> all = tensors.part(schedule.buffer(layer_buffer(name, 0)));
    std::vector<double> values;
    values.reserve(shape.tokens * width);
    for (std::int64_t t = 0; t < shape.tokens; ++t)
      for (std::int64_t i = 0; i < width; ++i) values.push_back(all[(t * shape.heads + head) * width + i]);
    return values;
  };
  const auto q = of_head("q", shape.d_k), k = of_head("k", shape.d_k), v = of_head("v", shape.d_v),
             g = stack.shape.has_gates(kind) ? of_head("g", shape.d_k) : std::vector<double>{},
             got = of_head("o", shape.d_v);
  return relative_error({got.begin(), got.end()}, gla_reference_forward({q, k, v, g, {}}, shape).o);
}

}  // namespace

Comparison compare_sampled_steps(const Executor& executor, std::span<const Schedule> schedules,
                                 const ModelProblem& problem) {
  const std::uint64_t seed = problem.seed;
  const auto head = static_cast<std::int64_t>(seed) % problem.stack.shape.heads;
  Comparison result;
  int compared = 0;
  result.tokens = sampled_rows;
  result.heads = {head};
  result.tolerance = bf16_roundoff;
  for (const int rank : executor.local_ranks()) {
    RankTensors tensors(executor, rank);
    if (rank == 0 || problem.stack.is_alone()) {
      result.relative_error = attention_error(tensors, schedules[rank], problem.stack, head);
      if (!(result.relative_error <= attention_tolerance)) {
        result.wrong = 1;
        result.first =
            fmt::format("rank {}, attention of head {}: relative error {:.1e}, at most {:.1e} is right", rank,
                        head, result.relative_error, attention_tolerance);
      }
    }
    for (std::size_t at = 0; at < schedules[rank].steps().size(); ++at) {
      const double error = step_error(tensors, schedules[rank], at, seed);
      if (!(error < 0)) ++compared;
      result.relative_error = std::max(result.relative_error, error);
      if (error <= result.tolerance) continue;
      if (result.wrong++ == 0)
        result.first = fmt::format(
            "rank {}, step {} ({}): relative error {:.1e} of sampled rows, at most {:.1e} is right", rank, at,
            schedules[rank].kernels()[schedules[rank].steps()[at].body].name, error, result.tolerance);
    }
  }
  if (compared == 0 && result.wrong++ == 0) result.first = "no step could be compared with its operands";
  return result;
}

}  // namespace baton
