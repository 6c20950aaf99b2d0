// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/layer_verify.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <thread>

namespace baton {
namespace {

/// Lets this thread run on every core. A launcher binds a process to a few, which suits its rounds.
void use_all_cores() {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int core = 0; core < CPU_SETSIZE; ++core) CPU_SET(core, &all);
  sched_setaffinity(0, sizeof all, &all);  // a failure leaves the thread where it is
}

/// Runs `body` for 0 .. count - 1 on `threads` threads.
void run_on(int threads, int count, const std::function<void(int)>& body) {
  if (threads < 2 || count < 2) {
    for (int i = 0; i < count; ++i) body(i);
    return;
  }
  std::atomic<int> next = 0;
  std::vector<std::thread> workers;
  for (int thread = 0; thread < std::min(threads, count); ++thread)
    workers.emplace_back([&] {
      use_all_cores();
      for (int i = next++; i < count; i = next++) body(i);
    });
  for (std::thread& worker : workers) worker.join();
}

/// `count` of the heads in the order that the seed gives them, ascending.
std::vector<std::int64_t> drawn_heads(const LayerProblem& problem, std::int64_t count) {
  std::vector<std::int64_t> heads(problem.share.heads);
  std::iota(heads.begin(), heads.end(), 0);
  const auto order = [&](std::int64_t head) {
    return key_of(~problem.seed, static_cast<std::uint64_t>(head));
  };
  std::sort(heads.begin(), heads.end(), [&](auto a, auto b) { return order(a) < order(b); });
  heads.resize(count);
  std::sort(heads.begin(), heads.end());
  return heads;
}

/// The rows of `heads` of [tokens, all heads, width].
std::vector<float> rows_of(const std::vector<std::int64_t>& heads, std::span<const float> all,
                           const LayerProblem& problem, std::int64_t width) {
  std::vector<float> rows;
  rows.reserve(problem.share.tokens * heads.size() * width);
  for (std::int64_t t = 0; t < problem.share.tokens; ++t)
    for (const std::int64_t head : heads) {
      const auto row = all.begin() + (t * problem.share.heads + head) * width;
      rows.insert(rows.end(), row, row + width);
    }
  return rows;
}

/// Values of a layer that are smaller count as if they were of this root mean square. Outputs of
/// softmax over n tokens are averages, of about n^(-1/2). Where few tokens make them far smaller
/// than that, the differences that they are made of cancel, and only their absolute error is small.
double least_rms(const LayerProblem& problem) {
  if (problem.attention == Attention::linear) return 0;
  return 0.1 / std::sqrt(static_cast<double>(problem.sequence()));
}

}  // namespace

double layer_tolerance(Dtype dtype, double roundoff, int ranks) {
  if (roundoff <= 0) return dtype == Dtype::bf16 ? 5e-3 : 2e-5;
  // Errors of states add up over the ranks faster than a random walk and slower than a sum. Twice
  // the largest found: that of Ring Attention's dg, a difference of large sums.
  constexpr double times = 4, power = 0.7;
  return (dtype == Dtype::bf16 ? 5e-3 : 2e-5) + times * bf16_rms_roundoff * std::pow(ranks, power);
}

OracleWork oracle_work(const Team& team, const LayerProblem& problem) {
  constexpr double seconds = 1, flop_a_second = 1.5e9;  // of one core
  const double cores = -team.max(-static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)));
  OracleWork work;
  work.part = team.rank();
  work.parts = team.size();
  work.threads = std::max(1, static_cast<int>(cores) / team.size());
  const double heads =
      seconds * flop_a_second * std::min(cores, double(work.parts) * work.threads) / oracle_flop(problem);
  work.heads = drawn_heads(
      problem, static_cast<std::int64_t>(std::clamp(heads, 1.0, static_cast<double>(problem.share.heads))));
  work.for_each = [threads = work.threads](int count, const std::function<void(int)>& body) {
    run_on(threads, count, body);
  };
  work.sum = [team](std::span<double> values) { team.sum(values); };
  return work;
}

void LayerSketch::add(const std::string& name, std::span<const float> rows, const LayerProblem& problem,
                      const Positions& positions) {
  const std::int64_t width = problem.width(name), heads = problem.share.heads;
  std::vector<float> signs(width);
  for (std::int64_t c = 0; c < width; ++c)
    signs[c] = (mixed(static_cast<std::uint64_t>(c)) >> 63) != 0 ? 1.0F : -1.0F;
  std::vector<double>& sums = tensors[name];
  sums.resize(problem.share.tokens * problem.ranks * heads);
  for (std::int64_t t = 0; t < problem.share.tokens; ++t)
    for (std::int64_t head = 0; head < heads; ++head)
      sums[positions.at(t) * heads + head] =
          std::inner_product(signs.begin(), signs.end(), rows.begin() + (t * heads + head) * width, 0.0);
}

void write_layer(Executor& executor, std::span<const Schedule> schedules, const SpMethod& method,
                 const LayerOracle& oracle) {
  for (int rank : executor.local_ranks()) {
    const Schedule& s = schedules[rank];
    const Positions positions = positions_of(method, rank, s.ranks(), oracle.problem().share.tokens);
    for (const Buffer& buffer : s.buffers()) {
      const Slice slice = s.buffer(buffer.name);
      if (buffer.role == Role::input) executor.write(rank, slice, oracle.input(buffer.name, rank, positions));
      if (buffer.role == Role::output) executor.write(rank, slice, std::vector<float>(buffer.count, poison));
    }
  }
}

namespace {

/// What is wrong with one output of one rank, in words; empty if nothing is.
std::string fault_of(const std::string& name, std::span<const float> got, double error, double tolerance,
                     Dtype dtype) {
  const float unwritten = dtype == Dtype::bf16 ? from_bf16(to_bf16(poison)) : poison;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == unwritten) return fmt::format("{}: element {} was not written", name, i);
    if (!std::isfinite(got[i])) return fmt::format("{}: element {} is {}", name, i, got[i]);
  }
  if (error <= tolerance) return {};
  return fmt::format("{}: relative error {:.1e}, at most {:.1e} is right", name, error, tolerance);
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
    const Positions positions = positions_of(method, rank, s.ranks(), problem.share.tokens);
    for (const Buffer& buffer : s.buffers()) {
      if (buffer.role != Role::output || buffer.count == 0) continue;
      std::vector<float> got(buffer.count);
      executor.read(got, rank, s.buffer(buffer.name));
      if (sketch != nullptr) sketch->add(buffer.name, got, problem, positions);
      const double error = relative_error(rows_of(oracle.heads(), got, problem, problem.width(buffer.name)),
                                          oracle.expected(buffer.name, positions), least_rms(problem));
      result.relative_error = std::max(result.relative_error, error);
      const double tolerance = layer_tolerance(buffer.dtype, wire_roundoff(executor), s.ranks());
      result.tolerance = std::max(result.tolerance, tolerance);
      const std::string fault = fault_of(buffer.name, got, error, tolerance, buffer.dtype);
      if (!fault.empty() && result.wrong++ == 0) result.first = fmt::format("rank {}, {}", rank, fault);
    }
  }
  return result;
}

Comparison compare_sketches(const LayerSketch& got, const LayerSketch& other, std::int64_t heads,
                            double tolerance) {
  Comparison result;
  for (const auto& [name, sums] : got.tensors) {
    const auto& others = other.tensors.at(name);
    std::vector<double> errors(heads, 0.0), values(heads, 0.0);  // squared
    for (std::size_t i = 0; i < sums.size(); ++i) {
      errors[i % heads] += (sums[i] - others[i]) * (sums[i] - others[i]);
      values[i % heads] += others[i] * others[i];
    }
    // Heads whose values are far below those of the others count as if they were not.
    const double least =
        0.0025 * std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(heads);
    const double most = 2 * tolerance * most_rms(static_cast<std::int64_t>(sums.size()) / heads) / 4;
    for (std::int64_t head = 0; head < heads; ++head) {
      const double error = std::sqrt(errors[head] / std::max({values[head], least, 1e-300}));
      if (error <= most) continue;
      if (result.wrong++ == 0)
        result.first = fmt::format("{} of head {}: {:.1e} from the result of {}, at most {:.1e} is right",
                                   name, head, error, other.method, most);
    }
  }
  return result;
}

}  // namespace baton
