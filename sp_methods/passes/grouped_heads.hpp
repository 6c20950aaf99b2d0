// SPDX-License-Identifier: Apache-2.0
// Fewer heads of q and k than of v, around the steps of a method of linear attention that has as
// many of all. Heads of v whose numbers follow one another share a head of q and k.
//
//   q, k = each head of q and of k once for each head of v that shares it
//   .. the method ..
//   dq, dk = the sums over the heads that share one, in f32
//
// To the kernels that pack heads for ranks, each head of each token goes to as many ranks as heads
// of v share it.
// Cost: q, k, dq and dk of all heads are written and read once more. A kernel that finds the shared
// head by itself would save this.
// Source: transformers, src/transformers/models/qwen3_next/modeling_qwen3_next.py, repeats heads.
#pragma once

#include <utility>

#include "sp_methods/kernels/heads.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {

/// The heads of q and k that one rank works on. If they are as many as those of v, they stay as
/// they are.
class GroupedHeads {
 public:
  /// Records q and k of x for all heads of v. The tokens of a rank lie as `layout` says.
  GroupedHeads(Schedule& schedule, const Layer& layer, const LayerTensors& x, Layout layout)
      : schedule_(schedule),
        inner_(layer),
        layout_(layout),
        group_(layer.share.heads / layer.share.query_heads()) {
    inner_.share.qk_heads = 0;
    for (Slice LayerTensors::*tensor : {&LayerTensors::q, &LayerTensors::k}) {
      all_.*tensor = of_all_heads(x.*tensor);
      for_each_run(x.*tensor, all_.*tensor, [&](const Slice& few, const Slice& all) {
        record<PackHeads>(schedule_, blocks(few), {.blocks = all, .tensor = few});
      });
    }
  }

  /// The layer with as many heads of q and k as of v.
  const Layer& layer() const { return inner_; }

  /// The tensors x with all heads of q and k, and their gradients.
  LayerTensors inside(const LayerTensors& x) {
    LayerTensors inner = x;
    inner.q = all_.q, inner.k = all_.k;
    for (Slice LayerTensors::*tensor : {&LayerTensors::dq, &LayerTensors::dk}) {
      if ((all_.*tensor).empty()) all_.*tensor = of_all_heads(x.*tensor);
      inner.*tensor = all_.*tensor;
    }
    return inner;
  }

  /// Records dq and dk of x, once those of all heads are there.
  void record_backward(const LayerTensors& x) {
    for (Slice LayerTensors::*tensor : {&LayerTensors::dq, &LayerTensors::dk})
      for_each_run(x.*tensor, all_.*tensor, [&](const Slice& few, const Slice& all) {
        record<UnpackHeads>(schedule_, blocks(few), {.tensor = few, .blocks = all});
      });
  }

 private:
  Slice of_all_heads(const Slice& x) {
    return group_ == 1 || x.empty() ? x : schedule_.scratch("all_heads", group_ * x.count, x.dtype);
  }
  /// Calls body(few, all) for each run of tokens of this rank, so that none waits for another's.
  template <class Body>
  void for_each_run(const Slice& few, const Slice& all, const Body& body) const {
    if (group_ == 1 || few.empty()) return;
    const Cut cut = cut_of(inner_, layout_, schedule_.ranks());
    const std::int64_t row = few.count / inner_.share.tokens;
    const std::int64_t back = cut.pieces() == 1 ? 0 : row * cut.piece(schedule_.rank(), 1);
    const std::int64_t front = few.count - back;
    body(few.part(0, front), all.part(0, group_ * front));
    if (back > 0) body(few.part(front, back), all.part(group_ * front, group_ * back));
  }
  HeadBlocks blocks(const Slice& x) const {
    const std::int64_t heads = x.count / inner_.share.d_k;
    return {
        .tokens = 1, .ranks = group_ * heads, .heads = heads, .width = inner_.share.d_k, .dtype = x.dtype};
  }

  Schedule& schedule_;
  Layer inner_;
  Layout layout_;
  std::int64_t group_;  // heads of v that share one of q and k
  LayerTensors all_;
};

/// Records the steps of `build` with all heads of q and k. The tokens of a rank lie as `layout`
/// says.
template <class Build>
auto grouped(Build build, Layout layout) {
  return [build = std::move(build), layout](Schedule& s, const Layer& layer, const LayerTensors& x) {
    GroupedHeads heads(s, layer, x, layout);
    build(s, heads.layer(), heads.inside(x));
    if (layer.pass != Pass::forward) heads.record_backward(x);
  };
}

}  // namespace baton
