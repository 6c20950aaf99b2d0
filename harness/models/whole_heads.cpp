// SPDX-License-Identifier: Apache-2.0
// Layers of a delta rule, or with a convolution, of a model that has run, at any size:
//
//   for the first of them, the last and a drawn one, of those whose tensors are there:
//     every rank gives its rows of one head of q and k and of the heads of values that share it
//     all ranks solve these heads over the whole sequence together
//     each rank compares o of its tokens; in the model's first layer dq, dk, dv, dg, dbeta and
//     the gradients of Mamba-2's steps too
//
// A state that is missing, late or another rank's shows in the tokens behind the border of ranks.
// Cost: about 10 d_k d_v flop a token and head of values forward, five times as many backward.
#include "harness/models/whole_heads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "collectives/drawn_numbers.hpp"
#include "sp_methods/head_oracle.hpp"
#include "sp_methods/models/reference/functions.hpp"

namespace baton {
namespace {

using Numbers = std::vector<double>;

/// One head of q in one layer, with the heads of values that share it.
class WholeHeads {
 public:
  WholeHeads(const SampledRun& run, int layer)
      : run_(run),
        layer_(layer),
        share_(run.share(layer)),
        group_(share_.heads / share_.query_heads()),
        head_(static_cast<std::int64_t>(mixed(run.problem.seed + layer) %
                                        static_cast<std::uint64_t>(share_.query_heads()))),
        problem_(problem_of_heads()) {}

  void compare(Comparison& into) {
    AttentionRows rows{gathered("q"), gathered("k"),    gathered("v"),
                       gathered("g"), gathered("beta"), share_.conv > 0 ? taps() : Matrix()};
    if (run_.stack().shape.is_mamba(Attention::linear)) {
      rows.steps = softplus(gathered("z").rowwise() + of_heads("gate_bias").row(0));
      rows.skip = of_heads("skip");
    }
    expect("o", layer_buffer("o", layer_),
           reference_attention(problem_, Attention::linear, rows, 0, run_.work), into);
    into.heads = {head_ * group_};
    into.tokens = share_.tokens;
    if (!run_.has_gradients(layer_)) return;
    const AttentionRows d =
        reference_attention_backward(problem_, Attention::linear, rows, gathered("d_o"), 0, run_.work).of;
    for (const auto& [name, right] : {std::pair{"dq", &d.q},
                                      {"dk", &d.k},
                                      {"dv", &d.v},
                                      {"dg", &d.g},
                                      {"dbeta", &d.beta},
                                      {"ddelta", &d.steps}})
      if (right->size() > 0) expect(name, name, *right, into);
  }

 private:
  /// The model with these heads alone.
  ModelProblem problem_of_heads() const {
    ModelProblem problem = run_.problem;
    LinearLayers& linear = problem.stack.shape.linear;
    linear.heads = group_;
    linear.qk_heads = group_ == 1 ? 0 : 1;
    return problem;
  }
  /// Columns of a tensor of this layer that the heads have, and all columns.
  struct Part {
    Columns own;
    std::int64_t row;
  };
  Part part(const std::string& name) const {
    const std::string of = name.starts_with("d") && name != "d_o" ? name.substr(1) : name;
    const bool is_of_queries = of == "q" || of == "k";
    const std::int64_t width = of == "g"                                    ? share_.gate_width()
                               : of == "beta" || of == "z" || of == "delta" ? 1
                               : is_of_queries                              ? share_.d_k
                                                                            : share_.d_v;
    const std::int64_t heads = is_of_queries ? share_.query_heads() : share_.heads;
    const std::int64_t own = is_of_queries ? width : group_ * width;
    return {{head_ * own, own}, heads * width};
  }
  Numbers of_rank(const RankTensors& rank, const std::string& name, const std::string& buffer) const {
    const auto [own, row] = part(name);
    const Slice slice = run_.own_rows(rank, buffer, share_.tokens * row);
    if (slice.empty()) return {};
    const auto values = rank.columns(slice, row, {&own, 1}).front();
    return {values.begin(), values.end()};
  }
  /// The rows of an input of all ranks. Collective over the team.
  Matrix gathered(const std::string& name) const {
    Numbers mine, all;
    for (const RankTensors& rank : run_.ranks) {
      const Numbers rows = of_rank(rank, name, name == "d_o" ? name : layer_buffer(name, layer_));
      mine.insert(mine.end(), rows.begin(), rows.end());
    }
    for (const Numbers& row : run_.team.gather(mine)) all.insert(all.end(), row.begin(), row.end());
    const std::int64_t columns = part(name).own.count;
    if (all.empty()) return {};
    return Eigen::Map<const Matrix>(all.data(), std::ssize(all) / columns, columns);
  }
  /// A weight of the layer, all of whose weights are `all`.
  const float* weight(const std::vector<float>& all, const std::string& name) const {
    const ModelShape& shape = run_.stack().shape;
    const LayerWeights placed(shape, shape.layers[layer_], {0, 0, std::ssize(all)});
    return all.data() + placed[name].slice.offset;
  }
  /// The numbers of the heads of values in a weight that has one a head.
  Matrix of_heads(const std::string& name) const {
    const std::vector<float> all = layer_weight_values(run_.problem, layer_);
    const float* own = weight(all, name) + head_ * group_;
    return Eigen::Map<const Eigen::RowVectorXf>(own, group_).cast<double>();
  }
  Matrix taps() const;
  void expect(const std::string& name, const std::string& buffer, const Matrix& right,
              Comparison& into) const;

  const SampledRun& run_;
  int layer_;
  LayerShape share_;
  std::int64_t group_, head_;
  ModelProblem problem_;
};

/// The weights of the convolution of these heads.
Matrix WholeHeads::taps() const {
  const std::vector<float> all = layer_weight_values(run_.problem, layer_);
  const auto [q, k, v] = first_weights(share_, head_ * group_);
  const std::int64_t of_keys = share_.d_k * share_.conv_weights(),
                     of_values = group_ * share_.d_v * share_.conv_weights();
  Matrix own(2 * share_.d_k + group_ * share_.d_v, share_.conv_weights());
  double* into = own.data();
  for (const auto& [first, count] : {std::pair{q, of_keys}, {k, of_keys}, {v, of_values}})
    into = std::copy_n(weight(all, "conv") + first, count, into);
  return own;
}

/// Compares what each rank of this process has with its rows of `right`.
void WholeHeads::expect(const std::string& name, const std::string& buffer, const Matrix& right,
                        Comparison& into) const {
  for (const RankTensors& rank : run_.ranks) {
    const Numbers found = of_rank(rank, name, buffer);
    const Matrix own = right.middleRows(rank.rank() * share_.tokens, share_.tokens);
    note(into, relative_error({found.begin(), found.end()}, {own.data(), own.data() + own.size()}),
         run_.attention_tolerance(),
         fmt::format("rank {}, layer {}, {} of head {}", rank.rank(), layer_, name, head_ * group_));
  }
}

}  // namespace

bool has_whole_heads(const Stack& stack) {
  const LinearLayers& of = stack.shape.linear;
  return of.rule != Rule::decay || of.conv > 0 || of.qk_heads > 0;
}

Comparison compare_whole_heads(const SampledRun& run) {
  const std::vector<int> linear = run.layers(Attention::linear);
  Comparison all;
  for (const int layer : std::set{linear.front(), linear[run.problem.seed % linear.size()], linear.back()}) {
    Comparison one;
    WholeHeads(run, layer).compare(one);
    all = sum(std::move(all), one);
  }
  return all;
}

}  // namespace baton
