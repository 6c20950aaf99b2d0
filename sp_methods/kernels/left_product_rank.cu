// SPDX-License-Identifier: Apache-2.0
// What a rank of the left-product manner does once a pass: the decays of its tiles, its scaled queries and keys, and in
// the end its gradients; see left_product_device.cuh.
//
//   totals:  log2 of each tile's decay
//   edges:   for tiles in order:  x = f + total;  n += round(x);  f = x - round(x)         e^b = 2^(n + f), e^r = 2^n
//   scale:   Q~ = q 2^(f_I + c),  K^ = k 2^(total - c - f_J+1)        c: log2 gates summed from the tile's start
//   sums:    dq = w (.) X,  dk = w' (.) Y with those same factors;  Z = Q~ (.) X - K^ (.) Y
//   gates:   dg_i += sum over u >= i of Z_u, by tiles from the last to the first, later ranks' included: what they add
//            may cancel what this rank has, so nothing is rounded before
//
// A thread walks two channels of one tile; neighbours have neighbouring channels. Bytes are all there is to it.
#include "sp_methods/kernels/gla_gate_walk.cuh"
#include "sp_methods/kernels/left_product_device.cuh"

namespace baton {
namespace {

constexpr int threads = 128;
constexpr int tile = device_chunk;

/// A rank as its kernels take it.
struct Walked {
  GlaDeviceInputs in;
  TileEdges edges;
  Bf16* q;
  Bf16* k;
  std::int64_t tokens;
  int heads, d_k, tiles;

  explicit Walked(const LeftProductRank& rank)
      : in(rank.in),
        edges(rank.edges),
        q(rank.q),
        k(rank.k),
        tokens(rank.shape.tokens),
        heads(static_cast<int>(rank.shape.heads)),
        d_k(static_cast<int>(rank.shape.d_k)),
        tiles(static_cast<int>((rank.shape.tokens + tile - 1) / tile)) {}

  __host__ __device__ int channels() const { return heads * d_k; }
  /// This thread's first channel of all heads, and its tile.
  __device__ static int channel() { return 2 * static_cast<int>(blockIdx.x * threads + threadIdx.x); }
  __device__ static int tile_number() { return static_cast<int>(blockIdx.y); }
  __device__ std::int64_t first_token() const { return static_cast<std::int64_t>(tile_number()) * tile; }
  __device__ int rows() const {
    return static_cast<int>(min(static_cast<std::int64_t>(tile), tokens - first_token()));
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

__device__ float2& pair_at(float* x, std::int64_t at) { return *reinterpret_cast<float2*>(x + at); }
__device__ float2 pair_at(const float* x, std::int64_t at) {
  return *reinterpret_cast<const float2*>(x + at);
}
__device__ int2 pair_at(const int* x, std::int64_t at) { return *reinterpret_cast<const int2*>(x + at); }
__device__ float2 powers_of_2(float2 x) { return {power_of_2(x.x), power_of_2(x.y)}; }
template <GateKind kind>
__global__ void tile_totals_kernel(const __grid_constant__ Walked x) {
  if (Walked::channel() >= x.channels()) return;
  float2 total{0.0F, 0.0F};
#pragma unroll 8
  for (int i = 0; i < x.rows(); ++i) total = total + x.gate<kind>(i);
  pair_at(x.edges.totals, x.edge(Walked::tile_number())) = total;
}

/// A thread follows one channel over all tiles.
__global__ void tile_edges_kernel(const __grid_constant__ Walked x) {
  const int channel = static_cast<int>(blockIdx.x * threads + threadIdx.x), stride = x.channels();
  if (channel >= stride) return;
  int n = 0;
  float f = 0.0F;
  x.edges.exponents[channel] = 0;
  x.edges.fractions[channel] = 0.0F;
#pragma unroll 8
  for (int t = 0; t < x.tiles; ++t) {
    const float y = f + x.edges.totals[static_cast<std::int64_t>(t) * stride + channel], whole = rintf(y);
    n += static_cast<int>(whole);
    f = y - whole;
    x.edges.exponents[static_cast<std::int64_t>(t + 1) * stride + channel] = n;
    x.edges.fractions[static_cast<std::int64_t>(t + 1) * stride + channel] = f;
  }
}

/// The factors of queries and keys, row by row.
template <GateKind kind>
class Factors {
 public:
  __device__ explicit Factors(const Walked& x)
      : x_(x),
        from_edge_(fraction(Walked::tile_number())),
        to_edge_(total() - fraction(Walked::tile_number() + 1)) {}

  /// To be called for every row in order.
  __device__ void enter(int row) { sum_ = sum_ + x_.gate<kind>(row); }
  __device__ float2 of_query() const { return powers_of_2(from_edge_ + sum_); }
  __device__ float2 of_key() const { return powers_of_2(to_edge_ - sum_); }

  /// Those of queries from the rank's start, of keys to its end; to be called before the first row.
  __device__ void of_rank() {
    const int2 begin = exponent(Walked::tile_number()), end = exponent(Walked::tile_number() + 1),
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
  __device__ float2 total() const { return pair_at(x_.edges.totals, x_.edge(Walked::tile_number())); }
  __device__ float2 fraction(int edge) const { return pair_at(x_.edges.fractions, x_.edge(edge)); }
  __device__ int2 exponent(int edge) const { return pair_at(x_.edges.exponents, x_.edge(edge)); }

  const Walked& x_;
  float2 from_edge_, to_edge_, sum_{0.0F, 0.0F};
};

template <GateKind kind>
__global__ void scale_kernel(const __grid_constant__ Walked x, Bf16* travelling, float* decay) {
  if (Walked::channel() >= x.channels()) return;
  Factors<kind> factors(x), of_rank(x);
  of_rank.of_rank();
#pragma unroll 4
  for (int i = 0; i < x.rows(); ++i) {
    factors.enter(i);
    of_rank.enter(i);
    const std::int64_t at = x.at(i);
    const float2 key = load_pair(x.in.k + at);
    store_pair(x.q + at, factors.of_query() * load_pair(x.in.q + at));
    store_pair(x.k + at, factors.of_key() * key);
    if (travelling != nullptr) store_pair(travelling + at, of_rank.of_key() * key);
  }
  if (decay != nullptr && Walked::tile_number() == 0) pair_at(decay, Walked::channel()) = factors.of_all();
}

__device__ float2 between_ranks(const float* between) {
  return between == nullptr ? float2{1.0F, 1.0F} : pair_at(between, Walked::channel());
}

template <GateKind kind>
__global__ void queries_kernel(const __grid_constant__ Walked x, Bf16* queries, const float* between) {
  if (Walked::channel() >= x.channels()) return;
  Factors<kind> factors(x);
  factors.of_rank();
  const float2 more = between_ranks(between);
#pragma unroll 4
  for (int i = 0; i < x.rows(); ++i) {
    factors.enter(i);
    store_pair(queries + x.at(i), more * factors.of_query() * load_pair(x.in.q + x.at(i)));
  }
}

template <GateKind kind>
__global__ void own_sums_kernel(const __grid_constant__ Walked x, LeftProductSums sums) {
  if (Walked::channel() >= x.channels()) return;
  Factors<kind> factors(x);
#pragma unroll 4
  for (int i = 0; i < x.rows(); ++i) {
    factors.enter(i);
    const std::int64_t at = x.at(i);
    const float2 dx = pair_at(sums.dq, at), dy = pair_at(sums.dk, at);
    pair_at(sums.dq, at) = factors.of_query() * dx;
    pair_at(sums.dk, at) = factors.of_key() * dy;
    pair_at(sums.z, at) = load_pair(x.q + at) * dx - load_pair(x.k + at) * dy;
  }
}

template <GateKind kind>
__global__ void block_sums_kernel(const __grid_constant__ Walked x, LeftProductSums sums, const Bf16* queries,
                                  const float* block_x, const float* between) {
  if (Walked::channel() >= x.channels()) return;
  Factors<kind> factors(x);
  factors.of_rank();
  const float2 more = between_ranks(between);
#pragma unroll 4
  for (int i = 0; i < x.rows(); ++i) {
    factors.enter(i);
    const std::int64_t at = x.at(i);
    const float2 dx = pair_at(block_x, at);
    pair_at(sums.dq, at) = pair_at(sums.dq, at) + more * factors.of_query() * dx;
    pair_at(sums.z, at) = pair_at(sums.z, at) + load_pair(queries + at) * dx;
  }
}

/// What came home is added to dk and z; the totals become sums of z over tiles.
template <GateKind kind>
__global__ void home_kernel(const __grid_constant__ Walked x, LeftProductSums sums, const float* home) {
  if (Walked::channel() >= x.channels()) return;
  Factors<kind> factors(x);
  factors.of_rank();
  float2 total{0.0F, 0.0F};
#pragma unroll 4
  for (int i = 0; i < x.rows(); ++i) {
    factors.enter(i);
    const std::int64_t at = x.at(i);
    float2 z = pair_at(sums.z, at);
    if (home != nullptr) {
      const float2 dy = pair_at(home, at), key = factors.of_key() * load_pair(x.in.k + at);
      pair_at(sums.dk, at) = pair_at(sums.dk, at) + factors.of_key() * dy;
      z = z - unpacked_pair(packed_pair(key.x, key.y)) * dy;  // the key as it travelled
      pair_at(sums.z, at) = z;
    }
    total = total + z;
  }
  pair_at(x.edges.totals, x.edge(Walked::tile_number())) = total;
}

/// Sums over tiles become sums over later tiles.
__global__ void later_tiles_kernel(const __grid_constant__ Walked x, float* edge) {
  const int channel = static_cast<int>(blockIdx.x * threads + threadIdx.x), stride = x.channels();
  if (channel >= stride) return;
  float later = 0.0F;
#pragma unroll 8
  for (int t = x.tiles - 1; t >= 0; --t) {
    float& total = x.edges.totals[static_cast<std::int64_t>(t) * stride + channel];
    const float own = total;
    total = later;
    later += own;
  }
  if (edge != nullptr) edge[channel] += later;
}

__global__ void vector_gates_kernel(const __grid_constant__ Walked x, Bf16* dg, const float* z,
                                    const float* later) {
  if (Walked::channel() >= x.channels()) return;
  float2 sum = pair_at(x.edges.totals, x.edge(Walked::tile_number()));
  if (later != nullptr) sum = sum + pair_at(later, Walked::channel());
#pragma unroll 8
  for (int i = x.rows() - 1; i >= 0; --i) {
    sum = sum + pair_at(z, x.at(i));
    store_pair(dg + x.at(i), load_pair(dg + x.at(i)) + sum);
  }
}

__device__ float warp_sum(float x) {
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2) x += __shfl_xor_sync(0xffffffffU, x, apart);
  return x;
}

/// A warp has one head of one tile: grid (heads, tiles).
__global__ void scalar_gates_kernel(const __grid_constant__ Walked x, Bf16* dg, const float* z,
                                    const float* later) {
  const int head = static_cast<int>(blockIdx.x), first = head * x.d_k + lane();
  const float* of_tiles = x.edges.totals + static_cast<std::int64_t>(Walked::tile_number()) * x.channels();
  float sum = 0.0F;
  for (int c = 0; c < x.d_k; c += 32) {
    sum += of_tiles[first + c];
    if (later != nullptr) sum += later[first + c];
  }
  for (int i = x.rows() - 1; i >= 0; --i) {
    const std::int64_t token = x.first_token() + i;
    for (int c = 0; c < x.d_k; c += 32) sum += z[token * x.channels() + first + c];
    const float all = warp_sum(sum);
    Bf16& into = dg[token * x.heads + head];
    if (lane() == 0) into = __float2bfloat16(__bfloat162float(into) + all);
  }
}

/// into += one fp32 tensor, or two.
__global__ void add_sums_kernel(Bf16* into, const float* first, const float* second, std::int64_t pairs) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i >= pairs) return;
  float2 sum = load_pair(into + 2 * i) + pair_at(first, 2 * i);
  if (second != nullptr) sum = sum + pair_at(second, 2 * i);
  store_pair(into + 2 * i, sum);
}

unsigned blocks(std::int64_t count) { return static_cast<unsigned>((count + threads - 1) / threads); }

/// A block's threads on pairs of channels, its row of the grid a tile.
dim3 grid_of(const Walked& x) { return {blocks(x.channels() / 2), static_cast<unsigned>(x.tiles)}; }

/// Calls f with the gate's kind as a type; there is a gate.
template <class Function>
void with_gate(GateKind kind, Function f) {
  if (kind == GateKind::vector) f(GateConstant<GateKind::vector>{});
  if (kind == GateKind::scalar) f(GateConstant<GateKind::scalar>{});
}

void add_sums(cudaStream_t stream, Bf16* into, const float* first, const float* second, std::int64_t count) {
  add_sums_kernel<<<blocks(count / 2), threads, 0, stream>>>(into, first, second, count / 2);
}

}  // namespace

cudaError_t left_product_scale(const LeftProductRank& rank, Bf16* travelling, float* decay) {
  const Walked x(rank);
  with_gate(rank.shape.gate, [&](auto kind) {
    tile_totals_kernel<kind()><<<grid_of(x), threads, 0, rank.stream>>>(x);
    tile_edges_kernel<<<blocks(x.channels()), threads, 0, rank.stream>>>(x);
    scale_kernel<kind()><<<grid_of(x), threads, 0, rank.stream>>>(x, travelling, decay);
  });
  return cudaGetLastError();
}

cudaError_t left_product_queries(const LeftProductRank& rank, Bf16* queries, const float* between) {
  const Walked x(rank);
  with_gate(rank.shape.gate, [&](auto kind) {
    queries_kernel<kind()><<<grid_of(x), threads, 0, rank.stream>>>(x, queries, between);
  });
  return cudaGetLastError();
}

cudaError_t left_product_own_sums(const LeftProductRank& rank, const LeftProductSums& sums) {
  const Walked x(rank);
  with_gate(rank.shape.gate,
            [&](auto kind) { own_sums_kernel<kind()><<<grid_of(x), threads, 0, rank.stream>>>(x, sums); });
  return cudaGetLastError();
}

cudaError_t left_product_block_sums(const LeftProductRank& rank, const LeftProductSums& sums,
                                    const Bf16* queries, const float* block_x, const float* between) {
  const Walked x(rank);
  with_gate(rank.shape.gate, [&](auto kind) {
    block_sums_kernel<kind()><<<grid_of(x), threads, 0, rank.stream>>>(x, sums, queries, block_x, between);
  });
  return cudaGetLastError();
}

cudaError_t left_product_finish(const LeftProductRank& rank, const GlaDeviceGradients& out,
                                const LeftProductSums& sums, const LeftProductHome& home, float* edge) {
  const Walked x(rank);
  const std::int64_t keys = rank.shape.tokens * x.channels();
  const bool gated = rank.shape.gate != GateKind::none;
  // With gates, what came home needs its decays.
  with_gate(rank.shape.gate, [&](auto kind) {
    home_kernel<kind()><<<grid_of(x), threads, 0, rank.stream>>>(x, sums, home.dk);
  });
  add_sums(rank.stream, out.dq, sums.dq, nullptr, keys);
  add_sums(rank.stream, out.dk, sums.dk, gated ? nullptr : home.dk, keys);
  add_sums(rank.stream, out.dv, sums.dv, home.dv, rank.shape.tokens * rank.shape.heads * rank.shape.d_v);
  if (gated) later_tiles_kernel<<<blocks(x.channels()), threads, 0, rank.stream>>>(x, edge);
  return cudaGetLastError();
}

cudaError_t left_product_gates(const LeftProductRank& rank, Bf16* dg, const float* z, const float* later) {
  const Walked x(rank);
  if (rank.shape.gate == GateKind::vector)
    vector_gates_kernel<<<grid_of(x), threads, 0, rank.stream>>>(x, dg, z, later);
  const dim3 heads(static_cast<unsigned>(x.heads), static_cast<unsigned>(x.tiles));
  if (rank.shape.gate == GateKind::scalar)
    scalar_gates_kernel<<<heads, 32, 0, rank.stream>>>(x, dg, z, later);
  return cudaGetLastError();
}

}  // namespace baton
