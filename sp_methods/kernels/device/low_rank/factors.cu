// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/device/delta/inverse.cuh"
#include "sp_methods/kernels/device/low_rank/factors.cuh"

namespace baton {
namespace {

/// Memory of a strong chunk's scores of reads: row i is that of token i + 1. Scores come with the
/// scale of queries, which `factor` takes away.
struct StrongLower {
  ChunkMatrix into;
  float factor;

  __device__ void set(int row, int column, float x) const {
    if (row + 1 < device_chunk) into.at(row + 1, column) = factor * x;
  }
};
struct StrongReads {
  Bf16Tile<device_chunk> into;
  float factor;

  __device__ void set(int row, int column, float x) const {
    if (row + 1 < device_chunk) into.set(row + 1, column, factor * x);
  }
};

template <int d_k, int d_v, GateKind kind>
class LowRankFactors {
 public:
  using Gates = GateTile<kind, d_k>;
  using Walk = GateWalk<kind, d_k>;
  using Record = ChunkRecord<d_k, d_v, ChunkRule::low_rank>;
  using Pairs = Bf16Tile<device_chunk>;
  static constexpr int key_bytes = Bf16Tile<d_k>::bytes(device_chunk),
                       v_bytes = Bf16Tile<d_v>::bytes(device_chunk);
  static constexpr int lower_stride = device_chunk + 4;
  // The inverse takes the place of q, T that of b" and V that of k", which have gone to the record.
  static constexpr int reads_at = std::max(key_bytes, ChunkMatrix::bytes(device_chunk)),
                       keys_at = reads_at + key_bytes;
  static constexpr int writes_at = keys_at + std::max(key_bytes, v_bytes), g_at = writes_at + key_bytes;
  static constexpr int read_values_at = g_at + Gates::bytes(),
                       lower_at = read_values_at + Pairs::bytes(device_chunk);
  static constexpr int shared_bytes = lower_at + ChunkMatrix::bytes(lower_stride);
  static_assert(Pairs::bytes(device_chunk) <= key_bytes && v_bytes <= ChunkMatrix::bytes(lower_stride));

  __device__ LowRankFactors(const DeviceLayer& layer, const LowRankInputs<OnDevice>& in, char* records,
                            LowRankParts parts)
      : layer_(layer), in_(in), parts_(parts), chunk_(static_cast<int>(blockIdx.y)) {
    const std::int64_t number = static_cast<std::int64_t>(DeviceLayer::place()) * layer.chunks() + chunk_;
    record_ = {records + number * Record::bytes};
  }

  __device__ void run() {
    load();
    wait_for_copies<0>();
    __syncthreads();
    const bool strong = scale();
    __syncthreads();
    strong ? put_strong_scores() : put_scores();
    __syncthreads();
    copy_out();
    __syncthreads();
    if (parts_.values) layer_.template loader<d_v>().load(v(), in_.of.v, chunk_);
    commit_copies();
    invert(inverse(), lower());
    put_narrow();
    wait_for_copies<0>();
    __syncthreads();
    put_w();
    put_values();
  }

 private:
  __device__ static Bf16Tile<d_k> q() { return {shared_space()}; }
  __device__ static ChunkMatrix inverse() { return {reinterpret_cast<float*>(shared_space()), device_chunk}; }
  /// W before it is copied to the record.
  __device__ static Bf16Tile<d_k> w() { return {shared_space()}; }
  __device__ static Bf16Tile<d_k> reads() { return {shared_space() + reads_at}; }
  __device__ static Bf16Tile<d_k> keys() { return {shared_space() + keys_at}; }
  __device__ static Bf16Tile<d_v> v() { return {shared_space() + keys_at}; }
  __device__ static Bf16Tile<d_k> writes() { return {shared_space() + writes_at}; }
  __device__ static Pairs narrow() { return {shared_space() + writes_at}; }
  __device__ static Gates gates() { return {shared_space() + g_at}; }
  /// Arv, later T Arv.
  __device__ static Pairs read_values() { return {shared_space() + read_values_at}; }
  /// -Arb below the diagonal.
  __device__ static ChunkMatrix lower() {
    return {reinterpret_cast<float*>(shared_space() + lower_at), lower_stride};
  }
  /// U^T before it is copied to the record.
  __device__ static Pairs u() { return {shared_space() + lower_at}; }

  __device__ void load() const {
    const auto loader = layer_.template loader<d_k>();
    if (parts_.queries) loader.load(q(), in_.of.q, chunk_);
    if (parts_.values) loader.load(keys(), in_.of.k, chunk_);
    loader.load(reads(), in_.a, chunk_);
    loader.load(writes(), in_.b, chunk_);
    gates().load(layer_, loader, in_.of.g, chunk_);
    commit_copies();
    reinterpret_cast<uint4*>(read_values().memory)[threadIdx.x] = {};
    static_assert(16 * tile_threads == Pairs::bytes(device_chunk));
    if (threadIdx.x < device_chunk) record_.beta()[threadIdx.x] = 1.0F;
  }

  __device__ void put_decays(const Walk& walk, float2 to, float2 from) const {
    if (!walk.is_first_lane()) return;
    *reinterpret_cast<float2*>(record_.to() + walk.channel) = to;
    *reinterpret_cast<float2*>(record_.from() + walk.channel) = from;
    *reinterpret_cast<float2*>(record_.gamma() + walk.channel) = decay_of(walk.all);
  }

  /// Scales the rows, sets the decays, and returns true if the chunk is strong.
  __device__ bool scale() const {
    const LowRankTiles<kind, d_k> tiles{q(), reads(), keys(), writes()};
    bool strong = false;
    if (Walk::takes_part()) {
      const Walk walk(gates());
      const int count = layer_.rows(in_.a, d_k, chunk_).count;
      strong = walk.is_strong() || (count < device_chunk && walk.is_short_and_strong(count));
      tiles.scale(walk);
      put_decays(walk, decay_of(walk.middle), decay_of(walk.all - walk.middle));
    }
    strong = __syncthreads_or(strong);
    if (threadIdx.x == 0) *record_.strong() = strong ? 1.0F : 0.0F;
    if (strong && Walk::takes_part()) {
      const Walk walk(gates());
      tiles.scale_strongly(walk, LowRankRows(layer_, in_, d_k, chunk_));
      put_decays(walk, {1.0F, 1.0F}, {1.0F, 1.0F});
    }
    return strong;
  }

  __device__ void put_strong_scores() const {
    const LowRankRows rows(layer_, in_, d_k, chunk_);
    const float unscaled = power_of_2(-log2_scale<d_k>);
    strong_scores(StrongLower{lower(), -unscaled}, gates(), QueryKeyRows{rows.reads(), rows.b});
    if (parts_.queries) strong_scores(record_.pairs(), gates(), QueryKeyRows{rows.q, rows.b});
    if (!parts_.values) return;
    strong_scores(StrongReads{read_values(), unscaled}, gates(), QueryKeyRows{rows.reads(), rows.k});
    if (parts_.queries) strong_scores(record_.value_pairs(), gates(), QueryKeyRows{rows.q, rows.k});
  }

  /// Sets the scores on and below the diagonal. Scores above it may be infinite.
  __device__ void put_scores() const {
    if (warp_column() > warp_row()) return;
    const int row = 16 * warp_row(), column = 16 * warp_column();
    Sums<1, 1> reads, queries;
    const auto of_reads = scores_product(reads, this->reads(), writes(), row, column);
    const auto of_queries = scores_product(queries, q(), writes(), row, column);
    add_products(of_reads, of_queries);
    reads.for_each([&](int r, int c, float2& x) {
      lower().at(row + r, column + c) = -x.x;
      lower().at(row + r, column + c + 1) = -x.y;
    });
    if (parts_.queries) put_lower(record_.pairs(), queries, row, column);
    if (!parts_.values) return;
    Sums<1, 1> read_values, query_values;
    const auto of_read_values = scores_product(read_values, this->reads(), keys(), row, column);
    const auto of_query_values = scores_product(query_values, q(), keys(), row, column);
    add_products(of_read_values, of_query_values);
    put_strictly_lower(this->read_values(), read_values, row, column);
    if (parts_.queries) put_lower(record_.value_pairs(), query_values, row, column);
  }

  __device__ void copy_out() const {
    copy_tile<key_bytes>(record_.k().memory, writes().memory);
    if (parts_.queries) copy_tile<key_bytes>(record_.q().memory, q().memory);
    if (parts_.values) copy_tile<key_bytes>(record_.keys().memory, keys().memory);
    if (!parts_.gradients) return;
    copy_tile<key_bytes>(record_.reads().memory, reads().memory);
    copy_tile<Record::pair_bytes>(record_.g().memory, read_values().memory);
  }

  /// Sets T as an operand, and copies it for gradients.
  __device__ void put_narrow() const {
#pragma unroll
    for (int i = 0; i < device_chunk * device_chunk / 2 / tile_threads; ++i) {
      const int pair = static_cast<int>(threadIdx.x) + i * tile_threads;
      const int row = pair / (device_chunk / 2), column = pair % (device_chunk / 2) * 2;
      const float2 x{inverse().at(row, column), inverse().at(row, column + 1)};
      narrow().set_pair(Pairs::offset(row, column), x);
      if (parts_.gradients) record_.t().set_pair(Pairs::offset(row, column), x);
    }
  }

  /// Sets W, and T Arv in the place of Arv.
  __device__ void put_w() const {
    const int row = 16 * warp_row(), column = warp_column() * (d_k / 4), first = 16 * warp_column();
    Sums<1, d_k / 64> w;
    Sums<1, 1> of_values;
    w.clear(), of_values.clear();
    const auto inverse = left_operand<RowsAre::outer>(narrow(), row);
    add_product<device_chunk / 16>(w, inverse, right_operand<RowsAre::summed>(reads(), column), 0,
                                   warp_row() + 1);
    add_product<device_chunk / 16>(of_values, inverse, right_operand<RowsAre::summed>(read_values(), first),
                                   0, warp_row() + 1);
    w.for_each([](int, int, float2& x) { x = -1.0F * x; });
    put_sums(this->w(), row, column, w);
    __syncthreads();
    put_sums(read_values(), row, first, of_values);
    copy_tile<key_bytes>(record_.w().memory, this->w().memory);
  }

  /// Sets U^T and V^T.
  __device__ void put_values() const {
    if (!parts_.values) return;
    __syncthreads();
    constexpr int pieces = d_v / 16, tokens = d_v / 4;  // a warp has 16 values of so many tokens
    const int row = 16 * (warp() % pieces), column = warp() / pieces * tokens;
    Sums<1, d_v / 64> u;
    u.clear();
    add_product<device_chunk / 16>(u, left_operand<RowsAre::summed>(v(), row),
                                   right_operand<RowsAre::outer>(read_values(), column));
    put_sums(this->u(), row, column, u);
#pragma unroll
    for (int i = 0; i < d_v * device_chunk / 2 / tile_threads; ++i) {
      const int pair = static_cast<int>(threadIdx.x) + i * tile_threads;
      const int value = pair / (device_chunk / 2), token = pair % (device_chunk / 2) * 2;
      record_.values().set_pair(Pairs::offset(value, token),
                                {v().at(token, value), v().at(token + 1, value)});
    }
    __syncthreads();
    copy_tile<Record::value_bytes>(record_.u().memory, this->u().memory);
  }

  const DeviceLayer& layer_;
  const LowRankInputs<OnDevice>& in_;
  LowRankParts parts_;
  int chunk_;
  Record record_;
};

template <int d_k, int d_v, GateKind kind>
__global__ __launch_bounds__(tile_threads, 2) void low_rank_factors_kernel(
    const __grid_constant__ DeviceLayer layer, const __grid_constant__ LowRankInputs<OnDevice> in,
    char* records, LowRankParts parts) {
  LowRankFactors<d_k, d_v, kind>(layer, in, records, parts).run();
}

}  // namespace

cudaError_t low_rank_factors(cudaStream_t stream, char* records, const LowRankInputs<OnDevice>& in,
                             const Chunks& p, LowRankParts parts) {
  const Segments chunks{p.shape, p.work, (p.shape.tokens + device_chunk - 1) / device_chunk, Dtype::bf16};
  return with_constants(p.shape, [&](auto d_k, auto d_v, auto kind) {
    return launch_on_segments(stream, chunks, LowRankFactors<d_k(), d_v(), kind()>::shared_bytes,
                              low_rank_factors_kernel<d_k(), d_v(), kind()>, in, records, parts);
  });
}

}  // namespace baton
