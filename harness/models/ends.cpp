// SPDX-License-Identifier: Apache-2.0
// The ends of a model that has run, at any size, each compared with its own operands: embedding,
// loss and optimiser.
//
//   adamw:            three runs of elements through the host body
//   embed:            three tokens' rows are the table's
//   embed_gradients:  three tokens' rows of the table are sums over all tokens of the same number
//   cross_entropy:    three tokens' logits again from the product that made them; loss and gradient
#include "harness/models/ends.hpp"

#include <algorithm>
#include <any>
#include <cmath>
#include <map>

#include "collectives/drawn_numbers.hpp"
#include "harness/models/sampled.hpp"
#include "sp_methods/models/kernels/block.hpp"
#include "sp_methods/models/kernels/embedding_loss_adamw.hpp"

namespace baton {
namespace {

constexpr std::int64_t samples = 3, run_length = 256;

/// A random index below `count`, in the part of the range that belongs to `sample`.
std::int64_t drawn(std::int64_t count, std::uint64_t seed, std::int64_t sample) {
  const std::int64_t first = sample * count / samples,
                     end = std::max(first + 1, (sample + 1) * count / samples);
  return std::min(count - 1, first + static_cast<std::int64_t>(mixed(seed + sample) %
                                                               static_cast<std::uint64_t>(end - first)));
}

void append(std::vector<double>& to, const std::vector<float>& values) {
  to.insert(to.end(), values.begin(), values.end());
}
void append(std::vector<float>& to, const std::vector<float>& values) {
  to.insert(to.end(), values.begin(), values.end());
}

double optimizer_error(const RankTensors& tensors, const Step& step, const AdamW::Parameters& p,
                       std::uint64_t seed) {
  const std::int64_t count = std::min(run_length, p.count);
  std::vector<std::vector<float>> got(step.writes.size());
  std::vector<std::vector<double>> expected(step.writes.size());
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const std::int64_t first = std::min(drawn(p.count, seed, sample), p.count - count);
    std::vector<std::vector<float>> reads, writes(step.writes.size(), std::vector<float>(count));
    HostOperands operands;
    for (const Slice& slice : step.reads) reads.push_back(tensors.part(slice.part(first, count)));
    for (auto& values : writes) operands.writes.emplace_back(values);
    for (auto& values : reads) operands.reads.emplace_back(values);
    AdamW::Parameters few = p;
    few.count = count;
    kernel_of<AdamW>(few).body(operands);
    for (std::size_t i = 0; i < writes.size(); ++i) {
      append(got[i], tensors.part(step.writes[i].part(first, count)));
      append(expected[i], writes[i]);
    }
  }
  double error = 0;
  for (std::size_t i = 0; i < got.size(); ++i) error = std::max(error, relative_error(got[i], expected[i]));
  return error;
}

double embed_error(const RankTensors& tensors, const Step& step, const TokenRows& p, std::uint64_t seed) {
  std::vector<float> got;
  std::vector<double> expected;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const std::int64_t t = drawn(p.tokens, seed, sample);
    const auto word = static_cast<std::int64_t>(tensors.part(step.reads[0].part(t, 1)).front());
    append(got, tensors.part(step.writes[0].part(t * p.width, p.width)));
    append(expected, tensors.part(step.reads[1].part(word * p.width, p.width)));
  }
  return relative_error(got, expected);
}

double table_error(const RankTensors& tensors, const Step& step, const TokenRows& p, std::uint64_t seed) {
  const std::vector<float> ids = tensors.part(step.reads[0]);
  std::vector<float> got;
  std::vector<double> expected;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const float id = ids[drawn(p.tokens, seed, sample)];
    std::vector<double> sum(p.width, 0.0);
    for (std::int64_t t = 0; t < p.tokens; ++t)
      if (ids[t] == id)
        for (std::int64_t c = 0; const float x : tensors.part(step.reads[1].part(t * p.width, p.width)))
          sum[c++] += x;
    append(got, tensors.part(step.writes[0].part(static_cast<std::int64_t>(id) * p.width, p.width)));
    expected.insert(expected.end(), sum.begin(), sum.end());
  }
  return relative_error(got, expected);
}

/// The logits of some tokens, [vocabulary] each, made again by the product whose result step `at`
/// reads.
std::vector<std::vector<double>> logits_of(const RankTensors& tensors, std::size_t at,
                                           std::span<const std::int64_t> tokens) {
  const Schedule& schedule = tensors.schedule();
  std::size_t maker = at;
  while (schedule.steps()[--maker].writes.front() != schedule.steps()[at].reads[1]) {
  }
  const Step& product = schedule.steps()[maker];
  const auto p = std::any_cast<Product>(schedule.kernels()[product.body].parameters);
  std::vector<std::vector<float>> rows;
  for (const std::int64_t t : tokens)
    rows.push_back(tensors.part(product.reads[0].part(t * p.depth, p.depth)));
  std::vector<std::vector<double>> logits(tokens.size(), std::vector<double>(p.columns, 0.0));
  for (std::int64_t n = 0; n < p.depth; ++n) {
    const std::vector<float> line = tensors.part(product.reads[1].part(n * p.columns, p.columns));
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (std::int64_t j = 0; j < p.columns; ++j) logits[i][j] += double{rows[i][n]} * line[j];
  }
  return logits;
}

double loss_error(const RankTensors& tensors, std::size_t at, const CrossEntropy::Parameters& p,
                  std::uint64_t seed) {
  const Step& step = tensors.schedule().steps()[at];
  std::vector<std::int64_t> tokens;
  for (std::int64_t sample = 0; sample < samples; ++sample) tokens.push_back(drawn(p.tokens, seed, sample));
  const auto logits = logits_of(tensors, at, tokens);
  std::vector<float> losses, slopes;
  std::vector<double> right_losses, right_slopes;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto target = static_cast<std::int64_t>(tensors.part(step.reads[0].part(tokens[i], 1)).front());
    const double most = *std::max_element(logits[i].begin(), logits[i].end());
    double total = 0;
    for (const double x : logits[i]) total += std::exp(x - most);
    right_losses.push_back(most + std::log(total) - logits[i][target]);
    for (std::int64_t j = 0; j < p.vocabulary; ++j)
      right_slopes.push_back((std::exp(logits[i][j] - most) / total - (j == target ? 1 : 0)) /
                             static_cast<double>(p.all_tokens));
    append(losses, tensors.part(step.writes[1].part(tokens[i], 1)));
    append(slopes, tensors.part(step.writes[0].part(tokens[i] * p.vocabulary, p.vocabulary)));
  }
  return std::max(relative_error(losses, right_losses), relative_error(slopes, right_slopes));
}

}  // namespace

double end_error(const RankTensors& tensors, std::size_t at, std::uint64_t seed) {
  const Step& step = tensors.schedule().steps()[at];
  const Kernel& kernel = tensors.schedule().kernels()[step.body];
  if (const auto* p = std::any_cast<AdamW::Parameters>(&kernel.parameters))
    return optimizer_error(tensors, step, *p, seed);
  if (const auto* p = std::any_cast<CrossEntropy::Parameters>(&kernel.parameters))
    return loss_error(tensors, at, *p, seed);
  const auto* rows = std::any_cast<TokenRows>(&kernel.parameters);
  if (rows == nullptr) return -1;
  return kernel.name == std::string(Embed::name) ? embed_error(tensors, step, *rows, seed)
                                                 : table_error(tensors, step, *rows, seed);
}

}  // namespace baton
