// SPDX-License-Identifier: Apache-2.0
// What a rank of the left-product manner does before its products: the decays of its tiles, its scaled queries and keys;
// see left_product_device.cuh.
//
//   totals:  log2 of each tile's decay
//   edges:   for tiles in order:  x = f + total;  n += round(x);  f = x - round(x)         e^b = 2^(n + f), e^r = 2^n
//   scale:   Q~ = q 2^(f_I + c),  K^ = k 2^(total - c - f_J+1)        c: log2 gates summed from the tile's start
#include "sp_methods/kernels/device/left_product/walk.cuh"

namespace baton {
namespace {

template <GateKind kind>
__global__ void tile_totals_kernel(const __grid_constant__ RankWalk x) {
  if (RankWalk::channel() >= x.channels()) return;
  float2 total{0.0F, 0.0F};
#pragma unroll 8
  for (int i = 0; i < x.rows(); ++i) total = total + x.gate<kind>(i);
  pair_at(x.edges.totals, x.edge(RankWalk::tile_number())) = total;
}

/// A thread follows one channel over all tiles.
__global__ void tile_edges_kernel(const __grid_constant__ RankWalk x) {
  const int channel = static_cast<int>(blockIdx.x * walk_threads + threadIdx.x), stride = x.channels();
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

template <GateKind kind>
__global__ void scale_kernel(const __grid_constant__ RankWalk x, Bf16* travelling, float* decay) {
  if (RankWalk::channel() >= x.channels()) return;
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
  if (decay != nullptr && RankWalk::tile_number() == 0)
    pair_at(decay, RankWalk::channel()) = factors.of_all();
}

template <GateKind kind>
__global__ void queries_kernel(const __grid_constant__ RankWalk x, Bf16* queries, const float* between) {
  if (RankWalk::channel() >= x.channels()) return;
  Factors<kind> factors(x);
  factors.of_rank();
  const float2 more = between_ranks(between);
#pragma unroll 4
  for (int i = 0; i < x.rows(); ++i) {
    factors.enter(i);
    store_pair(queries + x.at(i), more * factors.of_query() * load_pair(x.in.q + x.at(i)));
  }
}

}  // namespace

cudaError_t left_product_scale(const LeftProductRank& rank, Bf16* travelling, float* decay) {
  const RankWalk x(rank);
  with_gate(rank.shape.gate, [&](auto kind) {
    tile_totals_kernel<kind()><<<grid_of(x), walk_threads, 0, rank.stream>>>(x);
    tile_edges_kernel<<<blocks(x.channels()), walk_threads, 0, rank.stream>>>(x);
    scale_kernel<kind()><<<grid_of(x), walk_threads, 0, rank.stream>>>(x, travelling, decay);
  });
  return cudaGetLastError();
}

cudaError_t left_product_queries(const LeftProductRank& rank, Bf16* queries, const float* between) {
  const RankWalk x(rank);
  with_gate(rank.shape.gate, [&](auto kind) {
    queries_kernel<kind()><<<grid_of(x), walk_threads, 0, rank.stream>>>(x, queries, between);
  });
  return cudaGetLastError();
}

}  // namespace baton
