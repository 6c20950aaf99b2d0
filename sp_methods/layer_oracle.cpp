// SPDX-License-Identifier: Apache-2.0
// Random layers solved by the references.
#include "sp_methods/layer_oracle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "sp_methods/head_oracle.hpp"
#include "sp_methods/kernels/reference/roundings.hpp"

namespace baton {

void OracleWork::for_tokens(std::int64_t tokens,
                            const std::function<void(std::int64_t, std::int64_t)>& body) const {
  constexpr std::int64_t fewest = 64;  // are not worth a thread
  const std::int64_t parts = std::clamp<std::int64_t>(tokens / fewest, 1, threads);
  for_each(static_cast<int>(parts),
           [&](std::int64_t i) { body(tokens * i / parts, tokens * (i + 1) / parts); });
}

double oracle_flop(const LayerProblem& problem) {
  const LayerShape& share = problem.share;
  const auto tokens = static_cast<double>(problem.all_tokens());
  const double of_linear = problem.rule == Rule::low_rank ? 49 : problem.rule == Rule::delta ? 37 : 25;
  if (problem.attention == Attention::linear)
    return of_linear * tokens * static_cast<double>(share.d_k * share.d_v);
  const double of_pairs = problem.mask.kind == MaskKind::full ? 7 : 3.5;
  return of_pairs * tokens * static_cast<double>(problem.sequence()) *
         static_cast<double>(share.d_k + share.d_v);
}

LayerOracle::LayerOracle(const LayerProblem& problem, const OracleWork& work, std::uint64_t rounding)
    : inputs_(problem), work_(work), rounding_(rounding) {
  if (work_.heads.empty()) {
    work_.heads.resize(problem.share.heads);
    std::iota(work_.heads.begin(), work_.heads.end(), 0);
  }
  const std::vector<std::int64_t> edges = problem.edges();
  for (const std::int64_t head : work_.heads)
    for (std::size_t i = 1; i < edges.size(); ++i) solve_head(head, edges[i - 1], edges[i] - edges[i - 1]);
}

void LayerOracle::solve_head(std::int64_t head, std::int64_t first_token, std::int64_t tokens) {
  const std::uint64_t rounding = rounding_of(rounding_of(rounding_, head), first_token);
  const HeadInputs in(inputs_, head, first_token, tokens, rounding);
  HeadSums sums(problem(), in, work_.has_gradients);
  const int units = std::min(most_units(problem()), work_.parts * work_.threads);
  work_.for_each((units - work_.part + work_.parts - 1) / work_.parts, [&](int i) {
    solve_unit(sums, in, work_.has_gradients, {work_.part + i * work_.parts, units});
  });
  for (auto& [name, sum] : sums.all()) work_.sum(sum);
  if (std::vector<double> dz = solve_convolution(sums.all(), in); !dz.empty()) sums.all()["conv_dz"] = dz;
  for (const auto& [name, sum] : sums.all()) {
    Tensor& whole = results_[name][head / (problem().share.heads / problem().heads(name))];
    const bool is_state = LayerProblem::is_state(name);
    const std::int64_t rows = is_state ? 1 : tokens, width = static_cast<std::int64_t>(sum.size()) / rows;
    whole.resize((is_state ? 1 : problem().all_tokens()) * width);
    const auto part = whole.begin() + (is_state ? 0 : first_token * width);
    std::transform(sum.begin(), sum.end(), part, part, std::plus<>());
  }
}

std::vector<float> LayerOracle::input(const std::string& name, const Positions& positions,
                                      std::int64_t tokens) const {
  if (name == "prefix") return prefixes(positions);
  if (name == "map_matrix") return matrices(positions, tokens);
  if (name.starts_with(halo_prefix)) return halos(name.substr(halo_prefix.size()), positions);
  const bool is_single = LayerProblem::is_state(name) || name == "conv_w";  // without tokens
  std::vector<float> rows((is_single ? 1 : tokens) * problem().row(name));
  fill(name, is_single ? Positions::run(0, 1) : positions, 0, rows);
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

/// Fills `out` or lse as a forward pass of softmax attention leaves it to the backward pass.
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

std::vector<double> LayerOracle::gathered(const std::map<std::int64_t, Tensor>& heads, std::int64_t width,
                                          const Positions& positions, std::int64_t tokens) const {
  std::vector<double> rows;
  rows.reserve(tokens * heads.size() * width);
  for (std::int64_t t = 0; t < tokens; ++t)
    for (const auto& [head, tensor] : heads) {
      const auto row = tensor.begin() + positions.at(t) * width;
      rows.insert(rows.end(), row, row + width);
    }
  return rows;
}

std::vector<double> LayerOracle::expected(const std::string& name, const Positions& positions,
                                          std::int64_t tokens) const {
  if (LayerProblem::is_state(name))
    return gathered(results_.at(name), problem().width(name), Positions::run(0, 1), 1);
  return gathered(results_.at(name), problem().width(name), positions, tokens);
}

const LayerOracle::Results& LayerOracle::squares_of_terms() const {
  constexpr double most_flop = 2e8;
  if (squares_of_terms_) return *squares_of_terms_;
  Results& squares = squares_of_terms_.emplace();
  if (oracle_flop(problem()) * static_cast<double>(work_.heads.size()) > most_flop) return squares;
  OracleWork own = work_;
  own.part = 0;
  own.parts = 1;
  own.sum = [](std::span<double>) {};
  for (int i = 1; i <= rounded_solutions; ++i) {
    const LayerOracle rounded(problem(), own, i);
    for (const auto& [name, heads] : results_)
      for (const auto& [head, tensor] : heads)
        add_squares_of_terms(squares[name][head], rounded.results_.at(name).at(head), tensor);
  }
  return squares;
}

double LayerOracle::rms_of_terms(const std::string& name, const Positions& positions,
                                 std::int64_t tokens) const {
  const auto heads = squares_of_terms().find(name);
  if (heads == squares_of_terms().end()) return 0;
  const bool is_state = LayerProblem::is_state(name);
  const std::vector<double> squares =
      gathered(heads->second, problem().width(name), is_state ? Positions::run(0, 1) : positions,
               is_state ? 1 : tokens);
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0) /
                   static_cast<double>(squares.size()));
}

double LayerOracle::norm_of_terms(const std::string& name, std::int64_t head) const {
  const auto heads = squares_of_terms().find(name);
  if (heads == squares_of_terms().end() || !heads->second.contains(head)) return 0;
  const Tensor& squares = heads->second.at(head);
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

/// The rows before each run of these tokens, as passes/convolution.hpp has them.
std::vector<float> LayerOracle::halos(const std::string& name, const Positions& positions) const {
  const std::int64_t rows = problem().share.conv - 1;
  std::vector<float> all;
  for (const std::int64_t first : {positions.first, positions.second}) {
    if (first == positions.second && positions.is_run()) break;
    const std::int64_t lacking = std::clamp<std::int64_t>(rows - first, 0, rows) * problem().row(name);
    std::vector<float> part(rows * problem().row(name));
    inputs_.fill(name, Positions::run(std::max<std::int64_t>(0, first - rows), rows), 0,
                 std::span(part).subspan(lacking));
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::map<std::int64_t, std::vector<double>> LayerOracle::expected_weights(const TensorPart& part) const {
  const LayerShape& share = problem().share;
  std::map<std::int64_t, Tensor> sums;
  for (const std::int64_t head : work_.heads) {
    const auto [q, k, v] = first_weights(share, head);
    for (const std::int64_t first : {q, k, v})
      sums[first].resize((first == v ? share.d_v : share.d_k) * share.conv);
    const std::int64_t of_sequence = head % (share.heads / share.batch) - part.first_head;
    if (of_sequence < 0 || of_sequence >= part.heads) continue;
    add_weights(sums, head, part.positions.first, std::min(part.positions.split, part.tokens));
    add_weights(sums, head, part.positions.second, part.tokens - part.positions.split);
  }
  return sums;
}

/// Adds the sums over tokens of a head's dz, a run from `first` on, with the rows before them.
void LayerOracle::add_weights(std::map<std::int64_t, Tensor>& sums, std::int64_t head, std::int64_t first,
                              std::int64_t tokens) const {
  const std::int64_t row = 2 * problem().share.d_k + problem().share.d_v;
  const auto dz = results_.at("conv_dz").at(head).begin();
  const std::vector<std::int64_t> edges = problem().edges();
  for (std::int64_t from = first; from < first + tokens;) {
    const std::int64_t end = std::min(first + tokens, *std::upper_bound(edges.begin(), edges.end(), from));
    const HeadInputs in(inputs_, head, from, end - from);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < in.convolutions.size(); ++i) {
      const ReferenceConvolution& of = in.convolutions[i];
      Tensor own;
      for (std::int64_t t = from; t < end; ++t)
        own.insert(own.end(), dz + t * row + offset, dz + t * row + offset + of.width);
      const Tensor dw = reference_weight_gradients(of, own);
      Tensor& into = sums.at(first_weights(problem().share, head)[i]);
      std::transform(dw.begin(), dw.end(), into.begin(), into.begin(), std::plus<>());
      offset += of.width;
    }
    from = end;
  }
}

std::vector<float> LayerOracle::prefixes(const Positions& positions) const {
  std::vector<float> all = state_before(positions.first);
  if (positions.is_run()) return all;
  const std::vector<float>& second = state_before(positions.second);
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

const std::vector<float>& LayerOracle::state_before(std::int64_t token) const {
  const LayerShape& share = problem().share;
  const std::int64_t state = share.d_k * share.d_v;
  if (const auto known = states_before_.find(token); known != states_before_.end()) return known->second;
  std::vector<float>& all = states_before_[token];
  all.assign(share.heads * state, 0.0f);
  if (problem().alone) return all;
  const std::vector<std::int64_t> edges = problem().edges();
  // Before all tokens is the state that comes in, if there is one.
  const std::int64_t first = token == 0 ? 0 : *(std::lower_bound(edges.begin(), edges.end(), token) - 1);
  work_.for_each(static_cast<int>(share.heads), [&](int head) {
    const HeadInputs in(inputs_, head, first, token - first);
    const auto final_state = state_behind(in);
    std::copy(final_state.begin(), final_state.end(), all.begin() + head * state);
  });
  return all;
}

std::vector<float> LayerOracle::matrices(const Positions& positions, std::int64_t tokens) const {
  std::vector<float> all = matrices_of_run(positions.first, positions.split);
  if (positions.is_run()) return all;
  const std::vector<float> second = matrices_of_run(positions.second, tokens - positions.split);
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

/// The matrix of each head by which a run of tokens maps a state, of no tokens the identity.
std::vector<float> LayerOracle::matrices_of_run(std::int64_t token, std::int64_t tokens) const {
  const LayerShape& share = problem().share;
  std::vector<float> all(share.heads * share.d_k * share.d_k);
  // The first document goes on from a state that comes in.
  const std::int64_t earliest = token == 0 && comes_in(problem().states) ? 1 : token;
  const auto start = std::lower_bound(problem().starts.begin(), problem().starts.end(), earliest);
  if (start != problem().starts.end() && *start < token + tokens) return all;
  work_.for_each(static_cast<int>(share.heads), [&](int head) {
    const HeadInputs in(inputs_, head, token, tokens);
    const std::vector<double> matrix = matrix_of(in);
    std::copy(matrix.begin(), matrix.end(), all.begin() + head * share.d_k * share.d_k);
  });
  return all;
}

double least_rms(const LayerProblem& problem, const Positions& positions, std::int64_t tokens) {
  if (problem.attention == Attention::linear) return 0;
  const Mask mask = problem.mask.within(problem.starts);
  if (!mask.hides_first_keys()) return 0.1 / std::sqrt(static_cast<double>(problem.sequence()));
  double sum = 0;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::int64_t at = positions.at(t);
    if (!problem.is_padding(at)) sum += 1 / static_cast<double>(mask.upper(at) - mask.lower(at) + 1);
  }
  return 0.1 * std::sqrt(sum / static_cast<double>(tokens));
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
