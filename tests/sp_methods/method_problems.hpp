// SPDX-License-Identifier: Apache-2.0
// The layers of every_method_test: those that a method is run with, by what they vary.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "collectives/collective.hpp"
#include "sp_methods/layer_inputs.hpp"
#include "sp_methods/sp_method.hpp"
#include "tests/held_out_seed.hpp"

namespace baton::test {

/// A method with a layer, on so many ranks.
struct Problem {
  const SpMethod* method;
  Layer layer;
  int ranks;
  GateDraw gates = GateDraw::layer;
  std::uint64_t seed = 1;

  bool is_alone() const { return layer.mode == Mode::compute_only || method->sequence == Sequence::own; }
  std::string name() const {
    const LayerShape& s = layer.share;
    return fmt::format(
               "{}/ranks:{}/{}/{}/{}/gates:{}/tokens:{}/batch:{}/heads:{}/kv_heads:{}/qk_heads:{}/d_k:{}/"
               "d_v:{}/chunk:{}/conv:{}/groups:{}/scan:{}/state:{}/seed:{}{}",
               method->name, ranks, to_string(layer.pass), to_string(layer.mode),
               has_matrices(layer.rule) ? attention_name(method->attention, layer.rule, s.gate)
                                        : to_string(s.gate),
               to_string(gates), s.tokens, s.batch, s.heads, s.key_heads(), s.query_heads(), s.d_k, s.d_v,
               s.chunk, s.conv, layer.groups, layer.scan, to_string(layer.states), seed,
               layer.segmented ? "/segmented" : "") +
           (layer.starts.empty() ? "" : fmt::format("/starts:{}", fmt::join(layer.starts, "-"))) +
           (s.latent ? "/latent/" : "/") + to_string(layer.dtype) +
           (layer.shares.are_equal()
                ? ""
                : fmt::format("/shares:{}/of:{}", to_string(layer.shares), layer.shares.sequence)) +
           (layer.mask == Mask{} ? "" : fmt::format("/mask:{}/to:{}", to_string(layer.mask), layer.mask.end));
  }
};

/// d_k != d_v; one head and a chunk that does not divide the tokens; one chunk a rank. Heads of
/// softmax attention share keys two by two, or all of them, and these may be latent.
inline std::vector<LayerShape> shapes(Attention attention, GateKind gate) {
  std::vector<LayerShape> all{{24, 2, 8, 12, 8, gate}, {22, 1, 12, 4, 8, gate}, {10, 4, 4, 8, 16, gate}};
  if (attention == Attention::linear) return all;
  for (const std::int64_t kv_heads : {4, 1}) all.push_back({20, 8, 4, 6, 8, gate, kv_heads});
  all.push_back({18, 8, 7, 5, 8, gate, 1, true});
  return all;
}

inline Problem held_out(const SpMethod& method, bool latent = false) {
  Problem problem{.method = &method, .layer = {}, .ranks = 3, .seed = held_out_seed()};
  std::mt19937_64 random(problem.seed);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  problem.layer.share = {2 * pick(1, 40), pick(1, 4),  pick(1, 40),
                         pick(1, 40),     pick(1, 70), GateKind{pick(0, 2)}};
  if (method.attention == Attention::softmax) {
    problem.layer.share.gate = GateKind::none;
    problem.layer.share.kv_heads = problem.layer.share.heads;
    problem.layer.share.heads *= pick(1, 3);
  }
  if (latent) {
    problem.layer.share.latent = true;
    problem.layer.share.kv_heads = 1;
    problem.layer.share.d_k += problem.layer.share.d_v;
  }
  problem.layer.pass = Pass::both;
  problem.gates = pick(0, 1) == 0 ? GateDraw::layer : GateDraw::strong;
  return problem;
}

/// One method under every pass, mode, gate kind and draw, on one shape and rank count.
inline void add_variants(std::vector<Problem>& all, const SpMethod& method, const LayerShape& shape,
                         int ranks, bool segmented) {
  for (Pass pass : {Pass::forward, Pass::backward, Pass::both})
    for (Mode mode : {Mode::overlapped, Mode::exposed, Mode::compute_only})
      for (GateDraw gates : {GateDraw::layer, GateDraw::strong, GateDraw::weak}) {
        if (shape.gate == GateKind::none && gates != GateDraw::layer) continue;
        if (gates == GateDraw::weak && (pass != Pass::both || mode != Mode::overlapped)) continue;
        all.push_back(
            {&method, {.share = shape, .pass = pass, .mode = mode, .segmented = segmented}, ranks, gates});
      }
}

/// Packed documents of a few tokens, and of more than a rank has: starts lie within chunks, at a
/// rank's border, or nowhere in a rank.
inline void add_packed(std::vector<Problem>& all, const SpMethod& method, int ranks) {
  if (!method.packs) return;
  const bool is_softmax = method.attention == Attention::softmax;
  for (const std::int64_t mean : {4, 30})
    for (GateKind gate : {GateKind::vector, GateKind::scalar, GateKind::none})
      for (const bool segmented : {false, true}) {
        if (gate == GateKind::none ? segmented : is_softmax) continue;
        const std::size_t first = all.size();
        add_variants(all, method, {24, 2, 8, 12, 8, gate}, ranks, segmented);
        for (std::size_t i = first; i < all.size(); ++i)
          all[i].layer.starts = drawn_starts(mean, 24, ranks, 10 + i);
        for (std::size_t i = first, count = all.size(); i < count && is_softmax; ++i)
          for (const Mask& mask : {Mask{MaskKind::full}, Mask{.window = 7}}) {
            all.push_back(all[i]);
            all.back().layer.mask = mask;
          }
      }
}

/// Two sequences of four heads, which four ranks can share; keys of softmax attention are fewer.
inline void add_batch(std::vector<Problem>& all, const SpMethod& method, int ranks) {
  const bool has_gates = method.attention == Attention::linear;
  LayerShape shape{.tokens = 24, .heads = 8, .d_k = 8, .d_v = 12, .chunk = 8};
  shape.gate = has_gates ? GateKind::vector : GateKind::none;
  shape.kv_heads = has_gates ? 0 : 2;
  shape.batch = 2;
  add_variants(all, method, shape, ranks, false);
}

/// Convolutions whose halo is shorter than a share, or comes from several ranks, and documents that
/// do not see it. The sequences of a batch share their weights.
inline void add_convolutions(std::vector<Problem>& all, const SpMethod& method, int ranks) {
  if (!method.convolves) return;
  LayerShape shape{.tokens = 24, .heads = 4, .d_k = 8, .d_v = 12, .chunk = 8};
  shape.conv = 4;
  add_variants(all, method, shape, ranks, false);
  const auto add = [&](std::int64_t tokens, std::int64_t batch, std::int64_t mean) {
    for (const Pass pass : {Pass::forward, Pass::backward, Pass::both}) {
      Layer layer{.share = shape, .pass = pass};
      layer.share.tokens = tokens;
      layer.share.batch = batch;
      layer.share.heads *= batch;
      if (mean > 0) layer.starts = drawn_starts(mean, tokens, ranks, all.size());
      all.push_back({&method, layer, ranks});
    }
  };
  add(2, 1, 0), add(3, 1, 0), add(24, 2, 0);
  if (method.packs) add(24, 1, 6), add(3, 1, 2);
}

/// Head groups, and every exclusive scan in the place of the method's own. Softmax methods have no
/// scans, and grids of ranks, which need 4 of them.
inline void add_choices(std::vector<Problem>& all, const SpMethod& method) {
  const bool has_gates = method.attention == Attention::linear;
  const int ranks = has_gates ? 3 : 4;
  const GateKind gate = has_gates ? GateKind::vector : GateKind::none;
  const Layer layer{.share = {12, 4, 6, 8, 8, gate}, .pass = Pass::both, .blocks = 3};
  for (int groups : {2, 4}) {
    all.push_back({&method, layer, ranks});
    all.back().layer.groups = groups;
  }
  if (!has_gates) return;
  for (int groups : {1, 2}) {
    all.push_back({&method, layer, ranks});
    all.back().layer.groups = groups;
    all.back().layer.segmented = true;
  }
  if (method.scan.empty()) return;
  for (const Collective* scan : collectives()) {
    if (scan->kind != Kind::exclusive_scan) continue;
    for (const bool is_packed : {false, method.packs}) {
      all.push_back(is_packed ? Problem(all.back()) : Problem{&method, layer, ranks});
      all.back().layer.scan = scan->name;
      if (is_packed) all.back().layer.starts = drawn_starts(10, layer.share.tokens, ranks, 3);
    }
  }
}

/// Sizes from which on a loop, a buffer or a pipeline does something else: more than 20 heads and
/// 16 full blocks, more than 4096 tokens, several chunks in each of two segments.
inline void add_large(std::vector<Problem>& all, const SpMethod& method) {
  const bool has_gates = method.attention == Attention::linear;
  const GateKind gate = has_gates ? GateKind::vector : GateKind::none;
  const Layer heads{.share = {12, 22, 4, 6, 4, gate}, .pass = Pass::both, .blocks = 16};
  const Layer tokens{.share = {4100, 1, 4, 4, 64, gate}, .pass = Pass::both};
  Layer segments{.share = {40, 2, 4, 6, 4, gate}, .pass = Pass::both, .segmented = has_gates};
  segments.kernels.blocks = 4;
  for (const Layer& layer : {heads, tokens, segments}) all.push_back({&method, layer, 2});
}

/// What a device has kernels for: bf16, in segments, d_k and d_v of 64 and 128, a short last chunk.
/// Every pass and mode on one shape, both passes on the others: a problem takes a tenth of a second
/// to solve in double precision.
inline void add_device_problems(std::vector<Problem>& all, const SpMethod& method) {
  const bool has_gates = method.attention == Attention::linear;
  for (int ranks : {1, 2, 4})
    for (GateKind gate : {GateKind::vector, GateKind::scalar, GateKind::none})
      for (const LayerShape& shape :
           {LayerShape{200, 2, 64, 128, 64, gate}, LayerShape{150, 3, 128, 64, 64, gate}}) {
        if (!has_gates && gate != GateKind::none) continue;
        const std::size_t first = all.size();
        if (gate == (has_gates ? GateKind::vector : GateKind::none) && shape.d_k == 64)
          add_variants(all, method, shape, ranks, true);
        else
          all.push_back(
              {&method, {.share = shape, .pass = Pass::both, .segmented = true}, ranks, GateDraw::strong});
        for (std::size_t i = first; i < all.size(); ++i) all[i].layer.dtype = Dtype::bf16;
        if (method.convolves) {
          all.push_back(all.back());
          all.back().layer.share.conv = 4;
        }
        if (!method.packs || gate == GateKind::none) continue;
        all.push_back(all.back());
        all.back().layer.share.conv = 0;
        all.back().layer.starts = drawn_starts(40, shape.tokens, ranks, all.size());
      }
  Problem random = held_out(method);
  random.layer.dtype = Dtype::bf16;
  random.layer.segmented = true;
  random.layer.share = {random.layer.share.tokens * 8, 4, 128, 128, 64, random.layer.share.gate};
  random.layer.groups = method.scan.empty() ? 1 : 2;
  random.layer.kernels.blocks = 8;  // several chunks in a segment
  all.push_back(random);
}

/// The problems in f32 of a method that knows a rule with matrices, under it; on one process at all
/// rank counts. Gates as a layer makes them would hide a wrong matrix. A low-rank layer has a gate
/// for each channel.
inline std::vector<Problem> under_rule(Rule rule, const SpMethod& method, std::vector<Problem> all,
                                       bool is_local) {
  if (std::find(method.rules.begin(), method.rules.end(), rule) == method.rules.end()) return {};
  for (int ranks : {5, 6, 7})
    for (GateKind gate : {GateKind::vector, GateKind::scalar, GateKind::none})
      if (is_local) add_variants(all, method, {24, 2, 8, 12, 8, gate}, ranks, false);
  std::erase_if(all, [rule](const Problem& problem) {
    return problem.layer.segmented || problem.layer.dtype != Dtype::f32 ||
           (rule == Rule::low_rank && problem.layer.share.gate != GateKind::vector);
  });
  for (Problem& problem : all) {
    problem.layer.rule = rule;
    if (problem.gates == GateDraw::layer) problem.gates = GateDraw::mixed;
  }
  return all;
}

/// Gives a method that shares heads among ranks as many as that takes, fewer of q and k in some
/// problems if it takes them, and states if it takes them.
/// Problems that share an oracle have the same ones.
inline void fit(Problem& problem) {
  const LayerShape& share = problem.layer.share;
  const auto varied = problem.ranks + share.tokens + share.heads + static_cast<std::int64_t>(problem.gates) +
                      static_cast<std::int64_t>(problem.layer.starts.size());
  const auto takes = [&](const Layer& one) { return !problem.method->unsupported(one, problem.ranks); };
  Layer more = problem.layer;
  more.share.heads *= problem.ranks;
  more.share.kv_heads *= problem.ranks;
  if (!takes(problem.layer) && takes(more)) problem.layer = more;
  more = problem.layer;
  const std::int64_t group = std::int64_t{1} << (varied / 4 % 3);  // of heads that share one of q and k
  if (more.share.heads / more.share.batch % group == 0) more.share.qk_heads = more.share.heads / group;
  if (takes(more)) problem.layer = more;
  more = problem.layer;
  more.states = States(varied % 4);
  if (takes(more)) problem.layer = more;
}

}  // namespace baton::test
