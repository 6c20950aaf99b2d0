// SPDX-License-Identifier: Apache-2.0
// Random layers solved by the references.
#include "sp_methods/layer_oracle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <utility>

#include "sp_methods/kernels/reference/attention.hpp"

namespace baton {
namespace {

/// Columns [first, last) of rows [tokens, width].
std::vector<double> columns(const std::vector<double>& rows, std::int64_t width, std::int64_t first,
                            std::int64_t last) {
  std::vector<double> part;
  part.reserve(rows.size() / width * (last - first));
  for (auto row = rows.begin(); row != rows.end(); row += width)
    part.insert(part.end(), row + first, row + last);
  return part;
}

/// One head's inputs over a sequence.
struct HeadInputs {
  GlaShape shape;
  std::vector<double> q, k, v, g, d_o;

  HeadInputs(const LayerInputValues& inputs, std::int64_t head, std::int64_t first, std::int64_t tokens)
      : shape(inputs.problem().share) {
    shape.tokens = tokens;
    const auto rows = [&](const char* name) { return inputs.of_head(name, head, first, tokens); };
    const std::int64_t key_head = head / shape.group_heads();
    const auto key_rows = [&](const char* name) { return inputs.of_head(name, key_head, first, tokens); };
    q = rows("q"), k = key_rows("k"), g = rows("g"), d_o = rows("d_o");
    v = shape.latent ? columns(k, shape.d_k, 0, shape.d_v) : key_rows("v");
  }

  ReferenceInputs reference() const { return {q, k, v, g, {}}; }
};

/// One head's results, to which several threads add. Locks are of runs of elements, and each thread
/// starts at another one, so that threads rarely meet.
class Sums {
 public:
  Sums(const LayerProblem& problem, std::int64_t tokens, bool has_gradients) {
    const auto add = [&](const char* name) { sums_[name].assign(tokens * problem.width(name), 0.0); };
    for (const char* name : {"o", "lse"}) add(name);
    for (const char* name : {"dq", "dk", "dv", "dg"})
      if (has_gradients) add(name);
  }

  void add(const std::string& name, const std::vector<double>& part, int unit) {
    std::vector<double>& sum = sums_.at(name);
    for (std::size_t i = 0; i < runs; ++i) {
      const std::size_t run = (i + 7 * static_cast<std::size_t>(unit)) % runs;
      const std::lock_guard lock(locks_[run]);
      for (std::size_t at = part.size() * run / runs; at < part.size() * (run + 1) / runs; ++at)
        sum[at] += part[at];
    }
  }
  /// Adds columns from `first` on to rows of `width`, which no other thread adds to.
  void add_columns(const std::string& name, const std::vector<double>& part, std::int64_t width,
                   std::int64_t first, std::int64_t last) {
    std::vector<double>& sum = sums_.at(name);
    for (std::size_t i = 0; i < part.size(); ++i)
      sum[i / (last - first) * width + first + i % (last - first)] += part[i];
  }

  std::map<std::string, std::vector<double>>& all() { return sums_; }

 private:
  static constexpr std::size_t runs = 64;
  std::map<std::string, std::vector<double>> sums_;
  std::mutex locks_[runs];
};

/// Some columns of v and d_o.
void solve_columns(Sums& sums, const HeadInputs& head, bool has_gradients, int unit, int units) {
  const std::int64_t d_v = head.shape.d_v, first = d_v * unit / units, last = d_v * (unit + 1) / units;
  const std::vector<double> v = columns(head.v, d_v, first, last), d_o = columns(head.d_o, d_v, first, last);
  GlaShape shape = head.shape;
  shape.d_v = last - first;
  const ReferenceInputs in{head.q, head.k, v, head.g, {}};
  sums.add_columns("o", gla_reference_forward(in, shape).o, d_v, first, last);
  if (!has_gradients) return;
  const ReferenceGradients gradients = gla_reference_backward(in, d_o, {}, shape);
  sums.add_columns("dv", gradients.dv, d_v, first, last);
  sums.add("dq", gradients.dq, unit);
  sums.add("dk", gradients.dk, unit);
  sums.add("dg", gradients.dg, unit);
}

/// Adds gradients of values [tokens, d_v] to those of the latent keys that hold them [tokens, d_k].
void add_to_columns(std::vector<double>& dk, const std::vector<double>& dv, const GlaShape& shape) {
  for (std::size_t i = 0; i < dv.size(); ++i) dk[i / shape.d_v * shape.d_k + i % shape.d_v] += dv[i];
}

/// Some blocks of queries.
void solve_queries(Sums& sums, const HeadInputs& head, bool has_gradients, int unit, int units) {
  const QueryTurn turn{unit, units};
  const SoftmaxOutputs out = softmax_reference_forward(head.reference(), head.shape, turn);
  sums.add("o", out.o, unit);
  sums.add("lse", out.lse, unit);
  if (!has_gradients) return;
  ReferenceGradients gradients = softmax_reference_backward(head.reference(), head.d_o, head.shape, turn);
  if (head.shape.latent) add_to_columns(gradients.dk, std::exchange(gradients.dv, {}), head.shape);
  sums.add("dq", gradients.dq, unit);
  sums.add("dk", gradients.dk, unit);
  sums.add("dv", gradients.dv, unit);
}

}  // namespace

void OracleWork::for_tokens(std::int64_t tokens,
                            const std::function<void(std::int64_t, std::int64_t)>& body) const {
  constexpr std::int64_t fewest = 64;  // are not worth a thread
  const std::int64_t parts = std::clamp<std::int64_t>(tokens / fewest, 1, threads);
  for_each(static_cast<int>(parts),
           [&](std::int64_t i) { body(tokens * i / parts, tokens * (i + 1) / parts); });
}

double oracle_flop(const LayerProblem& problem) {
  const GlaShape& share = problem.share;
  const double tokens = static_cast<double>(share.tokens) * problem.ranks;
  if (problem.attention == Attention::linear) return 25 * tokens * static_cast<double>(share.d_k * share.d_v);
  return 3.5 * tokens * static_cast<double>(problem.sequence()) * static_cast<double>(share.d_k + share.d_v);
}

LayerOracle::LayerOracle(const LayerProblem& problem, const OracleWork& work)
    : inputs_(problem), work_(work) {
  if (work_.heads.empty()) {
    work_.heads.resize(problem.share.heads);
    std::iota(work_.heads.begin(), work_.heads.end(), 0);
  }
  for (const std::int64_t head : work_.heads)
    for (std::int64_t first = 0; first < problem.share.tokens * problem.ranks; first += problem.sequence())
      solve_head(head, first);
}

void LayerOracle::solve_head(std::int64_t head, std::int64_t first_token) {
  const std::int64_t tokens = problem().sequence();
  const HeadInputs in(inputs_, head, first_token, tokens);
  Sums sums(problem(), tokens, work_.has_gradients);
  const bool is_linear = problem().attention == Attention::linear;
  const int most = is_linear ? static_cast<int>(in.shape.d_v) : 1 << 20;
  const int units = std::min(most, work_.parts * work_.threads);
  work_.for_each((units - work_.part + work_.parts - 1) / work_.parts, [&](int i) {
    (is_linear ? solve_columns : solve_queries)(sums, in, work_.has_gradients, work_.part + i * work_.parts,
                                                units);
  });
  for (auto& [name, sum] : sums.all()) {
    work_.sum(sum);
    const bool is_of_keys = LayerProblem::is_of_keys(name);
    Tensor& whole = results_[name][is_of_keys ? head / problem().share.group_heads() : head];
    whole.resize(problem().share.tokens * problem().ranks * problem().width(name));
    const auto part = whole.begin() + first_token * problem().width(name);
    std::transform(sum.begin(), sum.end(), part, part, std::plus<>());
  }
}

std::vector<float> LayerOracle::input(const std::string& name, const Positions& positions) const {
  if (!has_rows(name)) return prefixes(positions);
  std::vector<float> rows(problem().share.tokens * problem().row(name));
  fill(name, positions, 0, rows);
  return rows;
}

void LayerOracle::fill(const std::string& name, const Positions& positions, std::int64_t first,
                       std::span<float> rows) const {
  const std::int64_t row = problem().row(name);
  work_.for_tokens(static_cast<std::int64_t>(rows.size()) / row, [&](std::int64_t from, std::int64_t to) {
    const auto part = rows.subspan(from * row, (to - from) * row);
    if (name != "lse") inputs_.fill(name, positions, first + from, part);
    if (name == "out" || name == "lse") fill_saved(name, positions, first + from, part);
  });
}

/// What a forward pass of softmax attention leaves to its backward pass.
void LayerOracle::fill_saved(const std::string& name, const Positions& positions, std::int64_t first,
                             std::span<float> rows) const {
  constexpr float large_lse = 10;
  const std::int64_t width = problem().width(name), row = problem().row(name);
  if (name == "lse") std::fill(rows.begin(), rows.end(), large_lse);
  for (const auto& [head, tensor] : results_.at(name == "out" ? "o" : name))
    for (std::int64_t t = 0; t < static_cast<std::int64_t>(rows.size()) / row; ++t)
      std::copy_n(tensor.begin() + positions.at(first + t) * width, width,
                  rows.begin() + t * row + head * width);
}

std::vector<std::int64_t> LayerOracle::heads(const std::string& name) const {
  std::vector<std::int64_t> heads;
  for (const auto& [head, tensor] : results_.at(name)) heads.push_back(head);
  return heads;
}

std::vector<double> LayerOracle::expected(const std::string& name, const Positions& positions,
                                          std::int64_t tokens) const {
  const std::int64_t width = problem().width(name);
  const auto& heads = results_.at(name);
  std::vector<double> rows;
  rows.reserve(tokens * heads.size() * width);
  for (std::int64_t t = 0; t < tokens; ++t)
    for (const auto& [head, tensor] : heads) {
      const auto row = tensor.begin() + positions.at(t) * width;
      rows.insert(rows.end(), row, row + width);
    }
  return rows;
}

std::vector<float> LayerOracle::prefixes(const Positions& positions) const {
  std::vector<float> all = state_before(positions.first);
  if (positions.split == problem().share.tokens) return all;
  const std::vector<float>& second = state_before(positions.second);
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

const std::vector<float>& LayerOracle::state_before(std::int64_t token) const {
  const GlaShape& share = problem().share;
  const std::int64_t state = share.d_k * share.d_v;
  if (const auto known = states_before_.find(token); known != states_before_.end()) return known->second;
  std::vector<float>& all = states_before_[token];
  all.assign(share.heads * state, 0.0f);
  if (problem().alone || token == 0) return all;
  work_.for_each(static_cast<int>(share.heads), [&](int head) {
    const HeadInputs in(inputs_, head, 0, token);
    const auto final_state = gla_reference_forward(in.reference(), in.shape).final_state;
    std::copy(final_state.begin(), final_state.end(), all.begin() + head * state);
  });
  return all;
}

double relative_error(const std::vector<float>& got, const std::vector<double>& expected, double least_rms) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(got[i])) return std::numeric_limits<double>::infinity();
    difference += (got[i] - expected[i]) * (got[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  norm = std::max(norm, least_rms * least_rms * static_cast<double>(got.size()));
  return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

}  // namespace baton
