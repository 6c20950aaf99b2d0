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
  using Pairs = typename Memory::Pairs;
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

  __device__ void run() {
    load();
    bring_next_near();
    meet_copies<2>();
    write_values();
    meet_copies<1>();
    put_pair_gradients();
    meet_copies<0>();
    set_sums_of_states();
    __syncthreads();
    if constexpr (kind != GateKind::none) {
      Memory::gates().load(layer_, layer_.template loader<d_k>(), x_.in.of.g, chunk_);
      commit_copies();
      put_edges();
    }
    if (!strong_) add_pairs();
    wait_for_copies<0>();
    __syncthreads();
    put_sums_of_gates();
    __syncthreads();
    write_rows();
  }

 private:
  __device__ static int row() { return 16 * warp_row(); }
  __device__ static int column() { return warp_column() * (d_k / 4); }
  __device__ static int value() { return warp_column() * (d_v / 4); }

  /// Starts copies in the order in which they are used, in three groups.
  __device__ void load() const {
    const auto values = layer_.template loader<d_v>();
    const std::int64_t state = number_ * d_v * d_k;
    load_from_panels(Memory::keys(), record_ + Record::keys_at);
    load_from_panels(Memory::query_values(), record_ + Record::query_values_at);
    load_from_panels(Memory::read_values(), record_ + Record::read_values_at);
    DensePlaces<d_k, d_v>::load_async(Memory::gradient(), kept_.gradients + state);
    values.load(Memory::d_o(), x_.d_o, chunk_);
    values.load(Memory::z(), kept_.z, chunk_);
    commit_copies();
    values.load(Memory::read(), kept_.missing, chunk_);
    values.load(Memory::values(), x_.in.of.v, chunk_);
    commit_copies();
    DensePlaces<d_k, d_v>::load_async(Memory::state(), kept_.states + state);
    load_from_panels(Memory::q(), record_ + Record::q_at);
    load_from_panels(Memory::reads(), record_ + Record::in_at);
    load_from_panels(Memory::writes(), record_ + Record::out_at);
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
    __syncthreads();
  }

  /// Writes dv.
  __device__ void write_values() const {
    Sums<1, d_v / 64> dv;
    dv.clear();
    add_product<d_k / 16>(dv, left_operand<RowsAre::outer>(Memory::keys(), row()),
                          right_operand<RowsAre::outer>(Memory::gradient(), value()));
    add_product<device_chunk / 16>(dv, left_operand<RowsAre::summed>(Memory::query_values(), row()),
                                   right_operand<RowsAre::summed>(Memory::d_o(), value()), warp_row(), 4);
    add_product<device_chunk / 16>(dv, left_operand<RowsAre::summed>(Memory::read_values(), row()),
                                   right_operand<RowsAre::summed>(Memory::z(), value()), warp_row(), 4);
    auto rows = layer_.rows(x_.out.of.dv, d_v, chunk_);
    store_sums(HeadRows<Bf16>{rows.row(row()) + value(), rows.stride, rows.count - row()}, dv);
  }

  /// Sets the gradients of scores, in the place of those with values.
  __device__ static void put_pair_gradients() {
    if (warp_column() > warp_row()) return;
    const int first = 16 * warp_column();
    Sums<1, 1> query_writes, query_values, read_writes, read_values;
    query_writes.clear(), query_values.clear(), read_writes.clear(), read_values.clear();
    const auto d_o = left_operand<RowsAre::outer>(Memory::d_o(), row());
    const auto z = left_operand<RowsAre::outer>(Memory::z(), row());
    add_products_of<d_v / 16>(right_operand<RowsAre::outer>(Memory::read(), first), query_writes, d_o,
                              read_writes, z);
    add_products_of<d_v / 16>(right_operand<RowsAre::outer>(Memory::values(), first), query_values, d_o,
                              read_values, z);
    put_lower(Memory::d_query_writes(), query_writes, row(), first);
    put_lower(Memory::d_query_values(), query_values, row(), first);
    put_strictly_lower(Memory::d_read_writes(), read_writes, row(), first);
    put_strictly_lower(Memory::d_read_values(), read_values, row(), first);
  }

  /// Sets the parts of the sums that come from S and D.
  __device__ void set_sums_of_states() {
    sums_.queries.clear(), sums_.reads.clear(), sums_.keys.clear(), sums_.writes.clear();
    add_products_of<d_v / 16>(right_operand<RowsAre::summed>(Memory::state(), column()), sums_.queries,
                              left_operand<RowsAre::outer>(Memory::d_o(), row()), sums_.reads,
                              left_operand<RowsAre::outer>(Memory::z(), row()));
    add_products_of<d_v / 16>(right_operand<RowsAre::summed>(Memory::gradient(), column()), sums_.keys,
                              left_operand<RowsAre::outer>(Memory::values(), row()), sums_.writes,
                              left_operand<RowsAre::outer>(Memory::read(), row()));
  }

  /// Sets the sums of dg for what passes the right edge: four each of S (.) D, k" Yk and b" Yb.
  __device__ void put_edges() const {
    float* const edges = Memory::edges();
    const int last = strong_ ? layer_.rows(x_.d_o, d_v, chunk_).count - 1 : device_chunk;
    put_leaving<d_k>(edges + (4 + warp_row()) * d_k, Memory::keys(), row(), column(), sums_.keys, last);
    put_leaving<d_k>(edges + (8 + warp_row()) * d_k, Memory::writes(), row(), column(), sums_.writes, last);
    const int channel = 2 * (static_cast<int>(threadIdx.x) % (d_k / 2));
    const int part = static_cast<int>(threadIdx.x) / (d_k / 2);
    if (part >= 4) return;
    const auto* const through = reinterpret_cast<const float*>(record_ + Record::floats_at) + d_k;
    float2 sum{0.0F, 0.0F};
    for (int value = part; value < d_v; value += 4) {
      const int at = Bf16Tile<d_k>::offset(value, channel);
      sum = sum + Memory::state().pair(at) * Memory::gradient().pair(at);
    }
    sum = *reinterpret_cast<const float2*>(through + channel) * sum;
    *reinterpret_cast<float2*>(edges + part * d_k + channel) = sum;
  }

  /// Adds the pairs within the chunk.
  __device__ void add_pairs() {
    add_later(Memory::writes(), Memory::d_query_writes(), Memory::d_read_writes());
    add_later(Memory::keys(), Memory::d_query_values(), Memory::d_read_values());
    add_earlier(Memory::q(), Memory::d_query_values(), Memory::d_query_writes());
    add_earlier(Memory::reads(), Memory::d_read_values(), Memory::d_read_writes());
  }
  __device__ void add_later(const Bf16Tile<d_k>& rows, const Pairs& of_queries, const Pairs& of_reads) {
    add_products_of<device_chunk / 16>(right_operand<RowsAre::summed>(rows, column()), sums_.queries,
                                       left_operand<RowsAre::outer>(of_queries, row()), sums_.reads,
                                       left_operand<RowsAre::outer>(of_reads, row()), 0, warp_row() + 1);
  }
  __device__ void add_earlier(const Bf16Tile<d_k>& rows, const Pairs& of_keys, const Pairs& of_writes) {
    add_products_of<device_chunk / 16>(right_operand<RowsAre::summed>(rows, column()), sums_.keys,
                                       left_operand<RowsAre::summed>(of_keys, row()), sums_.writes,
                                       left_operand<RowsAre::summed>(of_writes, row()), warp_row(), 4);
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
  __device__ void write_rows() {
    const LowRankRows rows(layer_, x_.in, d_k, chunk_);
    const auto into = [&](Bf16* x) { return layer_.rows(x, d_k, chunk_); };
    const FinishedLowRankRows<d_k, d_v, kind> finished(rows, strong_, row(), column());
    finished.write_reads(sums_.reads, into(x_.out.da));
    finished.put_first_reads(sums_.reads);
    finished.write_queries(sums_.queries, into(x_.out.of.dq));
    finished.write_earlier(sums_.keys, sums_.queries, into(x_.out.of.dk),
                           {rows.k, Memory::keys(), Memory::d_query_values(), Memory::d_read_values()});
    finished.write_earlier(sums_.writes, sums_.queries, into(x_.out.db),
                           {rows.b, Memory::writes(), Memory::d_query_writes(), Memory::d_read_writes()});
    if constexpr (kind != GateKind::none) {
      __syncthreads();
      finished.add_next_reads(sums_.queries, sums_.reads);
      write_gates();
    }
  }

  __device__ void write_gates() {
    const auto dg = layer_.rows(x_.out.of.dg, GateTile<kind, d_k>::width(), chunk_);
    if constexpr (kind == GateKind::vector) {
      write_gates_of_channels<d_k, Memory::edge_sums>(dg, sums_.queries, Memory::totals(), Memory::edges(),
                                                      row(), column());
    } else {
      write_gates_of_head<d_k, Memory::edge_sums>(dg, sums_.queries, Memory::totals(), Memory::edges(),
                                                  row());
    }
  }

  const DeviceLayer& layer_;
  const LowRankGradients::Operands<OnDevice>& x_;
  const SweptChunks& kept_;
  int chunk_;
  std::int64_t number_;
  const char* record_;
  bool strong_;
  LowRankSums<d_k> sums_;
};

template <int d_k, int d_v, GateKind kind>
__global__ __launch_bounds__(tile_threads, 1) void low_rank_gradients_kernel(
    const __grid_constant__ DeviceLayer layer, const __grid_constant__ LowRankGradients::Operands<OnDevice> x,
    const __grid_constant__ SweptChunks kept) {
  LowRankChunkGradients<d_k, d_v, kind>(layer, x, kept).run();
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
