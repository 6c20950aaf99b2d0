// SPDX-License-Identifier: Apache-2.0
#include "harness/layers/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <utility>

#include "harness/cases/fold.hpp"
#include "harness/machine/conditions.hpp"

namespace baton {
namespace {

/// Puts a group of heads that keeps a state first if only some do. In the others the matrix of a
/// delta rule is zero, so that a wrong matrix would not show.
void begin_with_one_that_keeps(std::vector<std::int64_t>& heads, std::int64_t group,
                               const LayerProblem& problem) {
  const bool only_some = problem.gates == GateDraw::mixed && problem.share.gate == GateKind::scalar &&
                         has_matrices(problem.rule);
  // Kinds follow one another: that of the last head of a group says whether the group has kind 0.
  const auto keeps = std::find_if(heads.begin(), heads.end(), [&](auto head) {
    return problem.kind_of_gate((head + 1) * group - 1) < static_cast<std::uint64_t>(group);
  });
  if (only_some && keeps != heads.end()) std::iter_swap(heads.begin(), keeps);
}

/// About `count` heads, drawn by the seed, ascending. All heads that share one head of keys are
/// drawn together, since gradients of keys are sums over them.
std::vector<std::int64_t> drawn_heads(const LayerProblem& problem, double count) {
  const std::int64_t group = problem.share.heads / problem.heads("k");
  // The sequences of a batch share the weights of a convolution, and are drawn together.
  const std::int64_t sequences = problem.share.conv > 0 ? problem.share.batch : 1;
  std::vector<std::int64_t> heads(problem.heads("k") / sequences);
  std::iota(heads.begin(), heads.end(), 0);
  std::ranges::sort(heads, {}, [&](std::uint64_t head) { return key_of(~problem.seed, head); });
  begin_with_one_that_keeps(heads, group, problem);
  const double groups =
      std::clamp(count / static_cast<double>(group * sequences), 1.0, static_cast<double>(heads.size()));
  heads.resize(static_cast<std::size_t>(groups));
  std::sort(heads.begin(), heads.end());
  std::vector<std::int64_t> of_queries;
  for (std::int64_t sequence = 0; sequence < sequences; ++sequence)
    for (const std::int64_t head : heads)
      for (std::int64_t i = 0; i < group; ++i)
        of_queries.push_back(sequence * problem.share.heads / sequences + head * group + i);
  return of_queries;
}

/// The number of cores of the launch on the host that has fewest. Collective over the team.
double fewest_cores(const Team& team) { return team.min(usable_cores(team).count()); }

/// The first hardware threads of the cores that this process may use.
std::vector<int> one_thread_a_core() {
  std::vector<int> firsts;
  for (const auto& [place, threads] : usable_cores().physical) firsts.push_back(threads.front());
  return firsts;
}

}  // namespace

double layer_tolerance(Dtype dtype, double roundoff, int ranks, Rule rule, std::int64_t width) {
  // A gradient with one number a token and head, dbeta and that of a gate a head, is a sum over a
  // row of differences whose terms a delta rule rounds to bf16 apart (decision 29 has the errors).
  // A low-rank rule multiplies what tokens read and the gradient of it, which are rounded apart too
  // (decision 33).
  const double of_bf16 = has_matrices(rule) && width == 1 ? 1.5e-2 : rule == Rule::low_rank ? 6e-3 : 5e-3;
  const double of_arithmetic = dtype == Dtype::bf16 ? of_bf16 : has_matrices(rule) ? 1e-5 : 2e-5;
  if (roundoff <= 0) return of_arithmetic;
  // Errors of states add up over the ranks faster than a random walk and slower than a sum. Twice
  // the largest found: that of Ring Attention's dg, a difference of large sums.
  constexpr double times = 4, power = 0.7;
  return of_arithmetic + times * bf16_rms_roundoff * std::pow(ranks, power);
}

OracleWork shared_work(const Team& team) {
  const std::vector<int> cores = one_thread_a_core();
  OracleWork work;
  work.part = team.rank();
  work.parts = team.size();
  work.threads = std::max(1, static_cast<int>(fewest_cores(team)) / team.size());
  std::vector<int> own;
  for (int i = 0; i < work.threads && !cores.empty(); ++i)
    own.push_back(cores[(work.part * work.threads + i) % cores.size()]);
  work.for_each = [own](int count, const std::function<void(int)>& body) { run_on(own, count, body); };
  work.sum = [team](std::span<double> values) { team.sum(values); };
  return work;
}

OracleWork oracle_work(const Team& team, const LayerProblem& problem) {
  constexpr double seconds = 1, flop_per_second = 1.5e9;  // of one core
  OracleWork work = shared_work(team);
  const double cores = std::min(fewest_cores(team), double(work.parts) * work.threads);
  work.heads = drawn_heads(problem, seconds * flop_per_second * cores / oracle_flop(problem));
  return work;
}

namespace {

/// The number of tokens of `row` elements that are handled at once. Their memory is used again and
/// again, since fresh memory takes longer than drawing the values.
std::int64_t tokens_at_once(std::int64_t tokens, std::int64_t row) {
  return std::clamp<std::int64_t>((1 << 22) / row, 1, tokens);
}

/// An input of a rank: its name for the oracle, and the tokens and heads that the rank has.
struct Input {
  std::string name;
  TensorPart part;
};

Input input_of(const std::string& name, const SpMethod& method, int rank, const LayerProblem& problem) {
  const LayerShape& share = problem.share;
  const bool is_gathered = name.starts_with(kept_prefix) || name == "dconv_w";
  const std::string known = name.starts_with(kept_prefix) ? name.substr(kept_prefix.size()) : name;
  if (method.kept && (is_gathered || name == "out" || name == "lse"))
    return {known, method.kept(rank, problem.ranks, share, problem.shares)};
  return {
      known,
      {positions_of(method, rank, problem.ranks, share.tokens, problem.shares),
       tokens_of(method, rank, problem.ranks, share.tokens, problem.shares), 0, share.heads / share.batch}};
}

/// Writes an input that has a row for each token, a run of tokens at a time.
void write_rows(Executor& executor, int rank, const Slice& slice, const Input& input,
                const LayerOracle& oracle) {
  const auto& [name, part] = input;
  const LayerProblem& problem = oracle.problem();
  const std::int64_t width = problem.width(name), row = problem.row(name), batch = problem.share.batch;
  const std::int64_t heads = problem.heads(name), all = problem.share.heads;
  const std::int64_t first_head = part.first_head * heads / all;
  const std::int64_t own_heads = std::max<std::int64_t>(1, part.heads * heads / all);  // of a sequence
  const std::int64_t own_row = batch * own_heads * width;
  const std::int64_t step = tokens_at_once(part.tokens, row);
  std::vector<float> rows(step * row);
  for (std::int64_t first = 0; first < part.tokens; first += step) {
    const std::int64_t count = std::min(step, part.tokens - first);
    oracle.fill(name, part.positions, first, std::span(rows).first(count * row));
    for (std::int64_t i = 0; i < count * batch && own_row < row; ++i)
      std::copy_n(rows.begin() + (i * heads / batch + first_head) * width, own_heads * width,
                  rows.begin() + i * own_heads * width);
    executor.write(rank, slice.part(first * own_row, count * own_row),
                   std::span(rows).first(count * own_row));
  }
}

}  // namespace

void write_layer(Executor& executor, std::span<const Schedule> schedules, const SpMethod& method,
                 const LayerOracle& oracle) {
  for (int rank : executor.local_ranks()) {
    const Schedule& s = schedules[rank];
    for (const Buffer& buffer : s.buffers()) {
      const Slice slice = s.buffer(buffer.name);
      if (buffer.role == Role::output) executor.scatter(rank, slice, 1, poison);
      if (buffer.role != Role::input || buffer.count == 0) continue;
      const Input input = input_of(buffer.name, method, rank, oracle.problem());
      if (LayerOracle::has_rows(input.name))
        write_rows(executor, rank, slice, input, oracle);
      else
        executor.write(rank, slice, oracle.input(input.name, input.part.positions, input.part.tokens));
    }
  }
}

namespace {

/// One output of one rank.
struct Output {
  const LayerOracle& oracle;
  const Positions& positions;
  const Buffer& buffer;
  Slice slice;

  const LayerProblem& problem() const { return oracle.problem(); }
  /// Elements of the tensor for one token.
  std::int64_t row() const { return problem().row(buffer.name); }
  std::int64_t tokens() const { return buffer.count / row(); }
};

/// Says which of `values` is the first that was not written or is not finite; empty if all are
/// right. The values begin with element `offset` of the output.
std::string unusable(std::span<const float> values, std::int64_t offset, const Output& output) {
  const float unwritten = output.buffer.dtype == Dtype::bf16 ? from_bf16(to_bf16(poison)) : poison;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::abs(values[i]) < std::abs(unwritten)) continue;
    const std::int64_t at = offset + static_cast<std::int64_t>(i);
    return values[i] == unwritten ? fmt::format("{}: element {} was not written", output.buffer.name, at)
                                  : fmt::format("{}: element {} is {}", output.buffer.name, at, values[i]);
  }
  return {};
}

/// The values of the solved heads of an output, and the first fault that was found in it.
struct Found {
  std::vector<float> solved;  // the solved heads [tokens, heads, width]
  std::string fault;
  std::vector<double> expected = {};  // of weights
};

/// Reads an output, a run of tokens at a time, which several threads look through.
Found read(const Executor& executor, int rank, const Output& output, LayerSketch* sketch) {
  const std::vector<std::int64_t> heads = output.oracle.heads(output.buffer.name);
  const LayerProblem& problem = output.problem();
  const std::int64_t row = output.row(), width = problem.width(output.buffer.name);
  const std::int64_t tokens = output.tokens(), solved_row = static_cast<std::int64_t>(heads.size()) * width;
  const std::int64_t step = tokens_at_once(tokens, row);
  Found found{.solved = std::vector<float>(tokens * solved_row), .fault = {}};
  std::vector<float> got(step * row);
  for (std::int64_t start = 0; start < tokens; start += step) {
    const std::int64_t count = std::min(step, tokens - start);
    executor.read(std::span(got).first(count * row), rank, output.slice.part(start * row, count * row));
    std::mutex mutex;
    output.oracle.work().for_tokens(count, [&](std::int64_t first, std::int64_t last) {
      const auto part = std::span(std::as_const(got)).subspan(first * row, (last - first) * row);
      if (sketch != nullptr) sketch->add(output.buffer.name, start + first, part, problem, output.positions);
      for (std::int64_t t = first; t < last; ++t)
        for (std::size_t i = 0; i < heads.size(); ++i)
          std::copy_n(got.begin() + t * row + heads[i] * width, width,
                      found.solved.begin() + (start + t) * solved_row + static_cast<std::int64_t>(i) * width);
      const std::string fault = unusable(part, (start + first) * row, output);
      const std::lock_guard lock(mutex);
      if (found.fault.empty()) found.fault = fault;
    });
  }
  return found;
}

/// Reads weights, the runs of the solved heads, beside what they should be.
Found read_weights(const Executor& executor, int rank, const Output& output, const TensorPart& part) {
  std::vector<float> all(output.buffer.count);
  executor.read(all, rank, output.slice);
  Found found{.solved = {}, .fault = unusable(all, 0, output)};
  for (const auto& [first, run] : output.oracle.expected_weights(part)) {
    found.solved.insert(found.solved.end(), all.begin() + first, all.begin() + first + std::ssize(run));
    found.expected.insert(found.expected.end(), run.begin(), run.end());
  }
  return found;
}

/// The relative error of the solved heads. If it is above the tolerance, values count as large as a
/// share of the terms that they are sums of.
double error_of(const Found& found, const Output& output, double tolerance) {
  const std::string& name = output.buffer.name;
  const auto expected = output.oracle.expected(name, output.positions, output.tokens());
  const double error =
      relative_error(found.solved, expected, least_rms(output.problem(), output.positions, output.tokens()));
  if (error <= tolerance || !std::isfinite(error)) return error;
  const double terms = output.oracle.rms_of_terms(name, output.positions, output.tokens());
  const double least = least_of_terms(output.problem().dtype) * terms;
  return std::min(error, relative_error(found.solved, expected, least));
}

}  // namespace

Comparison compare_layer(const Executor& executor, std::span<const Schedule> schedules,
                         const SpMethod& method, const LayerOracle& oracle, LayerSketch* sketch) {
  const LayerProblem& problem = oracle.problem();
  Comparison result;
  result.tokens = problem.share.tokens;
  result.heads = oracle.heads();
  for (int rank : executor.local_ranks()) {
    const Schedule& s = schedules[rank];
    const Positions positions = input_of("q", method, rank, problem).part.positions;
    for (const Buffer& buffer : s.buffers()) {
      if (buffer.role != Role::output || problem.row(buffer.name) == 0) continue;
      const bool is_weight = buffer.name == "dconv_w";
      if (sketch != nullptr && !is_weight) sketch->begin(buffer.name, problem);  // also without tokens
      if (buffer.count == 0) continue;
      const Output output{oracle, positions, buffer, s.buffer(buffer.name)};
      const TensorPart part = input_of(buffer.name, method, rank, problem).part;
      Found found =
          is_weight ? read_weights(executor, rank, output, part) : read(executor, rank, output, sketch);
      // States and gradients of weights are f32, and made of tensors of the layer's type.
      const double tolerance = layer_tolerance(problem.dtype, wire_roundoff(executor), s.ranks(),
                                               problem.rule, problem.width(buffer.name));
      const double error =
          is_weight ? relative_error(found.solved, found.expected) : error_of(found, output, tolerance);
      result.relative_error = std::max(result.relative_error, error);
      result.tolerance = std::max(result.tolerance, tolerance);
      if (found.fault.empty() && !(error <= tolerance))
        found.fault =
            fmt::format("{}: relative error {:.1e}, at most {:.1e} is right", buffer.name, error, tolerance);
      if (!found.fault.empty() && result.wrong++ == 0)
        result.first = fmt::format("rank {}, {}", rank, found.fault);
    }
  }
  return result;
}

}  // namespace baton
