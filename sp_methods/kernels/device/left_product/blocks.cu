// SPDX-License-Identifier: Apache-2.0
// The device bodies of left_product_keys, left_product_own_block and left_product_block: the
// scaling of queries and keys, and the products as the table of rank.cuh has them.
//
//   totals:      log2 of each tile's decay
//   boundaries:  for tiles in order:  x = f + total;  n += round(x);  f = x - round(x)
//   scale:       q_scaled = q 2^(f_I + c),  k_scaled = k 2^(total - c - f_I+1)
//                c: log2 gates summed from the tile's start
#include "sp_methods/kernels/device/left_product/rank.cuh"

namespace baton {
namespace {

template <GateKind kind>
__global__ void left_product_keys_totals_kernel(const __grid_constant__ LeftProductRank x, float* totals) {
  if (LeftProductRank::channel() >= x.channels()) return;
  float2 total{0.0F, 0.0F};
#pragma unroll 8
  for (int i = 0; i < x.rows(); ++i) total = total + x.log2_decay<kind>(i);
  pair_at(totals, x.table_at(LeftProductRank::tile_number())) = total;
}

/// Writes the fractions and exponents of the decays at the boundaries of tiles. A thread has one
/// channel of all tiles.
__global__ void left_product_keys_boundaries_kernel(const __grid_constant__ LeftProductRank x,
                                                    float* fractions, int* exponents) {
  const int channel = static_cast<int>(blockIdx.x * walk_threads + threadIdx.x), stride = x.channels();
  if (channel >= stride) return;
  int n = 0;
  float f = 0.0F;
  exponents[channel] = 0;
  fractions[channel] = 0.0F;
#pragma unroll 8
  for (int t = 0; t < x.tiles; ++t) {
    const float y = f + x.decays.totals[static_cast<std::int64_t>(t) * stride + channel], whole = rintf(y);
    n += static_cast<int>(whole);
    f = y - whole;
    exponents[static_cast<std::int64_t>(t + 1) * stride + channel] = n;
    fractions[static_cast<std::int64_t>(t + 1) * stride + channel] = f;
  }
}

/// Writes the scaled queries and keys, the keys `k_end` decayed to the rank's end, and the rank's
/// decay. `k_end` and `decay` may be null.
template <GateKind kind>
__global__ void left_product_keys_scale_kernel(const __grid_constant__ LeftProductRank x, Bf16* q_scaled,
                                               Bf16* k_scaled, Bf16* k_end, float* decay) {
  if (LeftProductRank::channel() >= x.channels()) return;
  RowDecays<kind> in_tile(x), in_rank(x);
  in_rank.span_rank();
#pragma unroll 4
  for (int i = 0; i < x.rows(); ++i) {
    in_tile.enter(i);
    in_rank.enter(i);
    const std::int64_t at = x.at(i);
    const float2 key = load_pair(x.in.k + at);
    store_pair(q_scaled + at, in_tile.of_query() * load_pair(x.in.q + at));
    store_pair(k_scaled + at, in_tile.of_key() * key);
    if (k_end != nullptr) store_pair(k_end + at, in_rank.of_key() * key);
  }
  if (decay != nullptr && LeftProductRank::tile_number() == 0)
    pair_at(decay, LeftProductRank::channel()) = in_tile.of_rank();
}

cudaError_t left_product_keys(cudaStream_t stream, const LeftProductKeys::Operands<OnDevice>& x,
                              const LeftProduct& p) {
  const LeftProductRank rank(p, x.in, x.scaled, x.decay_table);
  const DecayTableLayout layout(p);
  Bf16* const k_scaled = x.scaled + p.shape.tokens * layout.channels;
  auto* const exponents = reinterpret_cast<int*>(x.decay_table + layout.exponents());
  with_gate(rank.gate, [&](auto kind) {
    left_product_keys_totals_kernel<kind()>
        <<<walk_grid(rank), walk_threads, 0, stream>>>(rank, x.decay_table + layout.totals());
    left_product_keys_boundaries_kernel<<<walk_blocks(rank.channels()), walk_threads, 0, stream>>>(
        rank, x.decay_table + layout.fractions(), exponents);
    left_product_keys_scale_kernel<kind()>
        <<<walk_grid(rank), walk_threads, 0, stream>>>(rank, x.scaled, k_scaled, x.k, x.decay);
  });
  return cudaGetLastError();
}

/// Enqueues attention to the rank's own keys. Pairs within tiles are chunks of gated linear
/// attention, one segment each, without incoming states.
cudaError_t left_product_own_block(cudaStream_t stream, const LeftProductOwnBlock::Operands<OnDevice>& x,
                                   const LeftProduct& p) {
  const LeftProductRank rank(p, x.in, x.rank.scaled, x.rank.decay_table);
  cuda(on_device<SegmentOutput>(stream, {.in = x.in, .o = x.o}, {.shape = p.shape, .count = rank.tiles}));
  return left_product(stream, rank, ProductResult::o, ProductPairs::own_tiles,
                      {.q = rank.q_scaled, .k = rank.k_scaled, .v = x.in.v}, x.o_accumulator, false);
}

cudaError_t left_product_block(cudaStream_t stream, const LeftProductBlock::Operands<OnDevice>& x,
                               const LeftProduct& p) {
  const LeftProductRank rank(p, x.in, x.rank.scaled, x.rank.decay_table);
  const Bf16* q_block = scale_block_queries(stream, rank, x.q_block, x.between);
  return left_product(stream, rank, ProductResult::o, ProductPairs::other_rank,
                      {.q = q_block, .k = x.block.k, .v = x.block.v}, x.o, true);
}

const RegisteredCudaKernel registered[]{
    device_body<LeftProductKeys>(left_product_keys),
    device_body<LeftProductOwnBlock>(left_product_own_block),
    device_body<LeftProductBlock>(left_product_block),
};

}  // namespace
}  // namespace baton
