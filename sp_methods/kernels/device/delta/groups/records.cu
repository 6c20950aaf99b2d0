// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/device/delta/groups/inverse.cuh"
#include "sp_methods/kernels/device/delta/groups/inverse_steps.cuh"
#include "sp_methods/kernels/device/delta/strong_scores.cuh"

namespace baton {
namespace {

constexpr GateKind by_channel = GateKind::vector;

template <int d_k>
class RecordBlock {
 public:
  using Tile = Bf16Tile<d_k>;
  using Record = ChunkRecord<d_k>;
  using Gates = GateTile<by_channel, d_k>;
  using Walk = GateWalk<by_channel, d_k>;
  using Inverse = ChunkInverse<tile_threads>;
  // N~ takes the room of q', which has gone to the record.
  static constexpr int key_bytes = Tile::bytes(device_chunk),
                       matrix_bytes = ChunkMatrix::bytes(Inverse::stride);
  static constexpr int in_at = std::max(key_bytes, matrix_bytes), out_at = in_at + key_bytes,
                       g_at = out_at + key_bytes, scores_at = g_at + Gates::bytes(),
                       floats_at = scores_at + matrix_bytes;
  static constexpr int shared_bytes = floats_at + device_chunk * 4;
  static_assert(FloatTile<d_k>::bytes(device_chunk) <= floats_at - g_at);

  __device__ RecordBlock(const DeviceLayer& layer, const ChunkTensors& x, char* records)
      : layer_(layer), x_(x), chunk_(DeviceLayer::segment()) {
    record_ =
        records + (static_cast<std::int64_t>(DeviceLayer::place()) * layer.chunks() + chunk_) * Record::bytes;
  }

  __device__ static Tile q() { return {shared_space()}; }
  __device__ static Tile keys_in() { return {shared_space() + in_at}; }
  __device__ static Tile keys_out() { return {shared_space() + out_at}; }
  /// Log2 decays of a strong chunk, in the memory of the gates and of G.
  __device__ static FloatTile<d_k> decays() { return {shared_space() + g_at}; }

  __device__ void run() const {
    load();
    const bool strong = scale();
    __syncthreads();
    copy_to_panels(record_ + Record::q_at, q());
    copy_to_panels(record_ + Record::out_at, keys_out());
    strong ? put_strong_pieces() : put_pieces();
    __syncthreads();
    copy_to_panels(record_ + Record::in_at, keys_in());
    const Inverse found{scores(), {reinterpret_cast<float*>(shared_space()), Inverse::stride}, beta()};
    found.run();
    found.write(record_ + Record::n_at);
  }

 private:
  __device__ static Gates gates() { return {shared_space() + g_at}; }
  __device__ static ChunkMatrix scores() {
    return {reinterpret_cast<float*>(shared_space() + scores_at), Inverse::stride};
  }
  __device__ static float* beta() { return reinterpret_cast<float*>(shared_space() + floats_at); }

  __device__ void load() const {
    const auto loader = layer_.template loader<d_k>();
    loader.load(q(), x_.q, chunk_);
    loader.load(keys_in(), x_.k, chunk_);
    loader.load(keys_out(), x_.k, chunk_);
    gates().load(layer_, loader, x_.g, chunk_);
    commit_copies();
    if (threadIdx.x < device_chunk) {
      const int token = static_cast<int>(threadIdx.x);
      const auto rows = layer_.rows(x_.beta, 1, chunk_);
      beta()[token] = token < rows.count ? __bfloat162float(*rows.row(token)) : 0.0F;
    }
    wait_for_copies<0>();
    __syncthreads();
  }

  /// Scales the tiles and writes the decays. Returns true if the chunk is strong.
  __device__ bool scale() const {
    const ScaledChunk<d_k> tiles{q(), keys_in(), keys_out(), gates()};
    return scale_by_channel(tiles, [&](const Walk& walk, bool is_strong) {
      if (!walk.is_first_lane()) return;
      const float2 one{1.0F, 1.0F};
      put_decays(0, walk, is_strong ? one : decay_of(walk.middle));
      put_decays(1, walk, is_strong ? decay_of(walk.all) : one);
      put_decays(2, walk, is_strong ? one : decay_of(walk.all - walk.middle));
    });
  }
  __device__ void put_decays(int number, const Walk& walk, float2 x) const {
    auto* const decays = reinterpret_cast<float*>(record_ + Record::floats_at) + number * d_k;
    *reinterpret_cast<float2*>(decays + walk.channel) = x;
  }

  /// Sets the pieces of G, zero on and above the diagonal, and A.
  __device__ void put_pieces() const {
    const int row = 16 * warp_row(), column = 16 * warp_column();
    Sums<1, 1> keys, queries;
    if (warp_column() <= warp_row()) {
      add_products(scores_product(keys, keys_in(), keys_out(), row, column),
                   scores_product(queries, q(), keys_out(), row, column));
    } else {
      keys.clear(), queries.clear();
    }
    put_piece(keys, queries);
  }
  __device__ void put_piece(Sums<1, 1>& keys, Sums<1, 1>& queries) const {
    const int row = 16 * warp_row(), column = 16 * warp_column();
    put_lower(PanelTile<device_chunk>{record_ + Record::a_at}, queries, row, column);
    keys.for_each([&](int r, int c, float2& x) {
      scores().at(row + r, column + c) = column + c < row + r ? x.x : 0.0F;
      scores().at(row + r, column + c + 1) = column + c + 1 < row + r ? x.y : 0.0F;
    });
  }

  /// Sets the same pieces of a strong chunk, and k' anew.
  __device__ void put_strong_pieces() const {
    put_decays_of_tokens();
    layer_.template loader<d_k>().load(keys_in(), x_.k, chunk_);
    commit_copies();
    const PairsOfThread<d_k> queries(layer_.rows(x_.q, d_k, chunk_));
    wait_for_copies<0>();
    auto found = StrongScores<RecordBlock, d_k>::of(queries);
    scale_plain_keys();
    __syncthreads();  // G takes the place of the decays
    put_piece(found.keys, found.queries);
  }
  /// Sets the log2 decays of tokens in the place of the gates.
  __device__ static void put_decays_of_tokens() {
    const Walk walk(gates());
    __syncthreads();
    if (Walk::takes_part()) put_log2_decays(decays(), walk);
  }
  __device__ static void scale_plain_keys() {
    using Thread = ThreadPairs<d_k>;
    for (int i = 0; i < Thread::tokens; ++i) {
      const int at = Tile::offset(Thread::token(i), Thread::channel());
      const float2 b = decays().pair(FloatTile<d_k>::offset(Thread::token(i), Thread::channel()));
      keys_in().set_pair(at, decay_between(b, {0.0F, 0.0F}) * keys_in().pair(at));
    }
  }

  const DeviceLayer& layer_;
  const ChunkTensors& x_;
  int chunk_;
  char* record_;
};

template <int d_k>
__global__ __launch_bounds__(tile_threads,
                             2) void gated_records_kernel(const __grid_constant__ DeviceLayer layer,
                                                          const __grid_constant__ ChunkTensors x,
                                                          char* records) {
  RecordBlock<d_k>(layer, x, records).run();
}

}  // namespace

cudaError_t gated_records(cudaStream_t stream, char* chunks, const ChunkTensors& x, const Chunks& p) {
  return with_widths(p.shape, [&](auto d_k, auto) {
    return launch_on_segments(stream, each_chunk(p), RecordBlock<d_k()>::shared_bytes,
                              gated_records_kernel<d_k()>, x, chunks);
  });
}

}  // namespace baton
