// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/device/delta/groups/chunk_walk.cuh"
#include "sp_methods/kernels/device/low_rank/gradient_rows.cuh"
#include "sp_methods/kernels/device/low_rank/gradients.cuh"
#include "sp_methods/kernels/device/low_rank/records.cuh"

namespace baton {
namespace {

template <int d_k, int d_v, GateKind kind>
class LowRankChunkGradients {
 public:
  using Memory = LowRankGradientMemory<d_k, d_v, kind>;
  using Walk = GateWalk<kind, d_k>;
  using Keys = typename Memory::Keys;
  using Pairs = typename Memory::Pairs;
  using Rows = PanelOperand<PanelsAlong::summed>;
  using Columns = PanelOperand<PanelsAlong::outer>;
  using Record = ChunkRecord<d_k, ChunkRule::low_rank>;

  __device__ LowRankChunkGradients(const DeviceLayer& layer, const LowRankGradients::Operands<OnDevice>& x,
                                   const SweptChunks& kept)
      : layer_(layer),
        x_(x),
        kept_(kept),
        chunk_(DeviceLayer::segment()),
        number_(static_cast<std::int64_t>(DeviceLayer::place()) * layer.chunks() + chunk_),
        record_(kept.chunks + number_ * Record::bytes),
        strong_(kind != GateKind::none && *reinterpret_cast<const int*>(record_ + Record::strong_at) != 0) {}

  __device__ void run() const {
    load();
    bring_next_near();
    meet_copies<2>();
    write_values();
    meet_copies<1>();
    put_pair_gradients();
    meet_copies<0>();
    GroupSums<key_columns> queries, reads, keys, writes;
    const ColumnSums sums{queries, reads, keys, writes};
    set_sums_of_states(sums);
    __syncthreads();
    if constexpr (kind != GateKind::none) {
      Memory::gates().load(layer_, layer_.template loader<d_k>(), x_.in.of.g, chunk_);
      commit_copies();
      put_edges(as_sums(keys), as_sums(writes));
    }
    if (!strong_) add_pairs(sums);
    wait_for_copies<0>();
    __syncthreads();
    put_sums_of_gates();
    __syncthreads();
    LowRankSums<d_k> rows{as_sums(queries), as_sums(reads), as_sums(keys), as_sums(writes)};
    write_rows(rows);
  }

 private:
  // A group has a quarter of the columns of keys and of values, and a warp of it 16 tokens.
  static constexpr int key_columns = d_k / 4, value_columns = d_v / 4;
  __device__ static int row() { return 16 * (warp() & 3); }
  __device__ static int column() { return group() * key_columns; }
  __device__ static int value() { return group() * value_columns; }
  __device__ static Columns own_columns(const Keys& tile) {
    return Columns(tile.memory + Keys::offset(0, column()));
  }

  /// Starts copies in the order in which they are used, in three groups.
  __device__ void load() const {
    const PanelLoader<d_v, tile_threads> values(layer_.tokens, layer_.heads,
                                                layer_.first_head + DeviceLayer::place());
    const std::int64_t state = number_ * d_v * d_k;
    load_tile<Keys::bytes>(Memory::keys().memory, record_ + Record::keys_at);
    load_tile<Pairs::bytes>(Memory::query_values().memory, record_ + Record::query_values_at);
    load_tile<Pairs::bytes>(Memory::read_values().memory, record_ + Record::read_values_at);
    copy_dense<d_k, d_v, tile_threads>(Memory::gradient(), kept_.gradients + state);
    values.load(Memory::d_o(), x_.d_o, chunk_);
    values.load(Memory::z(), kept_.z, chunk_);
    commit_copies();
    values.load(Memory::read(), kept_.missing, chunk_);
    values.load(Memory::values(), x_.in.of.v, chunk_);
    commit_copies();
    copy_dense<d_k, d_v, tile_threads>(Memory::state(), kept_.states + state);
    load_tile<Keys::bytes>(Memory::q().memory, record_ + Record::q_at);
    load_tile<Keys::bytes>(Memory::reads().memory, record_ + Record::in_at);
    load_tile<Keys::bytes>(Memory::writes().memory, record_ + Record::out_at);
    commit_copies();
  }
  /// Brings the first group of copies of the next block here to the L2.
  __device__ void bring_next_near() const {
    const HeadChunk next = chunk_ahead(KernelTraits{}.blocks);
    if (next.chunk >= layer_.chunks()) return;
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < 2 * group_threads)
      bring_near<d_v>(layer_.rows(thread < group_threads ? x_.d_o : kept_.z, d_v, next.chunk, next.head),
                      thread % group_threads);
    if (thread > 0) return;
    const std::int64_t number = static_cast<std::int64_t>(next.head) * layer_.chunks() + next.chunk;
    bring_near(kept_.chunks + number * Record::bytes + Record::keys_at, Record::floats_at - Record::keys_at);
    bring_near(kept_.gradients + number * d_v * d_k, d_v * d_k * 2);
  }
  /// Waits until at most `pending` groups of copies are incomplete, for all threads.
  template <int pending>
  __device__ static void meet_copies() {
    wait_for_copies<pending>();
    show_to_products();
    __syncthreads();
  }

  /// Writes dv.
  __device__ void write_values() const {
    using Values = typename Memory::Values;
    const auto own_values = [](const Values& tile) {
      return Columns(tile.memory + Values::offset(0, value()));
    };
    const PanelOperand<PanelsAlong::summed, d_v> gradient(Memory::gradient().memory +
                                                          value() * Memory::State::row_bytes);
    constexpr int steps = device_chunk / 16;
    GroupSums<value_columns> dv;
    begin_products();
    start_product<d_k / 16>(dv, Rows(Memory::keys().memory), gradient, false);
    start_product<steps>(dv, Columns(Memory::query_values().memory), own_values(Memory::d_o()), true);
    start_product<steps>(dv, Columns(Memory::read_values().memory), own_values(Memory::z()), true);
    commit_products();
    wait_for_products<0>();
    dv.arrived();
    const auto rows = layer_.rows(x_.out.of.dv, d_v, chunk_);
    store_rows(HeadRows<Bf16>{rows.first + value(), rows.stride, rows.count}, dv);
  }

  /// Sets the gradients of scores, a matrix a group, in the place of those with values.
  __device__ static void put_pair_gradients() {
    const bool of_reads = group() >= 2, of_values = group() % 2 == 1;
    GroupSums<device_chunk> x;
    begin_products();
    start_product<d_v / 16>(x, Rows((of_reads ? Memory::z() : Memory::d_o()).memory),
                            Rows((of_values ? Memory::values() : Memory::read()).memory), false);
    commit_products();
    wait_for_products<0>();
    x.arrived();
    const GroupPlace<Pairs> place;
    x.for_each([&](int n, int half, float2& pair) {
      const int last = x.row() + 8 * half - (of_reads ? 1 : 0), column = x.column() + 8 * n;
      if (column > last) pair.x = 0.0F;
      if (column + 1 > last) pair.y = 0.0F;
      Memory::pairs(group()).set_pair(place.at(n, half), pair);
    });
  }

  /// Sums as gradient_rows.cuh has them, with the same elements in each lane.
  template <int columns>
  __device__ static Sums<1, columns / 16> as_sums(const GroupSums<columns>& x) {
    Sums<1, columns / 16> found;
#pragma unroll
    for (int i = 0; i < columns / 2; ++i) found.c[0][i / 4][i % 4] = x.c[i];
    return found;
  }

  /// A group's columns of Xq, Xr, Yk and Yb.
  struct ColumnSums {
    GroupSums<key_columns>&queries, &reads, &keys, &writes;  // a struct of sums would lie in memory

    __device__ void arrive() const {
      commit_products();
      wait_for_products<0>();
      queries.arrived(), reads.arrived(), keys.arrived(), writes.arrived();
    }
  };

  /// Sets the parts of the sums that come from S and D.
  __device__ static void set_sums_of_states(const ColumnSums& sums) {
    using State = typename Memory::State;
    const auto own_channels = [](const State& tile) {
      return PanelOperand<PanelsAlong::outer, d_v>(tile.memory + State::offset(0, column()));
    };
    const auto state = own_channels(Memory::state()), gradient = own_channels(Memory::gradient());
    begin_products();
    start_product<d_v / 16>(sums.queries, Rows(Memory::d_o().memory), state, false);
    start_product<d_v / 16>(sums.reads, Rows(Memory::z().memory), state, false);
    start_product<d_v / 16>(sums.keys, Rows(Memory::values().memory), gradient, false);
    start_product<d_v / 16>(sums.writes, Rows(Memory::read().memory), gradient, false);
    sums.arrive();
  }

  /// Adds the pairs within the chunk.
  __device__ static void add_pairs(const ColumnSums& sums) {
    const auto q = own_columns(Memory::q()), reads = own_columns(Memory::reads()),
               keys = own_columns(Memory::keys()), writes = own_columns(Memory::writes());
    begin_products();
    add(sums.queries, Rows(Memory::d_query_writes().memory), writes);
    add(sums.queries, Rows(Memory::d_query_values().memory), keys);
    add(sums.reads, Rows(Memory::d_read_writes().memory), writes);
    add(sums.reads, Rows(Memory::d_read_values().memory), keys);
    add(sums.keys, Columns(Memory::d_query_values().memory), q);
    add(sums.keys, Columns(Memory::d_read_values().memory), reads);
    add(sums.writes, Columns(Memory::d_query_writes().memory), q);
    add(sums.writes, Columns(Memory::d_read_writes().memory), reads);
    sums.arrive();
  }
  template <class Left>
  __device__ static void add(GroupSums<key_columns>& sums, const Left& pairs, const Columns& rows) {
    start_product<device_chunk / 16>(sums, pairs, rows, true);
  }

  /// Sets the sums of dg for what passes the right edge: four each of S (.) D, k" Yk and b" Yb.
  __device__ void put_edges(const RowSums<d_k>& of_keys, const RowSums<d_k>& of_writes) const {
    float* const edges = Memory::edges();
    const int last = strong_ ? layer_.rows(x_.d_o, d_v, chunk_).count - 1 : device_chunk;
    put_leaving<d_k>(edges + (4 + row() / 16) * d_k, Memory::keys(), row(), column(), of_keys, last);
    put_leaving<d_k>(edges + (8 + row() / 16) * d_k, Memory::writes(), row(), column(), of_writes, last);
    const int channel = 2 * (static_cast<int>(threadIdx.x) % (d_k / 2));
    const int part = static_cast<int>(threadIdx.x) / (d_k / 2);
    if (part >= 4) return;
    const auto* const through = reinterpret_cast<const float*>(record_ + Record::floats_at) + d_k;
    float2 sum{0.0F, 0.0F};
    for (int value = part; value < d_v; value += 4) {
      const int at = Memory::State::offset(value, channel);
      sum = sum + Memory::state().pair(at) * Memory::gradient().pair(at);
    }
    sum = *reinterpret_cast<const float2*>(through + channel) * sum;
    *reinterpret_cast<float2*>(edges + part * d_k + channel) = sum;
  }

  /// Sets the decay of every token and channel, and what rows are relative to.
  __device__ void put_sums_of_gates() const {
    if (!Walk::takes_part()) return;
    const Walk walk(Memory::gates());
    float2 b = walk.before;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      b = b + walk.gate[i];
      if constexpr (kind != GateKind::none)
        Memory::sums_of_gates().set_pair(FloatTile<d_k>::offset(walk.first + i, walk.channel), b);
    }
    if (!walk.is_first_lane()) return;
    *reinterpret_cast<float2*>(Memory::start() + walk.channel) = strong_ ? float2{0.0F, 0.0F} : walk.middle;
    *reinterpret_cast<float2*>(Memory::end() + walk.channel) = strong_ ? walk.all : walk.middle;
  }

  /// Writes dq, da, dk, db and dg.
  __device__ void write_rows(LowRankSums<d_k>& sums) const {
    const LowRankRows rows(layer_, x_.in, d_k, chunk_);
    const auto into = [&](Bf16* x) { return layer_.rows(x, d_k, chunk_); };
    const FinishedLowRankRows<d_k, d_v, kind> finished(rows, strong_, row(), column());
    finished.write_reads(sums.reads, into(x_.out.da));
    finished.put_first_reads(sums.reads);
    finished.write_queries(sums.queries, into(x_.out.of.dq));
    finished.write_earlier(sums.keys, sums.queries, into(x_.out.of.dk),
                           {rows.k, Memory::keys(), Memory::d_query_values(), Memory::d_read_values()});
    finished.write_earlier(sums.writes, sums.queries, into(x_.out.db),
                           {rows.b, Memory::writes(), Memory::d_query_writes(), Memory::d_read_writes()});
    if constexpr (kind != GateKind::none) {
      __syncthreads();
      finished.add_next_reads(sums.queries, sums.reads);
      write_gates(sums.queries);
    }
  }

  __device__ void write_gates(const RowSums<d_k>& terms) const {
    const auto dg = layer_.rows(x_.out.of.dg, GateTile<kind, d_k>::width(), chunk_);
    if constexpr (kind == GateKind::vector) {
      write_gates_of_channels<d_k, Memory::edge_sums>(dg, terms, Memory::totals(), Memory::edges(), row(),
                                                      column());
    } else {
      write_gates_of_head<d_k, Memory::edge_sums>(dg, terms, Memory::totals(), Memory::edges(), row(),
                                                  group());
    }
  }

  const DeviceLayer& layer_;
  const LowRankGradients::Operands<OnDevice>& x_;
  const SweptChunks& kept_;
  int chunk_;
  std::int64_t number_;
  const char* record_;
  bool strong_;
};

template <int d_k, int d_v, GateKind kind>
__global__ __launch_bounds__(tile_threads, 1) void low_rank_gradients_kernel(
    const __grid_constant__ DeviceLayer layer, const __grid_constant__ LowRankGradients::Operands<OnDevice> x,
    const __grid_constant__ SweptChunks kept) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  LowRankChunkGradients<d_k, d_v, kind>(layer, x, kept).run();
#endif
}

}  // namespace

cudaError_t low_rank_gradients_of_chunks(cudaStream_t stream, const LowRankGradients::Operands<OnDevice>& x,
                                         const SweptChunks& kept, const Chunks& p) {
  return with_constants(p.shape, [&](auto d_k, auto d_v, auto kind) {
    return launch_on_segments(stream, each_chunk(p),
                              LowRankGradientMemory<d_k(), d_v(), kind()>::shared_bytes,
                              low_rank_gradients_kernel<d_k(), d_v(), kind()>, x, kept);
  });
}

}  // namespace baton
