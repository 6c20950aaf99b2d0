// SPDX-License-Identifier: Apache-2.0
// Layers of softmax attention of a model that has run, at any size: drawn queries of one head of
// keys over the keys and values that all ranks really have.
//
//   every rank gives some of its queries to all ranks
//   each rank, for each query t:  sum over its keys u <= t of e^{s q_t k_u} (1, v_u);   add them up
//   o_t = the sum of values over that of ones, and with the gradients of the first layer
//   dq_t = s sum over u of P_tu (do_t v_u - do_t o_t) k_u, added up likewise
//   dk, dv of all tokens:  sum_u k_u (.) dk_u = sum_t q_t (.) dq_t
//                          sum_u v_u (.) dv_u = sum_t o_t (.) do_t
//
// The two sums are equal in each channel, since both are the sum over all pairs: a rank that misses
// what other ranks' queries add to its keys is seen, and a single wrong token is not. Scores of
// models are of the size of one, so no maximum is taken out of the exponents.
// Cost: 4 (d_k + d_v) flop a query and key.
// Source: Vaswani et al., "Attention Is All You Need", 2017, equation 1, differentiated by hand.
#include "harness/models/softmax_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "collectives/drawn_numbers.hpp"
#include "harness/models/sampled.hpp"

namespace baton {
namespace {

constexpr std::int64_t queries_per_rank = 8;
/// A factor of the tolerance of few tokens, whose rounding errors even out less than those of all.
constexpr double of_few_tokens = 4;

using Numbers = std::vector<double>;

/// One layer under one head of keys, and the heads of queries that share it.
class SharedKeys {
 public:
  SharedKeys(const SampledRun& run, int layer);

  void compare(Comparison& into);

 private:
  /// One query of one head, of any rank, with its output and its gradient.
  struct Query {
    int rank;
    std::int64_t token, head;
    Numbers q, d_o;
    double weight = 0;
    Numbers o, dq;
  };
  /// The tensors of a rank of this process: k and v [tokens, width].
  struct Keys {
    const RankTensors& tensors;
    Numbers k, v;
  };

  bool has_gradients() const { return run_.has_gradients(layer_); }
  std::string buffer(const char* name) const { return layer_buffer(name, layer_); }
  Slice slice(const RankTensors& tensors, const std::string& name, std::int64_t heads,
              std::int64_t width) const {
    return tensors.find(name, shape_.tokens * heads * width);
  }
  /// The buffer of the output's gradient, which a gate makes another one of.
  const char* d_o_buffer() const { return run_.stack().shape.softmax.has_output_gate ? "d_o" : "d_gated"; }
  Numbers rows(const RankTensors& tensors, const std::string& name, std::int64_t width, std::int64_t head,
               std::int64_t first, std::int64_t tokens, bool of_keys) const {
    const std::int64_t heads = of_keys ? shape_.key_heads() : shape_.heads;
    return tensors.of_head(slice(tensors, name, heads, width), heads * width, width, head, first, tokens);
  }
  /// The number of keys of `rank` that a query sees.
  std::int64_t seen(const Query& query, int rank) const {
    if (query.rank == rank) return query.token + 1;
    return !run_.stack().is_alone() && rank < query.rank ? shape_.tokens : 0;
  }
  void draw_queries();
  /// Adds up over all keys of all ranks, for each query: `add` adds the part of one key to the
  /// numbers that `part` names. Collective over the team.
  template <class Add, class Part>
  void over_all_keys(const Part& part, const Add& add);
  void attend();
  void attend_backward();
  void compare_sums(Comparison& into) const;

  const SampledRun& run_;
  int layer_;
  LayerShape shape_;
  double scale_;
  std::int64_t key_head_;
  std::vector<Keys> keys_;
  std::vector<Query> queries_;
};

double dot(const double* a, const double* b, std::int64_t count) {
  return std::inner_product(a, a + count, b, 0.0);
}

SharedKeys::SharedKeys(const SampledRun& run, int layer)
    : run_(run),
      layer_(layer),
      shape_(run.share(layer)),
      scale_(1 / std::sqrt(static_cast<double>(shape_.d_k))),
      key_head_(static_cast<std::int64_t>(mixed(run.problem.seed + layer) %
                                          static_cast<std::uint64_t>(shape_.key_heads()))) {
  for (const RankTensors& tensors : run.ranks)
    keys_.push_back({tensors, rows(tensors, buffer("k"), shape_.d_k, key_head_, 0, shape_.tokens, true),
                     rows(tensors, buffer("v"), shape_.d_v, key_head_, 0, shape_.tokens, true)});
  draw_queries();
}

/// Draws queries from all parts of each rank's tokens, with their gradients; known to all
/// processes.
void SharedKeys::draw_queries() {
  const std::int64_t count = std::min(queries_per_rank, shape_.tokens), group = shape_.group_heads();
  const auto token = [&](std::int64_t i) {
    const std::int64_t first = i * shape_.tokens / count, end = (i + 1) * shape_.tokens / count;
    return first +
           static_cast<std::int64_t>(mixed(run_.problem.seed + i) % static_cast<std::uint64_t>(end - first));
  };
  Numbers mine, all;
  for (const RankTensors& tensors : run_.ranks)
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t head = key_head_ * group; head < (key_head_ + 1) * group; ++head) {
        const Numbers q = rows(tensors, buffer("q"), shape_.d_k, head, token(i), 1, false);
        mine.insert(mine.end(), q.begin(), q.end());
        const Numbers d_o = has_gradients()
                                ? rows(tensors, d_o_buffer(), shape_.d_v, head, token(i), 1, false)
                                : Numbers(shape_.d_v, 0.0);
        mine.insert(mine.end(), d_o.begin(), d_o.end());
      }
  for (const Numbers& row : run_.team.gather(mine)) all.insert(all.end(), row.begin(), row.end());
  auto at = all.begin();
  for (int rank = 0; rank < run_.problem.ranks; ++rank)
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t head = key_head_ * group; head < (key_head_ + 1) * group; ++head) {
        queries_.push_back({rank, token(i), head, Numbers(at, at + shape_.d_k),
                            Numbers(at + shape_.d_k, at + shape_.d_k + shape_.d_v), 0,
                            Numbers(shape_.d_v, 0.0), Numbers(shape_.d_k, 0.0)});
        at += shape_.d_k + shape_.d_v;
      }
}

template <class Add, class Part>
void SharedKeys::over_all_keys(const Part& part, const Add& add) {
  run_.work.for_each(static_cast<int>(queries_.size()), [&](int i) {
    Query& query = queries_[i];
    for (const Keys& keys : keys_)
      for (std::int64_t u = 0; u < seen(query, keys.tensors.rank()); ++u) {
        const double* k = keys.k.data() + u * shape_.d_k;
        add(query, std::exp(scale_ * dot(query.q.data(), k, shape_.d_k)), k, keys.v.data() + u * shape_.d_v);
      }
  });
  Numbers all;
  for (Query& query : queries_)
    for (const std::span<double> own : part(query)) all.insert(all.end(), own.begin(), own.end());
  run_.team.sum(all);
  auto at = all.begin();
  for (Query& query : queries_)
    for (const std::span<double> own : part(query)) {
      std::copy_n(at, own.size(), own.begin());
      at += std::ssize(own);
    }
}

void SharedKeys::attend() {
  over_all_keys(
      [](Query& query) {
        return std::array{std::span(&query.weight, 1), std::span(query.o)};
      },
      [&](Query& query, double weight, const double*, const double* v) {
        query.weight += weight;
        for (std::int64_t c = 0; c < shape_.d_v; ++c) query.o[c] += weight * v[c];
      });
  for (Query& query : queries_)
    for (double& x : query.o) x /= query.weight;
}

void SharedKeys::attend_backward() {
  over_all_keys([](Query& query) { return std::array{std::span(query.dq)}; },
                [&](Query& query, double weight, const double* k, const double* v) {
                  const double slope = dot(query.d_o.data(), v, shape_.d_v) -
                                       dot(query.d_o.data(), query.o.data(), shape_.d_v);
                  for (std::int64_t c = 0; c < shape_.d_k; ++c)
                    query.dq[c] += scale_ * weight / query.weight * slope * k[c];
                });
}

void SharedKeys::compare(Comparison& into) {
  attend();
  if (has_gradients()) attend_backward();
  const double least = 0.1 / std::sqrt(static_cast<double>(shape_.tokens * run_.problem.ranks));
  for (const Keys& keys : keys_) {
    const auto compare = [&](const char* words, const std::string& name, std::int64_t width, auto result) {
      std::vector<float> got;
      Numbers expected;
      for (const Query& query : queries_) {
        if (query.rank != keys.tensors.rank()) continue;
        const Numbers read = rows(keys.tensors, name, width, query.head, query.token, 1, false);
        got.insert(got.end(), read.begin(), read.end());
        expected.insert(expected.end(), (query.*result).begin(), (query.*result).end());
      }
      note(into, relative_error(got, expected, least), of_few_tokens * run_.attention_tolerance(),
           fmt::format("rank {}, layer {}, {} of drawn queries", keys.tensors.rank(), layer_, words));
    };
    compare("o", buffer("o"), shape_.d_v, &Query::o);
    if (has_gradients()) compare("dq", "dq", shape_.d_k, &Query::dq);
  }
  if (has_gradients()) compare_sums(into);
  into.heads = {queries_.front().head};
  into.tokens = std::min(queries_per_rank, shape_.tokens);
}

/// Compares the sums of k dk and v dv over all keys with those of q dq and o do over all queries,
/// which are equal.
void SharedKeys::compare_sums(Comparison& into) const {
  const std::int64_t group = shape_.group_heads();
  const auto total = [&](const std::string& one, const std::string& other, std::int64_t width, bool of_keys) {
    Numbers sum(width, 0.0);
    for (const Keys& keys : keys_)
      for (std::int64_t i = 0; i < (of_keys ? 1 : group); ++i) {
        const std::int64_t head = of_keys ? key_head_ : key_head_ * group + i;
        const Numbers a = rows(keys.tensors, one, width, head, 0, shape_.tokens, of_keys),
                      b = rows(keys.tensors, other, width, head, 0, shape_.tokens, of_keys);
        for (std::size_t at = 0; at < a.size(); ++at) sum[at % width] += a[at] * b[at];
      }
    run_.team.sum(sum);
    return sum;
  };
  const auto compare = [&](const char* words, const Numbers& got, const Numbers& expected) {
    if (run_.team.rank() > 0) return;  // all processes have the same
    note(into, relative_error({got.begin(), got.end()}, expected), of_few_tokens * run_.attention_tolerance(),
         fmt::format("layer {}, {} of head {} of keys, summed up over all ranks", layer_, words, key_head_));
  };
  compare("dk", total(buffer("k"), "dk", shape_.d_k, true), total(buffer("q"), "dq", shape_.d_k, false));
  compare("dv", total(buffer("v"), "dv", shape_.d_v, true),
          total(buffer("o"), d_o_buffer(), shape_.d_v, false));
}

}  // namespace

Comparison compare_softmax_layers(const SampledRun& run) {
  Comparison all;
  for (const int layer : run.layers(Attention::softmax)) {
    Comparison one;
    SharedKeys(run, layer).compare(one);
    all = sum(std::move(all), one);
  }
  return all;
}

}  // namespace baton
