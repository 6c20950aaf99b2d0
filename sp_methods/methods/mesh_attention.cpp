// SPDX-License-Identifier: Apache-2.0
// Mesh-Attention for softmax attention, with contiguous, zigzag or striped tokens. The last
// two balance the work. The P = a b ranks form a grid as square as can be, a <= b.
//
//   gather q along the own row, of a ranks; gather k, v along the own column, of b ranks
//   for each q of the row:  (out, lse) = attention over the keys of the column, merged
//     send it to the owner of q, which merges the a results that it gets
//   backward:  gather q, d_o, lse and delta along the row, k and v along the column
//     gradients of each q of the row over the keys of the column
//     reduce-scatter dq along the row, dk and dv along the column
//
// A row and a column have one rank in common, so every q meets every k once. The own queries come
// last, beside the messages of the results of the others. Queries, keys, values and d_o travel in
// the tensors' type; results, lse, delta and gradients in f32. The backward pass reads what the
// forward pass has gathered; alone it gathers again.
// Cost: with u elements of q, w of k and v, o of out and l of lse a rank, forward
// (a-1)(u + o + l) + (b-1) w, of order sqrt(P); backward (a-1)(2u + o + 2l) + 2 (b-1) w, less where
// q, k and v are there. Hops: b-1 forward, and one more where a > 1; at most 2(b-1) backward.
// Source: arXiv 2512.20968 (Mesh-Attention); arXiv 2311.09431 (striped tokens).
#include <vector>

#include "sp_methods/passes/gathers.hpp"
#include "sp_methods/passes/softmax_steps.hpp"

namespace baton {
namespace {

/// A row or a column of the grid, in which this rank has the place `own`.
struct Line {
  std::vector<int> ranks;
  int own = 0;

  int size() const { return static_cast<int>(ranks.size()); }
  /// The place i before this rank's, around the line.
  int place(int i) const { return (own - i + size()) % size(); }
  /// The rank i places before this one, around the line.
  int before(int i) const { return ranks[place(i)]; }
};

/// Ranks as a grid, row after row.
struct Grid {
  int a = 1;  // ranks of a row, which share queries
  int b = 1;  // ranks of a column, which share keys

  explicit Grid(int ranks) {
    for (int i = 1; i * i <= ranks; ++i)
      if (ranks % i == 0) a = i;
    b = ranks / a;
  }
  Line row(int rank) const {
    Line line{{}, rank % a};
    for (int i = 0; i < a; ++i) line.ranks.push_back(rank - line.own + i);
    return line;
  }
  Line column(int rank) const {
    Line line{{}, rank / a};
    for (int i = 0; i < b; ++i) line.ranks.push_back(i * a + rank % a);
    return line;
  }
};

class MeshSoftmax {
 public:
  MeshSoftmax(Schedule& s, const Layer& layer, const LayerTensors& x, Layout layout)
      : s_(s),
        layer_(layer),
        x_(x),
        steps_(s, layer, layout),
        row_(Grid(s.ranks()).row(s.rank())),
        column_(Grid(s.ranks()).column(s.rank())),
        queries_(memory_of_all(s, "queries", x.q, row_.size())),
        keys_(keys_and_values_of_all(s, x, column_.size())),
        result_(steps_.result(x.o)) {}

  void forward() {
    gather_inputs();
    wait_if_exposed(s_, layer_);
    const int a = row_.size(), b = column_.size();
    const Slice results = s_.scratch("results", (a - 1) * result_elements());
    block_ = partial_in(s_.scratch("block", b > 1 ? result_elements() : 0));
    attend(result_, 0, 0);
    for (int i = 1; i < a; ++i)
      for (int j = 0; j < b; ++j) attend(partial_in(results.block(i - 1, a - 1)), i, j);
    if (layer_.mode == Mode::overlapped) send_results(results);
    for (int j = 1; j < b; ++j) attend(result_, 0, j);
    wait_if_exposed(s_, layer_);
    if (layer_.mode == Mode::exposed) send_results(results);
    merge_results();
    set(s_, x_.o, result_.out);
  }

  void backward() {
    const int a = row_.size(), b = column_.size();
    const Slice own = s_.scratch("statistics", 2 * steps_.rows());  // lse, then delta
    const Slice statistics = memory_of_all(s_, "row_statistics", own, a);
    const Slice d_o = memory_of_all(s_, "row_d_o", x_.d_o, a);
    if (layer_.pass == Pass::backward) gather_inputs();
    s_.copy(own.block(0, 2), result_.lse);
    steps_.set_delta(own.block(1, 2), x_.d_o, result_.out);
    gather_along(row_, d_o, x_.d_o);
    gather_along(row_, statistics, own);
    const Slice dq = s_.scratch("dq_sums", a * x_.q.count);
    const RingBlock into{s_.scratch("dk_sums", b * x_.k.count), s_.scratch("dv_sums", b * x_.v.count), {}};
    for (const Slice& sum : {dq, into.k, into.v}) fill(s_, sum, 0.0F);
    wait_if_exposed(s_, layer_);
    for (int i = a; i > 0; --i) {
      const int q = row_.place(i % a);
      const Slice rows = statistics.block(q, a);
      const QuerySide queries{queries_.block(q, a), d_o.block(q, a), rows.block(0, 2), rows.block(1, 2)};
      for (int j = 0; j < b; ++j) {
        const RankPair pair{row_.before(i % a), column_.before(j)};
        if (!steps_.is_visible(pair)) continue;
        const int k = column_.place(j);
        steps_.add_gradients(dq.block(q, a), block_of(into, k), queries, block_of(keys_, k), pair);
      }
    }
    wait_if_exposed(s_, layer_);
    scatter_along(row_, x_.dq, dq, "dq_own");
    scatter_along(column_, x_.dk, into.k, "dk_own");
    scatter_along(column_, x_.dv, into.v, "dv_own");
  }

 private:
  /// Number of elements of an output and its lse, which travel as one message.
  std::int64_t result_elements() const { return steps_.values() + steps_.rows(); }
  PartialOutput partial_in(const Slice& slot) const {
    if (slot.empty()) return {};
    return {slot.part(0, steps_.values()), slot.part(steps_.values(), steps_.rows())};
  }

  RingBlock block_of(const RingBlock& all, int place) const {
    return {all.k.block(place, column_.size()), all.v.block(place, column_.size()), {}};
  }

  void gather_inputs() {
    gather_along(row_, queries_, x_.q);
    gather_along(column_, keys_.k, x_.k);
    gather_along(column_, keys_.v, x_.v);
  }

  void gather_along(const Line& line, const Slice& all, const Slice& own) {
    const Among some(s_, line.ranks);
    gather(s_, ring_gathers, all, own);
  }

  void scatter_along(const Line& line, const Slice& into, const Slice& all, std::string name) {
    const Slice own = sums_of(s_, into, std::move(name));
    {
      const Among some(s_, line.ranks);
      scatter(s_, ring_gathers, own, all);
    }
    set(s_, into, own);
  }

  /// Sets `result` to the attention of the queries i places before in the row over the keys j
  /// places before in the column. From j = 1 on it merges this attention into `result`.
  void attend(const PartialOutput& result, int i, int j) {
    const RankPair pair{row_.before(i), column_.before(j)};
    const Slice q = queries_.block(row_.place(i), row_.size());
    const RingBlock keys = block_of(keys_, column_.place(j));
    if (j == 0) return steps_.attend(result, q, keys, pair);
    if (!steps_.is_visible(pair)) return;
    steps_.attend(block_, q, keys, pair);
    steps_.merge(result, block_);
  }

  /// Sends to each other rank of the row the result of its queries.
  void send_results(const Slice& results) {
    const int a = row_.size();
    for (int i = 1; i < a; ++i) s_.send(row_.before(i), results.block(i - 1, a - 1));
  }

  /// Merges the results that the other ranks of the row have sent for this rank's queries.
  void merge_results() {
    const int a = row_.size();
    const Slice arrived = s_.scratch("arrived", (a - 1) * result_elements());
    for (int i = 1; i < a; ++i) s_.recv(arrived.block(i - 1, a - 1), row_.ranks[(row_.own + i) % a]);
    for (int i = 1; i < a; ++i) steps_.merge(result_, partial_in(arrived.block(i - 1, a - 1)));
  }

  Schedule& s_;
  const Layer& layer_;
  const LayerTensors& x_;
  SoftmaxSteps steps_;
  Line row_, column_;
  Slice queries_;   // of the row
  RingBlock keys_;  // of the column
  PartialOutput result_;
  PartialOutput block_;  // of one pair of ranks
};

void build(Schedule& s, const Layer& layer, const LayerTensors& x, Layout layout) {
  MeshSoftmax method(s, layer, x, layout);
  run_passes(s, layer, method);
}

/// Bytes that each rank sends.
std::int64_t sent_bytes(const Layer& layer, const Grid& grid) {
  const LayerShape& share = layer.share;
  const std::int64_t rows = share.tokens * share.heads;
  const std::int64_t q = (grid.a - 1) * rows * share.d_k, o = (grid.a - 1) * rows * share.d_v;
  const std::int64_t lse = (grid.a - 1) * rows, kv = (grid.b - 1) * key_value_elements(share);
  const std::int64_t narrow = bytes_of(layer.dtype), wide = bytes_of(Dtype::f32);
  std::int64_t bytes = (q + kv) * narrow;
  if (layer.pass != Pass::backward) bytes += (o + lse) * wide;
  if (layer.pass != Pass::forward) bytes += o * narrow + (2 * lse + q + kv) * wide;
  return bytes;
}

/// Hops of a rank. Its row and its column gather at once, and scatter at once.
int hops(const Layer& layer, const Grid& grid) {
  const int row = grid.a - 1, column = grid.b - 1;
  const int forward = row > 0 ? column + 1 : column;
  if (layer.pass == Pass::forward) return forward;
  if (layer.pass == Pass::both) return forward + row + column;
  if (layer.mode == Mode::exposed) return 2 * column;
  // The gradients of the keys that come first leave while others arrive.
  return row > 0 ? row + column : std::min(column, 1) + column;
}

std::optional<Cost> claim(const Layer& layer, const Split& split) {
  const Grid grid(split.ranks);
  return Cost{sent_bytes(layer, grid), hops_if_seen(layer, hops(layer, grid))};
}

const RegisteredMethod registered[]{
    softmax_method("mesh_attention",
                   "queries along rows and keys along columns of a grid, softmax, contiguous tokens",
                   contiguous, build, claim),
    softmax_method("mesh_attention_zigzag",
                   "queries along rows and keys along columns of a grid, softmax, zigzag tokens", zigzag,
                   build, claim),
    softmax_method("mesh_attention_striped",
                   "queries along rows and keys along columns of a grid, softmax, striped tokens", striped,
                   build, claim),
};

}  // namespace
}  // namespace baton
