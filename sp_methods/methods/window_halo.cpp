// SPDX-License-Identifier: Apache-2.0
// Softmax attention with a sliding window: ranks get the keys that their queries see, and no more.
//
//   each run of tokens gets the W-1 keys and values before it, its halo, from the ranks before it
//   (out, lse) = attention of the own queries over the own keys, while the halos travel
//   (out, lse) of the first W-1 queries of a run = merge of these and of attention over its halo
//   backward:  dk, dv of a halo, from these queries, go back in f32
//     dq, dk, dv of the own queries and keys, while they travel
//     what came back is added in the order of the sequence
//
// Shares that are shorter than a halo get it from several ranks, all at once. Zigzag ranks have two
// runs and two halos, each sent apart, which leave out the keys of the rank itself. With a window
// all tokens have about the same work, so zigzag tokens balance nothing here.
// Cost: W-1 rows of keys and values in the tensors' type forward, or before a backward pass alone,
// and twice as many with zigzag tokens on three ranks or more; backward the gradients of the halos
// that a rank has, in f32. 1 hop each.
// Source: arXiv 2004.05150 (Longformer) for the window; NVIDIA/Megatron-LM, issue 5593, has halos
// of zigzag tokens.
#include <algorithm>
#include <vector>

#include "sp_methods/passes/softmax_steps.hpp"

namespace baton {
namespace {

/// A part of the halo of one run, on its way from the rank that has it.
struct Transfer {
  Run part;
  std::int64_t place = 0;   ///< The run, among all in the order of the sequence.
  std::int64_t to = 0;      ///< The rank of the run.
  std::int64_t offset = 0;  ///< The first row of the part in the halo.
};

/// The parts of the halos of all runs under a mask with a window, in the order of the sequence. A
/// run without tokens has none, and no rank sends to itself.
std::vector<Transfer> transfers(const std::vector<Run>& runs, const Mask& mask) {
  std::vector<Transfer> all;
  for (std::int64_t place = 0; place < std::ssize(runs); ++place) {
    const Run& run = runs[place];
    if (run.count == 0) continue;
    std::int64_t offset = 0;
    for (const Run& part : halo(runs, place, mask.window - 1)) {
      if (part.rank == run.rank) continue;
      all.push_back({part, place, run.rank, offset});
      offset += part.count;
    }
  }
  return all;
}

class WindowHalo {
 public:
  WindowHalo(Schedule& s, const Layer& layer, const LayerTensors& x, Layout layout)
      : s_(s),
        layer_(layer),
        x_(x),
        steps_(s, layer, layout),
        result_(s.ranks() == 1 ? steps_.result_of_one_block(x.o) : steps_.result(x.o)) {
    const Cut cut = cut_of(layer, layout, s.ranks());
    const std::vector<Run> runs = cut.runs();
    transfers_ = transfers(runs, layer.mask);
    std::erase_if(transfers_, [&](const Transfer& one) { return !is_own(one.to) && !is_own(one.part.rank); });
    for (int i = 0; i < cut.pieces(); ++i) {
      const std::int64_t place = cut.place(s.rank(), i);
      add_border(cut, place, runs[place]);
    }
  }

  void forward() {
    fetch();
    wait_if_exposed(s_, layer_);
    steps_.attend(result_, x_.q, {x_.k, x_.v, {}}, own_pair());
    for (const Border& border : borders_) {
      const Slice lse = of_queries(result_.lse, border), out = of_queries(result_.out, border);
      const PartialOutput part{s_.scratch("border_out", out.count), s_.scratch("border_lse", lse.count)};
      record<SoftmaxBlock>(
          s_, border.shape,
          {.in = {of_queries(x_.q, border), border.keys.k, border.keys.v}, .out = part.out, .lse = part.lse});
      steps_.merge({out, lse}, part);
    }
    set(s_, x_.o, result_.out);
  }

  void backward() {
    if (layer_.pass == Pass::backward) fetch();
    const QuerySide queries{x_.q, x_.d_o, result_.lse, s_.scratch("delta", steps_.rows())};
    steps_.set_delta(queries.delta, x_.d_o, result_.out);
    wait_if_exposed(s_, layer_);
    const GradientSums sums = zero_gradients(s_, x_);
    for (Border& border : borders_) add_gradients(border, queries, sums.dq);
    const std::vector<Added> came = give_back(sums.block);
    wait_if_exposed(s_, layer_);
    steps_.add_gradients(sums.dq, sums.block, queries, {x_.k, x_.v, {}}, own_pair());
    for (const auto& [into, part] : came) add(s_, into, part);
    set_gradients(s_, x_, sums);
  }

 private:
  /// The first queries of a run, and the keys of other ranks that they see.
  struct Border {
    std::int64_t place = 0;  ///< The run, among all in the order of the sequence.
    std::int64_t first = 0;  ///< The first of the queries among the tokens of the rank.
    SoftmaxShape shape;
    RingBlock keys = {};
    RingBlock gradients = {};
  };
  /// Gradients that came back, and where they are added.
  struct Added {
    Slice into, part;
  };

  bool is_own(std::int64_t rank) const { return rank == s_.rank(); }
  RankPair own_pair() const { return {s_.rank(), s_.rank()}; }

  /// Adds the border of an own run, if other ranks have keys that its queries see.
  void add_border(const Cut& cut, std::int64_t place, const Run& run) {
    Border border{place, run.first, steps_.shape(own_pair())};
    SoftmaxShape& shape = border.shape;
    shape.k_tokens = 0;
    std::int64_t next = 0;  // position behind the keys so far
    for (const Transfer& one : transfers_) {
      if (one.place != place) continue;
      const std::int64_t first = cut.positions(one.part.rank).at(one.part.first);
      // Keys are two runs where the rank's own ones lie between them.
      if (shape.k_tokens == 0) shape.k_positions = {first, 0, Mask::unlimited};
      if (shape.k_tokens > 0 && first != next)
        shape.k_positions = {shape.k_positions.first, first, shape.k_tokens};
      shape.k_tokens += one.part.count;
      next = first + one.part.count;
    }
    if (shape.k_tokens == 0) return;
    shape.k_positions.split = std::min(shape.k_positions.split, shape.k_tokens);
    const std::int64_t start = cut.positions(s_.rank()).at(run.first);
    shape.q_tokens = std::min(run.count, next - 1 + layer_.mask.window - start);
    shape.q_positions = Positions::run(start, shape.q_tokens);
    border.keys = {s_.scratch("halo_keys", shape.k_tokens * row_of(x_.k), layer_.dtype),
                   s_.scratch("halo_values", shape.k_tokens * row_of(x_.v), layer_.dtype),
                   {}};
    borders_.push_back(border);
  }

  /// Number of elements of a token in a tensor of the rank.
  std::int64_t row_of(const Slice& all) const { return all.count / layer_.share.tokens; }
  /// The rows of a border's queries in a tensor of the rank.
  Slice of_queries(const Slice& all, const Border& border) const {
    return all.part(border.first * row_of(all), border.shape.q_tokens * row_of(all));
  }
  /// The rows of a part in a tensor of the rank that has it.
  Slice of_part(const Slice& all, const Transfer& one) const {
    return all.part(one.part.first * row_of(all), one.part.count * row_of(all));
  }
  /// The rows of a part in the halo of an own run.
  static Slice of_halo(const Slice& halo, const Transfer& one, std::int64_t row) {
    return halo.part(one.offset * row, one.part.count * row);
  }
  Border& border_of(const Transfer& one) { return *std::ranges::find(borders_, one.place, &Border::place); }

  /// Records the way of keys and values into the halos.
  void fetch() {
    for (const Transfer& one : transfers_)
      for (const auto& [own, in_halo] : {std::pair{x_.k, &RingBlock::k}, std::pair{x_.v, &RingBlock::v}}) {
        if (own.empty()) continue;  // latent keys hold their values
        if (is_own(one.to))
          s_.recv(of_halo(border_of(one).keys.*in_halo, one, row_of(own)), static_cast<int>(one.part.rank));
        if (is_own(one.part.rank)) s_.send(static_cast<int>(one.to), of_part(own, one));
      }
  }

  /// Records the gradients of a border: they are added to dq, and set dk and dv of its keys.
  void add_gradients(Border& border, const QuerySide& queries, const Slice& dq) {
    border.gradients = {
        s_.scratch("halo_dk", border.keys.k.count), s_.scratch("halo_dv", border.keys.v.count), {}};
    for (const Slice& slice : {border.gradients.k, border.gradients.v}) fill(s_, slice, 0.0F);
    record<SoftmaxBlockGradients>(s_, {border.shape, {}, {}},
                                  {.in = {of_queries(queries.q, border), border.keys.k, border.keys.v},
                                   .d_o = of_queries(queries.d_o, border),
                                   .lse = of_queries(queries.lse, border),
                                   .delta = of_queries(queries.delta, border),
                                   .dq = of_queries(dq, border),
                                   .dk = border.gradients.k,
                                   .dv = border.gradients.v});
  }

  /// Records the way back of the gradients of all halos. Returns what comes to this rank.
  std::vector<Added> give_back(const RingBlock& sums) {
    std::vector<Added> came;
    for (const Transfer& one : transfers_)
      for (Slice RingBlock::*tensor : {&RingBlock::k, &RingBlock::v}) {
        const Slice& own = sums.*tensor;
        if (own.empty()) continue;
        if (is_own(one.to))
          s_.send(static_cast<int>(one.part.rank),
                  of_halo(border_of(one).gradients.*tensor, one, row_of(own)));
        if (!is_own(one.part.rank)) continue;
        const Slice into = of_part(own, one);
        came.push_back({into, s_.scratch("came_back", into.count)});
        s_.recv(came.back().part, static_cast<int>(one.to));
      }
    return came;
  }

  Schedule& s_;
  const Layer& layer_;
  const LayerTensors& x_;
  SoftmaxSteps steps_;
  PartialOutput result_;
  std::vector<Transfer> transfers_;  // those of this rank
  std::vector<Border> borders_;
};

/// Each rank sends the parts that it has of halos, and the gradients of its own halos.
std::optional<Cost> claim(const Layer& layer, const Split& split, Layout layout) {
  const LayerShape& share = layer.share;
  const std::int64_t row = share.key_heads() * (share.d_k + share.value_width());
  std::vector<std::int64_t> sent(split.ranks, 0);
  const auto all = transfers(cut_of(layer, layout, split.ranks).runs(), layer.mask);
  for (const Transfer& one : all) {
    sent[one.part.rank] += one.part.count * row * bytes_of(layer.dtype);
    if (layer.pass != Pass::forward) sent[one.to] += one.part.count * row * bytes_of(Dtype::f32);
  }
  return Cost{*std::ranges::max_element(sent), all.empty() ? 0 : layer.pass == Pass::forward ? 1 : 2};
}

RegisteredMethod method(const std::string& name, const std::string& summary, Layout layout) {
  return RegisteredMethod({
      .name = name,
      .summary = summary,
      .attention = Attention::softmax,
      .packs = true,
      .shares_unequally = true,
      .needs_window = true,
      .build =
          [layout](Schedule& s, const Layer& layer, const LayerTensors& x) {
            WindowHalo method(s, layer, x, layout);
            run_passes(s, layer, method);
          },
      .claim = [layout](const Layer& layer, const Split& split) { return claim(layer, split, layout); },
      .unsupported = [layout](const Layer& layer, int) { return unsupported_softmax(layer, layout); },
      .layout = layout,
  });
}

const RegisteredMethod registered[]{
    method("window_halo", "just the keys and values in the window, softmax, contiguous tokens", contiguous),
    method("window_halo_zigzag", "just the keys and values in the window, softmax, zigzag tokens", zigzag),
};

}  // namespace
}  // namespace baton
