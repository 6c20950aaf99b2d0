// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/device/delta/factors.cuh"
#include "sp_methods/kernels/device/delta/inverse.cuh"
#include "sp_methods/kernels/device/delta/scaling.cuh"
#include "sp_methods/kernels/device/delta/strong_scores.cuh"

namespace baton {
namespace {

template <int d_k, int d_v, GateKind kind>
class FactorsBlock {
 public:
  using Gates = GateTile<kind, d_k>;
  using Walk = GateWalk<kind, d_k>;
  using Record = ChunkRecord<d_k, d_v>;
  using Pairs = Bf16Tile<device_chunk>;
  static constexpr int k_bytes = Bf16Tile<d_k>::bytes(device_chunk),
                       v_bytes = Bf16Tile<d_v>::bytes(device_chunk);
  static constexpr int lower_stride = device_chunk + 4;
  static constexpr bool by_channel = kind == GateKind::vector;
  // Scaled tiles need more room: then the inverse takes that of q, which has gone to the record.
  static constexpr int inverse_bytes = ChunkMatrix::bytes(device_chunk);
  static constexpr int q_bytes = by_channel ? std::max(k_bytes, inverse_bytes) : k_bytes;
  static constexpr int in_at = q_bytes, out_at = by_channel ? in_at + k_bytes : in_at,
                       v_at = out_at + k_bytes;
  static constexpr int g_at = v_at + v_bytes, lower_at = g_at + Gates::bytes();
  static constexpr int narrow_at = lower_at + ChunkMatrix::bytes(lower_stride);
  static constexpr int decayed_at = narrow_at + (kind == GateKind::scalar ? Pairs::bytes(device_chunk) : 0);
  static constexpr int after_pairs = decayed_at + Pairs::bytes(device_chunk);
  static constexpr int inverse_at = by_channel ? 0 : after_pairs;
  static constexpr int floats_at = after_pairs + (by_channel ? 0 : inverse_bytes);
  static constexpr int shared_bytes = floats_at + 2 * device_chunk * 4;
  static_assert(!by_channel || FloatTile<d_k>::bytes(device_chunk) <= narrow_at - g_at);

  __device__ FactorsBlock(const DeviceLayer& layer, const DeltaInputs<OnDevice>& in, char* records,
                          RecordParts parts)
      : layer_(layer), in_(in), parts_(parts), chunk_(static_cast<int>(blockIdx.y)) {
    const std::int64_t number = static_cast<std::int64_t>(DeviceLayer::place()) * layer.chunks() + chunk_;
    record_ = {records + number * Record::bytes};
  }

  __device__ static Bf16Tile<d_k> q() { return {shared_space()}; }
  __device__ static Bf16Tile<d_k> keys_in() { return {shared_space() + in_at}; }
  __device__ static Bf16Tile<d_k> keys_out() { return {shared_space() + out_at}; }
  /// Log2 decays of a strong chunk, in the memory of the gates and of L.
  __device__ static FloatTile<d_k> decays() { return {shared_space() + g_at}; }

  __device__ void run() {
    load();
    wait_for_copies<0>();
    __syncthreads();
    if constexpr (by_channel) {
      const bool strong = scale();
      __syncthreads();
      if (parts_.queries) copy_out(record_.q(), q(), [](int) { return 1.0F; });
      copy_out(record_.k(), keys_out(), [](int) { return 1.0F; });
      strong ? put_strong_pieces() : put_pieces();
      __syncthreads();
    } else {
      if (warp() == 0) sum_gates_of_head(sums_of_gates(), gates());
      __syncthreads();
      put_pieces();
      put_scaled_rows();
      __syncthreads();
    }
    scale_lower();
    __syncthreads();
    invert(inverse(), lower());
    put_narrow();
    __syncthreads();
    put_w();
    put_u();
    __syncthreads();
    copy_tile<k_bytes>(record_.w().memory, w().memory);
    copy_tile<Record::value_bytes>(record_.u().memory, u().memory);
  }

 private:
  __device__ static ChunkMatrix inverse() {
    return {reinterpret_cast<float*>(shared_space() + inverse_at), device_chunk};
  }
  __device__ static Bf16Tile<d_v> v() { return {shared_space() + v_at}; }
  __device__ static Gates gates() { return {shared_space() + g_at}; }
  __device__ static ChunkMatrix lower() {
    return {reinterpret_cast<float*>(shared_space() + lower_at), lower_stride};
  }
  __device__ static Pairs narrow() { return {shared_space() + narrow_at}; }
  /// W before it is copied to the record, in the memory of q or the inverse.
  __device__ static Bf16Tile<d_k> w() { return {shared_space()}; }
  /// U^T before it is copied to the record, in the memory of L.
  __device__ static Pairs u() { return {shared_space() + lower_at}; }
  /// N e^b, the operand of W.
  __device__ static Pairs decayed() { return {shared_space() + decayed_at}; }
  __device__ static float* beta() { return reinterpret_cast<float*>(shared_space() + floats_at); }
  /// Log decay b of every token, for one gate a head.
  __device__ static float* sums_of_gates() { return beta() + device_chunk; }

  __device__ void load() const {
    const auto loader = layer_.template loader<d_k>();
    if (parts_.queries) loader.load(q(), in_.of.q, chunk_);
    loader.load(keys_in(), in_.of.k, chunk_);
    if constexpr (by_channel) loader.load(keys_out(), in_.of.k, chunk_);
    layer_.template loader<d_v>().load(v(), in_.of.v, chunk_);
    gates().load(layer_, loader, in_.of.g, chunk_);
    commit_copies();
    if (threadIdx.x >= device_chunk) return;
    const int token = static_cast<int>(threadIdx.x);
    const auto rows = layer_.rows(in_.beta, 1, chunk_);
    const float strength = token < rows.count ? __bfloat162float(*rows.row(token)) : 0.0F;
    beta()[token] = strength;
    record_.beta()[token] = strength;
  }

  __device__ void put_decays(const Walk& walk, float2 to, float2 from) const {
    if (!walk.is_first_lane()) return;
    *reinterpret_cast<float2*>(record_.to() + walk.channel) = to;
    *reinterpret_cast<float2*>(record_.from() + walk.channel) = from;
    *reinterpret_cast<float2*>(record_.gamma() + walk.channel) = decay_of(walk.all);
  }

  /// Sets the scaled tiles and the decays for one gate a channel, and returns true if the chunk is
  /// strong.
  __device__ bool scale() const {
    const ScaledChunk<kind, d_k> tiles{q(), keys_in(), keys_out(), gates()};
    return scale_by_channel(tiles, [&](const Walk& walk, bool is_strong) {
      const float2 one{1.0F, 1.0F};
      put_decays(walk, is_strong ? one : decay_of(walk.middle),
                 is_strong ? one : decay_of(walk.all - walk.middle));
    });
  }

  /// Sets the pieces of G and A on and below the diagonal. Scores above it may be infinite.
  __device__ void put_pieces() const {
    if (warp_column() > warp_row()) return;
    const int row = 16 * warp_row(), column = 16 * warp_column();
    Sums<1, 1> keys, queries;
    const auto of_keys = scores_product(keys, keys_in(), keys_out(), row, column);
    if (parts_.queries) {
      add_products(of_keys, scores_product(queries, q(), keys_out(), row, column));
      if constexpr (!by_channel)
        decay_piece(queries, sums_of_gates(), row, column, power_of_2(log2_scale<d_k>));
    } else {
      add_products(of_keys);
    }
    if constexpr (!by_channel) decay_piece(keys, sums_of_gates(), row, column, 1.0F);
    put_piece(keys, queries, row, column);
  }
  __device__ void put_piece(Sums<1, 1>& keys, Sums<1, 1>& queries, int row, int column) const {
    if (parts_.queries) put_lower(record_.pairs(), queries, row, column);
    keys.for_each([&](int r, int c, float2& x) {
      lower().at(row + r, column + c) = x.x;
      lower().at(row + r, column + c + 1) = x.y;
    });
  }

  /// Sets the same pieces of a strong chunk, and k' anew.
  __device__ void put_strong_pieces() const {
    put_decays_of_tokens();
    layer_.template loader<d_k>().load(keys_in(), in_.of.k, chunk_);
    commit_copies();
    const PairsOfThread<d_k> queries(parts_.queries ? layer_.rows(in_.of.q, d_k, chunk_)
                                                    : HeadRows<const Bf16>{});
    wait_for_copies<0>();
    auto scores = StrongScores<FactorsBlock, d_k>::of(queries);
    scale_plain_keys();
    __syncthreads();  // L takes the place of the decays
    if (warp_column() <= warp_row())
      put_piece(scores.keys, scores.queries, 16 * warp_row(), 16 * warp_column());
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
      const int at = Bf16Tile<d_k>::offset(Thread::token(i), Thread::channel());
      const float2 b = decays().pair(FloatTile<d_k>::offset(Thread::token(i), Thread::channel()));
      keys_in().set_pair(at, decay_between(b, {0.0F, 0.0F}) * keys_in().pair(at));
    }
  }

  /// Sets q' and k" from plain rows, and the decays.
  __device__ void put_scaled_rows() const {
    const float* b = sums_of_gates();
    const float scale = power_of_2(log2_scale<d_k>), all = b[device_chunk - 1];
    if (parts_.queries) copy_out(record_.q(), q(), [&](int row) { return scale * decay_of(b[row]); });
    copy_out(record_.k(), keys_out(), [&](int row) { return decay_of(all - b[row]); });
    const int channel = static_cast<int>(threadIdx.x);
    if (channel >= d_k) return;
    record_.to()[channel] = 1.0F;
    record_.from()[channel] = 1.0F;
    record_.gamma()[channel] = decay_of(all);
  }

  /// Copies a tile to the record, row i times factor(i); gates a channel are already in the tile.
  template <class Factor>
  __device__ static void copy_out(const Bf16Tile<d_k>& into, const Bf16Tile<d_k>& from, Factor factor) {
    constexpr int units = Bf16Tile<d_k>::bytes(device_chunk) / 16;
#pragma unroll
    for (int i = 0; i < units / tile_threads; ++i) {
      const int unit = static_cast<int>(threadIdx.x) + i * tile_threads;
      uint4 x = reinterpret_cast<const uint4*>(from.memory)[unit];
      if constexpr (!by_channel) {
        const float f = factor(unit / (d_k / 8));
        for (std::uint32_t* pair : {&x.x, &x.y, &x.z, &x.w}) {
          const float2 scaled = f * unpacked_pair(*pair);
          *pair = packed_pair(scaled.x, scaled.y);
        }
      }
      reinterpret_cast<uint4*>(into.memory)[unit] = x;
    }
  }

  /// Copies G to the record if gradients need it, then sets L = G B, zero on and above the
  /// diagonal.
  __device__ void scale_lower() const {
#pragma unroll
    for (int i = 0; i < device_chunk * device_chunk / 2 / tile_threads; ++i) {
      const int pair = static_cast<int>(threadIdx.x) + i * tile_threads;
      const int row = pair / (device_chunk / 2), column = pair % (device_chunk / 2) * 2;
      float& left = lower().at(row, column);
      float& right = lower().at(row, column + 1);
      const float2 x{column < row ? left : 0.0F, column + 1 < row ? right : 0.0F};
      if (parts_.gradients) record_.g().set_pair(Pairs::offset(row, column), x);
      left = x.x * beta()[column];
      right = x.y * beta()[column + 1];
    }
  }

  /// Sets N as an operand, and T = B N for gradients.
  __device__ void put_narrow() const {
#pragma unroll
    for (int i = 0; i < device_chunk * device_chunk / 2 / tile_threads; ++i) {
      const int pair = static_cast<int>(threadIdx.x) + i * tile_threads;
      const int row = pair / (device_chunk / 2), column = pair % (device_chunk / 2) * 2;
      const float2 x{inverse().at(row, column), inverse().at(row, column + 1)};
      narrow().set_pair(Pairs::offset(row, column), x);
      if constexpr (kind == GateKind::scalar) {
        const float* b = sums_of_gates() + column;
        decayed().set_pair(Pairs::offset(row, column), x * decay_of(float2{b[0], b[1]}));
      }
      if (parts_.gradients) record_.t().set_pair(Pairs::offset(row, column), beta()[row] * x);
    }
  }

  __device__ void put_w() const {
    const int row = 16 * warp_row(), column = warp_column() * (d_k / 4);
    Sums<1, d_k / 64> w;
    w.clear();
    add_product<device_chunk / 16>(w, left_operand<RowsAre::outer>(decayed(), row),
                                   right_operand<RowsAre::summed>(keys_in(), column), 0, warp_row() + 1);
    put_sums(this->w(), row, column, w);
  }

  __device__ void put_u() const {
    constexpr int pieces = d_v / 16, tokens = d_v / 4;  // a warp has 16 values of so many tokens
    const int row = 16 * (warp() % pieces), column = warp() / pieces * tokens;
    Sums<1, d_v / 64> u;
    u.clear();
    add_product<device_chunk / 16>(u, left_operand<RowsAre::summed>(v(), row),
                                   right_operand<RowsAre::outer>(narrow(), column));
    put_sums(this->u(), row, column, u);
  }

  const DeviceLayer& layer_;
  const DeltaInputs<OnDevice>& in_;
  RecordParts parts_;
  int chunk_;
  Record record_;
};

template <int d_k, int d_v, GateKind kind>
__global__ __launch_bounds__(tile_threads,
                             2) void delta_factors_kernel(const __grid_constant__ DeviceLayer layer,
                                                          const __grid_constant__ DeltaInputs<OnDevice> in,
                                                          char* records, RecordParts parts) {
  FactorsBlock<d_k, d_v, kind>(layer, in, records, parts).run();
}

}  // namespace

cudaError_t delta_factors(cudaStream_t stream, char* records, const DeltaInputs<OnDevice>& in,
                          const Chunks& p, RecordParts parts) {
  const Segments chunks{p.shape, p.work, (p.shape.tokens + device_chunk - 1) / device_chunk, Dtype::bf16};
  return with_constants(p.shape, [&](auto d_k, auto d_v, auto kind) {
    return launch_on_segments(stream, chunks, FactorsBlock<d_k(), d_v(), kind()>::shared_bytes,
                              delta_factors_kernel<d_k(), d_v(), kind()>, in, records, parts);
  });
}

}  // namespace baton
