// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/device/delta/groups/inverse_steps.cuh"
#include "sp_methods/kernels/device/low_rank/records.cuh"

namespace baton {
namespace {

/// Memory of a strong chunk's scores of reads: row i is that of token i + 1. Scores come with the
/// scale of queries, which `factor` takes away.
struct StrongMatrix {
  ChunkMatrix into;
  float factor;

  __device__ void set(int row, int column, float x) const {
    if (row + 1 < device_chunk) into.at(row + 1, column) = factor * x;
  }
};
struct StrongReads {
  PanelTile<device_chunk> into;
  float factor;

  __device__ void set(int row, int column, float x) const {
    if (row + 1 < device_chunk) into.set(row + 1, column, factor * x);
  }
};

template <int d_k, GateKind kind>
class LowRankRecord {
 public:
  using Tile = Bf16Tile<d_k>;
  using Gates = GateTile<kind, d_k>;
  using Walk = GateWalk<kind, d_k>;
  using Record = ChunkRecord<d_k, ChunkRule::low_rank>;
  using Pairs = PanelTile<device_chunk>;
  using Inverse = ChunkInverse<tile_threads>;
  static constexpr int key_bytes = Tile::bytes(device_chunk),
                       matrix_bytes = ChunkMatrix::bytes(Inverse::stride);
  // Scores and N~ take the room of rows, which have gone to the record.
  static constexpr int inverse_at = 3 * Pairs::bytes,
                       g_at = std::max(4 * key_bytes, inverse_at + matrix_bytes);
  static constexpr int matrix_at = g_at + Gates::bytes(), floats_at = matrix_at + matrix_bytes;
  static constexpr int shared_bytes = floats_at + 4 * device_chunk;

  __device__ LowRankRecord(const DeviceLayer& layer, const LowRankInputs<OnDevice>& in, char* records,
                           ChunkParts parts)
      : layer_(layer), in_(in), parts_(parts), chunk_(DeviceLayer::segment()) {
    record_ =
        records + (static_cast<std::int64_t>(DeviceLayer::place()) * layer.chunks() + chunk_) * Record::bytes;
  }

  __device__ void run() const {
    load();
    const bool strong = scale();
    __syncthreads();
    copy_rows();
    strong ? put_strong_scores() : put_scores();
    __syncthreads();
    copy_scores();
    const Inverse found{
        matrix(), {reinterpret_cast<float*>(shared_space() + inverse_at), Inverse::stride}, ones()};
    found.run();
    found.write(record_ + Record::n_at);
  }

 private:
  __device__ static Tile q() { return {shared_space()}; }
  __device__ static Tile reads() { return {shared_space() + key_bytes}; }
  __device__ static Tile keys() { return {shared_space() + 2 * key_bytes}; }
  __device__ static Tile writes() { return {shared_space() + 3 * key_bytes}; }
  __device__ static Gates gates() { return {shared_space() + g_at}; }
  // Scores, each as it is named in the record.
  __device__ static Pairs query_writes() { return {shared_space()}; }
  __device__ static Pairs read_values() { return {shared_space() + Pairs::bytes}; }
  __device__ static Pairs query_values() { return {shared_space() + 2 * Pairs::bytes}; }
  /// -tril_{-1}(r' b"^T), which is G of inverse_steps.cuh.
  __device__ static ChunkMatrix matrix() {
    return {reinterpret_cast<float*>(shared_space() + matrix_at), Inverse::stride};
  }
  /// The strengths of the tokens.
  __device__ static float* ones() { return reinterpret_cast<float*>(shared_space() + floats_at); }

  __device__ void load() const {
    const auto loader = layer_.template loader<d_k>();
    if (parts_.queries) loader.load(q(), in_.of.q, chunk_);
    if (parts_.values) loader.load(keys(), in_.of.k, chunk_);
    loader.load(reads(), in_.a, chunk_);
    loader.load(writes(), in_.b, chunk_);
    gates().load(layer_, loader, in_.of.g, chunk_);
    commit_copies();
    if (threadIdx.x < device_chunk) ones()[threadIdx.x] = 1.0F;
    wait_for_copies<0>();
    __syncthreads();
  }

  /// The plain rows; those that the call does not read are empty.
  __device__ LowRankRows rows() const {
    LowRankRows found(layer_, in_, d_k, chunk_);
    if (!parts_.queries) found.q.count = 0;
    if (!parts_.values) found.k.count = 0;
    return found;
  }

  /// Scales the rows, sets the decays, and returns true if the chunk is strong.
  __device__ bool scale() const {
    const LowRankTiles<kind, d_k> tiles{q(), reads(), keys(), writes()};
    const float2 one{1.0F, 1.0F};
    bool strong = false;
    if (Walk::takes_part()) {
      const Walk walk(gates());
      const int count = layer_.rows(in_.a, d_k, chunk_).count;
      strong = walk.is_strong() || (count < device_chunk && walk.is_short_and_strong(count));
      tiles.scale(walk);
      put_decays(walk, decay_of(walk.middle), one, decay_of(walk.all - walk.middle));
    }
    strong = __syncthreads_or(strong);
    if (threadIdx.x == 0) *reinterpret_cast<int*>(record_ + Record::strong_at) = strong ? 1 : 0;
    if (strong && Walk::takes_part()) {
      const Walk walk(gates());
      tiles.scale_strongly(walk, rows());
      put_decays(walk, one, decay_of(walk.all), one);
    }
    return strong;
  }
  __device__ void put_decays(const Walk& walk, float2 to, float2 through, float2 from) const {
    if (!walk.is_first_lane()) return;
    auto* const decays = reinterpret_cast<float2*>(record_ + Record::floats_at) + walk.channel / 2;
    decays[0] = to, decays[d_k / 2] = through, decays[d_k] = from;
  }

  __device__ void copy_rows() const {
    copy_to_panels(record_ + Record::in_at, reads());
    copy_to_panels(record_ + Record::out_at, writes());
    if (parts_.queries) copy_to_panels(record_ + Record::q_at, q());
    if (parts_.values) copy_to_panels(record_ + Record::keys_at, keys());
  }
  __device__ void copy_scores() const {
    if (parts_.queries) copy_tile<Pairs::bytes>(record_ + Record::a_at, query_writes().memory);
    if (!parts_.values) return;
    copy_tile<Pairs::bytes>(record_ + Record::read_values_at, read_values().memory);
    if (parts_.queries) copy_tile<Pairs::bytes>(record_ + Record::query_values_at, query_values().memory);
  }

  /// Sets the scores in the room of rows. Scores above the diagonal may be infinite.
  __device__ void put_scores() const {
    const int row = 16 * warp_row(), column = 16 * warp_column();
    Sums<1, 1> of_reads, of_queries, reads_of_values, queries_of_values;
    of_reads.clear(), of_queries.clear(), reads_of_values.clear(), queries_of_values.clear();
    if (warp_column() <= warp_row()) {
      const auto left_reads = left_operand<RowsAre::outer>(reads(), row);
      const auto left_queries = left_operand<RowsAre::outer>(q(), row);
      add_products_of<d_k / 16>(right_operand<RowsAre::outer>(writes(), column), of_reads, left_reads,
                                of_queries, left_queries);
      if (parts_.values)
        add_products_of<d_k / 16>(right_operand<RowsAre::outer>(keys(), column), reads_of_values, left_reads,
                                  queries_of_values, left_queries);
    }
    __syncthreads();
    of_reads.for_each([&](int r, int c, float2& x) {
      *reinterpret_cast<float2*>(&matrix().at(row + r, column + c)) = {
          column + c < row + r ? -x.x : 0.0F, column + c + 1 < row + r ? -x.y : 0.0F};
    });
    put_lower(query_writes(), of_queries, row, column);
    put_strictly_lower(read_values(), reads_of_values, row, column);
    put_lower(query_values(), queries_of_values, row, column);
  }

  /// The same in a strong chunk.
  __device__ void put_strong_scores() const {
    __syncthreads();
    const LowRankRows rows = this->rows();
    const float unscaled = power_of_2(-log2_scale<d_k>);
    if (threadIdx.x < device_chunk) {  // no token is before the first
      matrix().at(0, static_cast<int>(threadIdx.x)) = 0.0F;
      read_values().set(0, static_cast<int>(threadIdx.x), 0.0F);
    }
    const auto put = [&](const auto& into, const QueryKeyRows& pairs) {
      strong_scores<tile_threads / 32, device_chunk>(into, gates(), pairs);
    };
    put(StrongMatrix{matrix(), -unscaled}, {rows.reads(), rows.b});
    if (parts_.queries) put(query_writes(), {rows.q, rows.b});
    if (!parts_.values) return;
    put(StrongReads{read_values(), unscaled}, {rows.reads(), rows.k});
    if (parts_.queries) put(query_values(), {rows.q, rows.k});
  }

  const DeviceLayer& layer_;
  const LowRankInputs<OnDevice>& in_;
  ChunkParts parts_;
  int chunk_;
  char* record_;
};

template <int d_k, GateKind kind>
__global__ __launch_bounds__(tile_threads, 2) void low_rank_records_kernel(
    const __grid_constant__ DeviceLayer layer, const __grid_constant__ LowRankInputs<OnDevice> in,
    char* records, ChunkParts parts) {
  LowRankRecord<d_k, kind>(layer, in, records, parts).run();
}

}  // namespace

cudaError_t low_rank_records(cudaStream_t stream, char* records, const LowRankInputs<OnDevice>& in,
                             const Chunks& p, ChunkParts parts) {
  return with_constants(p.shape, [&](auto d_k, auto, auto kind) {
    return launch_on_segments(stream, each_chunk(p), LowRankRecord<d_k(), kind()>::shared_bytes,
                              low_rank_records_kernel<d_k(), kind()>, in, records, parts);
  });
}

}  // namespace baton
