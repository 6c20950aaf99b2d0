// SPDX-License-Identifier: Apache-2.0
// DistFlashAttention for causal softmax attention with contiguous tokens: keys and values go
// straight to later ranks, and early ranks, which have few keys to see, help the late ones.
//
//   turn 0:                   (out, lse) = attention within the rank
//   turn t = 1 .. P/2:
//     ranks r >= t:           k, v of rank r-t have come;  (out, lse) = merge of (out, lse) and
//                             attention over them
//     ranks r < t help:       q of rank r-t+P has come;  part = attention of it over the own keys,
//                             which goes back under the work of turn t+1, and is merged there
//     but if t = P/2, P even: ranks r < t idle: ranks r >= t have done the same pairs
//   backward, in the same turns:  q, d_o, lse and delta come to a helper, and dq goes back; dk and
//     dv of a visiting block go back to its rank
//
// What turn t+1 needs travels under the work of turn t. The last results have no work to hide them.
//
// Cost in tensors of tokens*heads*d, P even. Forward: rank 0 sends most, k and v to P/2 ranks and
// P/2 - 1 results: 3P/2 - 1. Backward: rank P-1 sends most, dk and dv to P/2 ranks, q and d_o to
// P/2 - 1 helpers: 2P - 2. The paper sends o with them, 5P/2 - 3 in all, and no delta, a number a
// row. Results and gradients are f32, so each counts as two tensors of bf16. The released code also
// sends k and v to ranks that idle. Messages of at most P/2 + 2 turns wait for one another.
//
// Idle: nothing if P is odd. If P is even, P/2 ranks idle for one turn. The paper relates that to P
// turns of P ranks, as a ring takes: 1/(2P). Of this method's own time it is 1/(P+1).
// Source: arXiv 2310.03294 (DistFlashAttn); RulinShao/LightSeq, async_communication.py.
#include <algorithm>
#include <optional>
#include <vector>

#include "sp_methods/passes/softmax_steps.hpp"

namespace baton {
namespace {

/// The number of the last turn.
int last_turn(int ranks) { return ranks / 2; }
/// The number of the last turn in which ranks help.
int last_helped_turn(int ranks) { return (ranks - 1) / 2; }

/// The pair that a rank works on in a turn; nothing if the rank idles.
std::optional<RankPair> pair_of(int rank, int ranks, int turn) {
  if (turn <= rank) return RankPair{rank, rank - turn};
  if (turn > last_helped_turn(ranks)) return std::nullopt;
  return RankPair{rank - turn + ranks, rank};
}

class DistFlashAttention {
 public:
  DistFlashAttention(Schedule& s, const Layer& layer, const LayerTensors& x)
      : s_(s),
        layer_(layer),
        x_(x),
        steps_(s, layer, contiguous),
        result_(steps_.result(x.o)),
        own_{{.q = x.q, .d_o = {}, .lse = {}, .delta = {}}, {x.k, x.v, {}}} {
    if (s.ranks() == 1) return;
    for (int i = 0; i < 2; ++i) visitors_[i].block = {room("k_", x.k, i), room("v_", x.v, i), {}};
  }

  void forward() {
    make_room("forward_", steps_.values() + steps_.rows());
    run_in_turns(s_, layer_, last_turn(s_.ranks()), *this);
    set(s_, x_.o, result_.out);
  }

  void backward() {
    is_backward_ = true;
    own_.queries = {x_.q, x_.d_o, result_.lse, s_.scratch("delta", steps_.rows())};
    make_room("backward_", std::max(x_.dq.count, x_.dk.count + x_.dv.count));
    sums_ = zero_gradients(s_, x_);
    steps_.set_delta(own_.queries.delta, x_.d_o, result_.out);
    run_in_turns(s_, layer_, last_turn(s_.ranks()), *this);
    set_gradients(s_, x_, sums_);
  }

  /// Sends what rank r+t needs in turn t, and receives what this rank needs.
  void fetch(int t) {
    const int to = rank_at(t), from = rank_at(-t);
    if (const auto pair = pair_of(to, s_.ranks(), t))
      for (const Slice& slice : lent(own_, pair->queries != to)) s_.send(to, slice);
    if (const auto pair = pair_at(t))
      for (const Slice& slice : lent(visitors_[t % 2], pair->queries == from)) s_.recv(slice, from);
  }

  void work(int t) {
    const auto pair = pair_at(t);
    if (!pair) return;
    const bool has_queries = pair->queries == s_.rank(), has_keys = pair->keys == s_.rank();
    const QuerySide& queries = (has_queries ? own_ : visitors_[t % 2]).queries;
    const RingBlock& block = (has_keys ? own_ : visitors_[t % 2]).block;
    if (is_backward_) return add_gradients(t, *pair, queries, block);
    const PartialOutput part = t > 0 ? output_in(parts_[t % 2]) : result_;
    steps_.attend(part, queries.q, block, *pair);
    if (t > 0 && has_queries) steps_.merge(result_, part);
  }

  /// Sends the result of turn t to the rank whose tensors came, and receives one of this rank's.
  void give_back(int t) {
    if (const Slice part = returned(parts_[t % 2], pair_at(t), rank_at(-t)); !part.empty())
      s_.send(rank_at(-t), part);
    if (const Slice part = returned_in(t); !part.empty()) s_.recv(part, rank_at(t));
  }

  void merge(int t) {
    const Slice part = returned_in(t);
    if (part.empty()) return;
    if (!is_backward_) return steps_.merge(result_, output_in(part));
    if (pair_of(rank_at(t), s_.ranks(), t)->queries == s_.rank()) return add(s_, sums_.dq, part);
    const RingBlock gradients = block_in(part, layer_.share);
    add(s_, sums_.block.k, gradients.k);
    add(s_, sums_.block.v, gradients.v);
  }

 private:
  /// The tensors of one rank that travel.
  struct Lent {
    QuerySide queries;
    RingBlock block;
  };

  int rank_at(int distance) const { return (s_.rank() + distance + s_.ranks()) % s_.ranks(); }
  std::optional<RankPair> pair_at(int t) const { return pair_of(s_.rank(), s_.ranks(), t); }

  static std::vector<Slice> lent(const Lent& x, bool queries) {
    std::vector<Slice> slices{x.block.k, x.block.v};
    if (queries) slices = {x.queries.q, x.queries.d_o, x.queries.lse, x.queries.delta};
    std::erase_if(slices, [](const Slice& slice) { return slice.empty(); });
    return slices;
  }

  Slice room(const std::string& name, const Slice& like, int number) {
    return s_.scratch(name + "of_turn_" + std::to_string(number), s_.ranks() > 1 ? like.count : 0,
                      like.dtype);
  }

  /// Makes room for visiting queries of two turns, and for results of `elements` elements.
  void make_room(const std::string& pass, std::int64_t elements) {
    const Slice part{.buffer = -1, .offset = 0, .count = elements, .dtype = Dtype::f32};
    for (int i = 0; i < 2; ++i) {
      const QuerySide& own = own_.queries;
      visitors_[i].queries = {room(pass + "q_", own.q, i), room(pass + "d_o_", own.d_o, i),
                              room(pass + "lse_", own.lse, i), room(pass + "delta_", own.delta, i)};
      parts_[i] = room(pass + "part_", part, i);
    }
    returned_ = room(pass + "returned_", part, 0);
  }

  /// Adds the gradients of the pair: those of this rank to its sums, the others to a new part.
  void add_gradients(int t, const RankPair& pair, const QuerySide& queries, const RingBlock& block) {
    const Slice part = returned(parts_[t % 2], pair, rank_at(-t));
    fill(s_, part, 0.0F);
    const bool has_queries = pair.queries == s_.rank(), has_keys = pair.keys == s_.rank();
    steps_.add_gradients(has_queries ? sums_.dq : part, has_keys ? sums_.block : block_in(part, layer_.share),
                         queries, block, pair);
  }

  /// The elements of `part` that return to `rank`, whose queries or keys another rank has worked
  /// on; empty if none does.
  Slice returned(const Slice& part, const std::optional<RankPair>& pair, int rank) const {
    if (!pair || pair->queries == pair->keys) return {};
    if (pair->queries == rank) return part.part(0, is_backward_ ? x_.dq.count : part.count);
    return is_backward_ ? part.part(0, x_.dk.count + x_.dv.count) : Slice{};
  }
  Slice returned_in(int t) const {
    return returned(returned_, pair_of(rank_at(t), s_.ranks(), t), s_.rank());
  }

  PartialOutput output_in(const Slice& part) const {
    return {part.part(0, steps_.values()), part.part(steps_.values(), steps_.rows())};
  }

  Schedule& s_;
  const Layer& layer_;
  const LayerTensors& x_;
  SoftmaxSteps steps_;
  PartialOutput result_;
  bool is_backward_ = false;
  Lent own_, visitors_[2];
  Slice parts_[2], returned_;
  GradientSums sums_;
};

void dist_flash_attention(Schedule& s, const Layer& layer, const LayerTensors& x) {
  DistFlashAttention method(s, layer, x);
  run_passes(s, layer, method);
}

/// Bytes of what is sent: a block's keys and values, a rank's queries, a helper's result, and what
/// a worker gives back.
struct Bytes {
  std::int64_t block = 0, queries = 0, helped = 0, worked = 0;
};

Bytes bytes_of_pass(const Layer& layer, bool is_backward) {
  const LayerShape& share = layer.share;
  const std::int64_t rows = share.tokens * share.heads, block = key_value_elements(share);
  const std::int64_t element = bytes_of(layer.dtype), number = bytes_of(Dtype::f32);
  if (!is_backward) return {block * element, rows * share.d_k * element, rows * (share.d_v + 1) * number, 0};
  return {block * element, rows * ((share.d_k + share.d_v) * element + 2 * number), rows * share.d_k * number,
          block * number};
}

/// Bytes that `rank` of `ranks` sends in a pass.
std::int64_t sent_bytes(const Bytes& bytes, int rank, int ranks) {
  const int turns = last_turn(ranks), helped = last_helped_turn(ranks);
  const int later = std::min(turns, ranks - 1 - rank);  // ranks that its keys and values go to
  return later * bytes.block + std::max(0, helped - later) * bytes.queries +
         std::max(0, helped - rank) * bytes.helped + std::min(turns, rank) * bytes.worked;
}

/// Hops of a pass: the turns in which messages wait for those of the turn before. Results return in
/// the two turns after the last messages that bring operands, if both have results.
int hops_of_pass(int ranks, bool is_backward) {
  const int turns = last_turn(ranks), last = is_backward ? turns : last_helped_turn(ranks);
  return turns + std::max(0, last - std::max(1, turns - 1) + 1);
}

std::optional<Cost> claim(const Layer& layer, const Split& split) {
  const int P = split.ranks;
  if (P == 1) return Cost{};
  Cost cost;
  std::vector<std::int64_t> sent(P, 0);
  for (const bool is_backward : {false, true}) {
    if (layer.pass == (is_backward ? Pass::forward : Pass::backward)) continue;
    const Bytes bytes = bytes_of_pass(layer, is_backward);
    for (int rank = 0; rank < P; ++rank) sent[rank] += sent_bytes(bytes, rank, P);
    cost.hops += hops_of_pass(P, is_backward);
  }
  cost.sent_bytes = *std::max_element(sent.begin(), sent.end());
  return cost;
}

const RegisteredMethod registered{{
    .name = "dist_flash_attention",
    .summary = "keys and values straight to later ranks, which early ranks help; softmax",
    .attention = Attention::softmax,
    .build = dist_flash_attention,
    .claim = claim,
    .unsupported = [](const Layer& layer, int) -> Refusal {
      if (layer.mask.kind != MaskKind::causal || layer.mask.has_window())
        return "it balances a causal mask without a window";
      return unsupported_softmax(layer, contiguous);
    },
    .layout = contiguous,
}};

}  // namespace
}  // namespace baton
