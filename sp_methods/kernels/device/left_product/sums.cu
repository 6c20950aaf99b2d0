// SPDX-License-Identifier: Apache-2.0
// What a rank of the left-product manner makes of its products' gradients; see left_product_device.cuh.
//
//   sums:    dq = w (.) X,  dk = w' (.) Y with the factors of left_product_scale.cu;  Z = Q~ (.) X - K^ (.) Y
//   gates:   dg_i += sum over u >= i of Z_u, by tiles from the last to the first, later ranks' included: what they add
//            may cancel what this rank has, so nothing is rounded before
#include "sp_methods/kernels/device/left_product/walk.cuh"

namespace baton {
namespace {

template <GateKind kind>
__global__ void own_sums_kernel(const __grid_constant__ RankWalk x, LeftProductSums sums) {
  if (RankWalk::channel() >= x.channels()) return;
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
__global__ void block_sums_kernel(const __grid_constant__ RankWalk x, LeftProductSums sums,
                                  const Bf16* queries, const float* block_x, const float* between) {
  if (RankWalk::channel() >= x.channels()) return;
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
__global__ void home_kernel(const __grid_constant__ RankWalk x, LeftProductSums sums, const float* home) {
  if (RankWalk::channel() >= x.channels()) return;
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
  pair_at(x.edges.totals, x.edge(RankWalk::tile_number())) = total;
}

/// Sums over tiles become sums over later tiles.
__global__ void later_tiles_kernel(const __grid_constant__ RankWalk x, float* edge) {
  const int channel = static_cast<int>(blockIdx.x * walk_threads + threadIdx.x), stride = x.channels();
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

__global__ void vector_gates_kernel(const __grid_constant__ RankWalk x, Bf16* dg, const float* z,
                                    const float* later) {
  if (RankWalk::channel() >= x.channels()) return;
  float2 sum = pair_at(x.edges.totals, x.edge(RankWalk::tile_number()));
  if (later != nullptr) sum = sum + pair_at(later, RankWalk::channel());
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
__global__ void scalar_gates_kernel(const __grid_constant__ RankWalk x, Bf16* dg, const float* z,
                                    const float* later) {
  const int head = static_cast<int>(blockIdx.x), first = head * x.d_k + lane();
  const float* of_tiles = x.edges.totals + static_cast<std::int64_t>(RankWalk::tile_number()) * x.channels();
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
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * walk_threads + threadIdx.x;
  if (i >= pairs) return;
  float2 sum = load_pair(into + 2 * i) + pair_at(first, 2 * i);
  if (second != nullptr) sum = sum + pair_at(second, 2 * i);
  store_pair(into + 2 * i, sum);
}

void add_sums(cudaStream_t stream, Bf16* into, const float* first, const float* second, std::int64_t count) {
  add_sums_kernel<<<blocks(count / 2), walk_threads, 0, stream>>>(into, first, second, count / 2);
}

}  // namespace

cudaError_t left_product_own_sums(const LeftProductRank& rank, const LeftProductSums& sums) {
  const RankWalk x(rank);
  with_gate(rank.shape.gate, [&](auto kind) {
    own_sums_kernel<kind()><<<grid_of(x), walk_threads, 0, rank.stream>>>(x, sums);
  });
  return cudaGetLastError();
}

cudaError_t left_product_block_sums(const LeftProductRank& rank, const LeftProductSums& sums,
                                    const Bf16* queries, const float* block_x, const float* between) {
  const RankWalk x(rank);
  with_gate(rank.shape.gate, [&](auto kind) {
    block_sums_kernel<kind()>
        <<<grid_of(x), walk_threads, 0, rank.stream>>>(x, sums, queries, block_x, between);
  });
  return cudaGetLastError();
}

cudaError_t left_product_finish(const LeftProductRank& rank, const GlaDeviceGradients& out,
                                const LeftProductSums& sums, const LeftProductHome& home, float* edge) {
  const RankWalk x(rank);
  const std::int64_t keys = rank.shape.tokens * x.channels();
  const bool gated = rank.shape.gate != GateKind::none;
  // With gates, what came home needs its decays.
  with_gate(rank.shape.gate, [&](auto kind) {
    home_kernel<kind()><<<grid_of(x), walk_threads, 0, rank.stream>>>(x, sums, home.dk);
  });
  add_sums(rank.stream, out.dq, sums.dq, nullptr, keys);
  add_sums(rank.stream, out.dk, sums.dk, gated ? nullptr : home.dk, keys);
  add_sums(rank.stream, out.dv, sums.dv, home.dv, rank.shape.tokens * rank.shape.heads * rank.shape.d_v);
  if (gated) later_tiles_kernel<<<blocks(x.channels()), walk_threads, 0, rank.stream>>>(x, edge);
  return cudaGetLastError();
}

cudaError_t left_product_gates(const LeftProductRank& rank, Bf16* dg, const float* z, const float* later) {
  const RankWalk x(rank);
  if (rank.shape.gate == GateKind::vector)
    vector_gates_kernel<<<grid_of(x), walk_threads, 0, rank.stream>>>(x, dg, z, later);
  const dim3 heads(static_cast<unsigned>(x.heads), static_cast<unsigned>(x.tiles));
  if (rank.shape.gate == GateKind::scalar)
    scalar_gates_kernel<<<heads, 32, 0, rank.stream>>>(x, dg, z, later);
  return cudaGetLastError();
}

}  // namespace baton
