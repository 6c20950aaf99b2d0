// SPDX-License-Identifier: Apache-2.0
// Layers of linear attention of a model that has run, and the states that ranks exchanged for them,
// at any size: each rank compares its tokens with the recurrence from the state that must come in.
//
//   for each layer whose tensors are there after a round, and for the gradients of the first:
//     every rank's map of states, of all heads, from its keys, values and gates
//     gather the maps; the state before a rank is the fold of the maps before it
//     first tokens, all heads:  o (dq) by the recurrence from that state
//     last tokens, all heads:   dk and dv likewise, from the gradient of the state behind them
//     all tokens, one head:     o, dq, dk, dv and dg, in the first layer and in a drawn one
//
// A state that is missing, late or another rank's shows in the tokens beside the border between
// two ranks: gates let it fade after that.
// Cost: 2 d_k d_v flop a head and token for a map, of the tokens that the gates do not erase; 25
// times d_k d_v a token for the one head.
#include "harness/models/linear_layers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/drawn_numbers.hpp"
#include "harness/models/sampled.hpp"
#include "sp_methods/head_oracle.hpp"
#include "sp_methods/kernels/reference/maps.hpp"

namespace baton {
namespace {

constexpr std::int64_t border_tokens = 16;
constexpr std::int64_t tokens_at_once = 256;
/// A factor of the tolerance of few tokens, whose rounding errors even out less than those of all.
constexpr double of_few_tokens = 4;

using Numbers = std::vector<double>;

/// One layer's tensors on one rank.
struct LayerSlices {
  std::map<std::string, Slice> by_name;

  LayerSlices(const SampledRun& run, const RankTensors& tensors, const LayerShape& shape, int layer) {
    const auto add = [&](const std::string& name, const std::string& buffer, std::int64_t width) {
      by_name[name] = run.own_rows(tensors, buffer, shape.tokens * shape.heads * width);
    };
    add("q", layer_buffer("q", layer), shape.d_k);
    add("k", layer_buffer("k", layer), shape.d_k);
    add("v", layer_buffer("v", layer), shape.d_v);
    add("g", layer_buffer("g", layer), shape.gate_width());
    add("o", layer_buffer("o", layer), shape.d_v);
    if (!run.has_gradients(layer)) return;
    for (const char* name : {"dq", "dk"}) add(name, name, shape.d_k);
    for (const char* name : {"d_o", "dv"}) add(name, name, shape.d_v);
    add("dg", "dg", shape.gate_width());
  }

  bool has_gradients() const { return by_name.contains("dq"); }
  const Slice& operator[](const std::string& name) const { return by_name.at(name); }
};

/// One layer on the ranks of this process, with the incoming states of each rank [heads, d_k, d_v].
class LayerRun {
 public:
  LayerRun(const SampledRun& run, int layer) : run_(run), layer_(layer), shape_(run.share(layer)) {
    for (const RankTensors& tensors : run.ranks) slices_.emplace_back(run, tensors, shape_, layer);
    states_ = incoming(true);
    if (run.has_gradients(layer)) d_states_ = incoming(false);
  }

  void compare(Comparison& into) const;

 private:
  /// Tokens and heads whose tensors are compared together.
  struct Part {
    std::int64_t first, tokens;
    std::vector<std::int64_t> heads;
    std::vector<const char*> names;
    double tolerance;
    std::string words;
  };

  std::int64_t state_count() const { return shape_.d_k * shape_.d_v; }
  std::int64_t width(const std::string& name) const {
    if (name == "g" || name == "dg") return shape_.gate_width();
    return name == "v" || name == "o" || name == "d_o" || name == "dv" ? shape_.d_v : shape_.d_k;
  }
  Numbers of_head(std::size_t rank, const std::string& name, const Part& part, std::int64_t head) const {
    const std::int64_t own = width(name);
    return run_.ranks[rank].of_head(slices_[rank][name], shape_.heads * own, own, head, part.first,
                                    part.tokens);
  }
  Numbers maps_of(std::size_t rank, bool is_forward) const;
  std::vector<Numbers> incoming(bool is_forward) const;
  HeadInputs inputs(std::size_t rank, const Part& part, std::int64_t head) const;
  void compare_part(std::size_t rank, const Part& part, Comparison& into) const;

  const SampledRun& run_;
  int layer_;
  LayerShape shape_;
  std::vector<LayerSlices> slices_;
  std::vector<Numbers> states_, d_states_;  // by the rank's place in this process
};

/// Decay and state of every head side by side: the map of the rank's tokens on an incoming state,
/// or on its gradient in the backward direction.
Numbers LayerRun::maps_of(std::size_t rank, bool is_forward) const {
  const RankTensors& tensors = run_.ranks[rank];
  std::vector<ReferenceMap> maps(shape_.heads, ReferenceMap(shape_, is_forward));
  const auto is_complete = [](const ReferenceMap& map) { return map.is_complete(); };
  for (std::int64_t done = 0; done < shape_.tokens && !std::all_of(maps.begin(), maps.end(), is_complete);
       done += tokens_at_once) {
    const std::int64_t count = std::min(tokens_at_once, shape_.tokens - done);
    const std::int64_t first = is_forward ? shape_.tokens - done - count : done;
    const auto rows = [&](const char* name) {
      const std::int64_t row = shape_.heads * width(name);
      return tensors.part(slices_[rank][name].part(first * row, count * row));
    };
    const auto left = rows(is_forward ? "k" : "q"), right = rows(is_forward ? "v" : "d_o"), g = rows("g");
    run_.work.for_each(static_cast<int>(shape_.heads), [&](int head) {
      const auto of_head = [&](const std::vector<float>& all, std::int64_t own) {
        std::vector<float> values;
        for (std::int64_t t = 0; t < count; ++t) {
          const auto at = all.begin() + (t * shape_.heads + head) * own;
          values.insert(values.end(), at, at + own);
        }
        return values;
      };
      maps[head].add(of_head(left, shape_.d_k), of_head(right, shape_.d_v), of_head(g, width("g")));
    });
  }
  Numbers all;
  for (const ReferenceMap& map : maps) {
    const Numbers decay = map.decay();
    all.insert(all.end(), decay.begin(), decay.end());
    all.insert(all.end(), map.state().begin(), map.state().end());
  }
  return all;
}

/// The incoming states of this process's ranks, or the gradients of their outgoing states.
/// Collective over the team.
std::vector<Numbers> LayerRun::incoming(bool is_forward) const {
  std::vector<Numbers> states(run_.ranks.size(), Numbers(shape_.heads * state_count(), 0.0));
  if (run_.stack().is_alone() || run_.problem.ranks == 1) return states;
  Numbers mine, all;
  for (std::size_t rank = 0; rank < run_.ranks.size(); ++rank) {
    const Numbers maps = maps_of(rank, is_forward);
    mine.insert(mine.end(), maps.begin(), maps.end());
  }
  for (const Numbers& row : run_.team.gather(mine)) all.insert(all.end(), row.begin(), row.end());
  const std::int64_t of_head = shape_.d_k + state_count(), of_rank = shape_.heads * of_head;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const int own = run_.ranks[i].rank(), last = run_.problem.ranks - 1;
    for (int rank = is_forward ? 0 : last; rank != own; rank += is_forward ? 1 : -1)
      for (std::int64_t at = 0; at < std::ssize(states[i]); ++at) {
        const std::int64_t head = at / state_count(), in_head = at % state_count();
        const auto map = all.begin() + rank * of_rank + head * of_head;
        states[i][at] = states[i][at] * map[in_head / shape_.d_v] + map[shape_.d_k + in_head];
      }
  }
  return states;
}

HeadInputs LayerRun::inputs(std::size_t rank, const Part& part, std::int64_t head) const {
  LayerShape shape = shape_;
  shape.tokens = part.tokens;
  HeadInputs in(shape);
  in.q = of_head(rank, "q", part, head), in.k = of_head(rank, "k", part, head);
  in.v = of_head(rank, "v", part, head), in.g = of_head(rank, "g", part, head);
  const auto state = [&](const std::vector<Numbers>& all) {
    const auto at = all[rank].begin() + head * state_count();
    return Numbers(at, at + state_count());
  };
  in.state = state(states_);
  if (!slices_[rank].has_gradients()) return in;
  in.d_o = of_head(rank, "d_o", part, head);
  in.d_state = state(d_states_);
  return in;
}

void LayerRun::compare_part(std::size_t rank, const Part& part, Comparison& into) const {
  const bool has_gradients = slices_[rank].has_gradients();
  std::map<std::string, std::vector<float>> got;
  std::map<std::string, Numbers> expected;
  for (const std::int64_t head : part.heads) {
    const HeadInputs in = inputs(rank, part, head);
    const LayerProblem of{.share = in.shape};
    HeadSums sums(of, in, has_gradients);
    const int units = std::min(most_units(of), part.tokens > border_tokens ? run_.work.threads : 1);
    run_.work.for_each(units, [&](int unit) { solve_unit(sums, in, has_gradients, {unit, units}); });
    for (const std::string name : part.names) {
      if (name != "o" && (!has_gradients || slices_[rank][name].empty())) continue;
      const Numbers read = of_head(rank, name, part, head), &right = sums.all().at(name);
      got[name].insert(got[name].end(), read.begin(), read.end());
      expected[name].insert(expected[name].end(), right.begin(), right.end());
    }
  }
  for (const auto& [name, values] : got)
    note(into, relative_error(values, expected[name]), part.tolerance,
         fmt::format("rank {}, layer {}, {} of {}", run_.ranks[rank].rank(), layer_, name, part.words));
}

void LayerRun::compare(Comparison& into) const {
  const std::int64_t few = std::min(border_tokens, shape_.tokens), end = shape_.tokens - few;
  const bool is_drawn = run_.is_drawn(layer_);
  const auto head =
      static_cast<std::int64_t>(mixed(run_.problem.seed + layer_) % static_cast<std::uint64_t>(shape_.heads));
  std::vector<std::int64_t> heads;
  for (std::int64_t i = 0; i < shape_.heads; ++i) heads.push_back(i);
  const double tolerance = run_.attention_tolerance();
  std::vector<Part> parts{
      {0, few, heads, {"o", "dq"}, of_few_tokens * tolerance, "the first tokens"},
      {end, few, heads, {"dk", "dv"}, of_few_tokens * tolerance, "the last tokens"},
  };
  if (is_drawn)
    parts.push_back(
        {0, shape_.tokens, {head}, {"o", "dq", "dk", "dv", "dg"}, tolerance, fmt::format("head {}", head)});
  for (std::size_t rank = 0; rank < run_.ranks.size(); ++rank)
    for (const Part& part : parts) compare_part(rank, part, into);
  if (is_drawn) into.heads = {head}, into.tokens = shape_.tokens;
}

}  // namespace

Comparison compare_linear_layers(const SampledRun& run) {
  Comparison all;
  for (const int layer : run.layers(Attention::linear)) {
    Comparison one;
    LayerRun(run, layer).compare(one);
    all = sum(std::move(all), one);
  }
  return all;
}

}  // namespace baton
