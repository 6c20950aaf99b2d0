// SPDX-License-Identifier: Apache-2.0
// How the kernels of left_product_scale.cu and left_product_sums.cu go through a rank: a thread walks two channels of one
// tile, neighbours have neighbouring channels. Bytes are all there is to it.
#pragma once

#include <cstdint>

#include "sp_methods/kernels/device/gla/gate_walk.cuh"
#include "sp_methods/kernels/device/left_product/launch.cuh"

namespace baton {

inline constexpr int walk_threads = 128;

/// A rank as its kernels take it.
struct RankWalk {
  GlaDeviceInputs in;
  TileEdges edges;
  Bf16* q;
  Bf16* k;
  std::int64_t tokens;
  int heads, d_k, tiles;

  explicit RankWalk(const LeftProductRank& rank)
      : in(rank.in),
        edges(rank.edges),
        q(rank.q),
        k(rank.k),
        tokens(rank.shape.tokens),
        heads(static_cast<int>(rank.shape.heads)),
        d_k(static_cast<int>(rank.shape.d_k)),
        tiles(static_cast<int>((rank.shape.tokens + device_chunk - 1) / device_chunk)) {}

  __host__ __device__ int channels() const { return heads * d_k; }
  /// This thread's first channel of all heads, and its tile.
  __device__ static int channel() { return 2 * static_cast<int>(blockIdx.x * walk_threads + threadIdx.x); }
  __device__ static int tile_number() { return static_cast<int>(blockIdx.y); }
  __device__ std::int64_t first_token() const {
    return static_cast<std::int64_t>(tile_number()) * device_chunk;
  }
  __device__ int rows() const {
    return static_cast<int>(min(static_cast<std::int64_t>(device_chunk), tokens - first_token()));
  }
  /// Where row i of the tile has this thread's channels.
  __device__ std::int64_t at(int i) const { return (first_token() + i) * channels() + channel(); }
  __device__ std::int64_t edge(int number) const {
    return static_cast<std::int64_t>(number) * channels() + channel();
  }

  /// log2 of the decay of row i.
  template <GateKind kind>
  __device__ float2 gate(int i) const {
    float2 g{0.0F, 0.0F};
    if constexpr (kind == GateKind::vector) g = load_pair(in.g + at(i));
    if constexpr (kind == GateKind::scalar) {
      g.x = __bfloat162float(in.g[(first_token() + i) * heads + channel() / d_k]);
      g.y = g.x;
    }
    return {log2_e * fmaxf(g.x, least_gate), log2_e * fmaxf(g.y, least_gate)};
  }
};

__device__ inline float2& pair_at(float* x, std::int64_t at) { return *reinterpret_cast<float2*>(x + at); }
__device__ inline float2 pair_at(const float* x, std::int64_t at) {
  return *reinterpret_cast<const float2*>(x + at);
}
__device__ inline int2 pair_at(const int* x, std::int64_t at) {
  return *reinterpret_cast<const int2*>(x + at);
}
__device__ inline float2 powers_of_2(float2 x) { return {power_of_2(x.x), power_of_2(x.y)}; }

/// The factors of queries and keys, row by row.
template <GateKind kind>
class Factors {
 public:
  __device__ explicit Factors(const RankWalk& x)
      : x_(x),
        from_edge_(fraction(RankWalk::tile_number())),
        to_edge_(total() - fraction(RankWalk::tile_number() + 1)) {}

  /// To be called for every row in order.
  __device__ void enter(int row) { sum_ = sum_ + x_.gate<kind>(row); }
  __device__ float2 of_query() const { return powers_of_2(from_edge_ + sum_); }
  __device__ float2 of_key() const { return powers_of_2(to_edge_ - sum_); }

  /// Those of queries from the rank's start, of keys to its end; to be called before the first row.
  __device__ void of_rank() {
    const int2 begin = exponent(RankWalk::tile_number()), end = exponent(RankWalk::tile_number() + 1),
               last = exponent(x_.tiles);
    from_edge_ = from_edge_ + float2{static_cast<float>(begin.x), static_cast<float>(begin.y)};
    to_edge_ = to_edge_ + (float2{static_cast<float>(last.x - end.x), static_cast<float>(last.y - end.y)} +
                           fraction(x_.tiles));
  }
  /// The decay of the whole rank.
  __device__ float2 of_all() const {
    const int2 last = exponent(x_.tiles);
    return powers_of_2(float2{static_cast<float>(last.x), static_cast<float>(last.y)} + fraction(x_.tiles));
  }

 private:
  __device__ float2 total() const { return pair_at(x_.edges.totals, x_.edge(RankWalk::tile_number())); }
  __device__ float2 fraction(int edge) const { return pair_at(x_.edges.fractions, x_.edge(edge)); }
  __device__ int2 exponent(int edge) const { return pair_at(x_.edges.exponents, x_.edge(edge)); }

  const RankWalk& x_;
  float2 from_edge_, to_edge_, sum_{0.0F, 0.0F};
};

/// What lies between this rank and another: decays by channel, none where they are next to one another.
__device__ inline float2 between_ranks(const float* between) {
  return between == nullptr ? float2{1.0F, 1.0F} : pair_at(between, RankWalk::channel());
}

inline unsigned blocks(std::int64_t count) {
  return static_cast<unsigned>((count + walk_threads - 1) / walk_threads);
}

/// A block's walk_threads on pairs of channels, its row of the grid a tile.
inline dim3 grid_of(const RankWalk& x) { return {blocks(x.channels() / 2), static_cast<unsigned>(x.tiles)}; }

/// Calls f with the gate's kind as a type; there is a gate.
template <class Function>
void with_gate(GateKind kind, Function f) {
  if (kind == GateKind::vector) f(GateConstant<GateKind::vector>{});
  if (kind == GateKind::scalar) f(GateConstant<GateKind::scalar>{});
}

}  // namespace baton
