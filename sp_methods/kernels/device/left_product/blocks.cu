// SPDX-License-Identifier: Apache-2.0
// The device bodies of left_product_keys, left_product_own_block and left_product_block: the
// scaling of queries and keys, and the products as the table of rank.cuh has them.
//
//   totals:      log2 of each tile's decay
//   boundaries:  for tiles in order:  x = f + total;  n += round(x);  f = x - round(x)
//   scale:       q_scaled = q 2^(f_I + c),  k_scaled = k 2^(total - c - f_I+1)
//                c: log2 gates summed from the tile's start
#include <cmath>

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

/// A thread follows one channel over all tiles.
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

/// k_end, the keys decayed to the rank's end, and the rank's decay may be null.
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

template <GateKind kind>
__global__ void left_product_block_queries_kernel(const __grid_constant__ LeftProductRank x, Bf16* q_block,
                                                  const float* between) {
  if (LeftProductRank::channel() >= x.channels()) return;
  RowDecays<kind> in_rank(x);
  in_rank.span_rank();
  const float2 more = between_ranks(between);
#pragma unroll 4
  for (int i = 0; i < x.rows(); ++i) {
    in_rank.enter(i);
    store_pair(q_block + x.at(i), more * in_rank.of_query() * load_pair(x.in.q + x.at(i)));
  }
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

/// Pairs within tiles are chunks of gated linear attention with a segment each and no incoming
/// states.
cudaError_t left_product_own_block(cudaStream_t stream, const LeftProductOwnBlock::Operands<OnDevice>& x,
                                   const LeftProduct& p) {
  const LeftProductRank rank(p, x.in, x.rank.scaled, x.rank.decay_table);
  cuda(segment_output(stream, {.in = x.in, .o = x.o}, {.shape = p.shape, .count = rank.tiles}));
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

/// The call of one product without its tensors: which tiles meet, and their exponents.
ProductCall call_of(const LeftProductRank& rank, bool rows_are_queries, ProductPairs pairs) {
  ProductCall call{};
  call.tokens = rank.tokens;
  call.heads = rank.heads;
  call.scale = 1.0F / std::sqrt(static_cast<float>(rank.d_k));
  call.rows_are_queries = rows_are_queries;
  call.columns = pairs == ProductPairs::other_rank ? ColumnTiles::all
                 : rows_are_queries                ? ColumnTiles::earlier
                                                   : ColumnTiles::later;
  if (!rank.is_gated()) return call;
  // A query's tile counts from its start, which is boundary I, a key's to its end, boundary J + 1.
  const int* of_queries = rank.decays.exponents;
  const int* of_keys = of_queries + rank.channels();
  call.row_exponents = rows_are_queries ? of_queries : of_keys;
  call.column_exponents = rows_are_queries ? of_keys : of_queries;
  return call;
}

const RegisteredCudaKernel registered[]{
    device_body<LeftProductKeys>(left_product_keys),
    device_body<LeftProductOwnBlock>(left_product_own_block),
    device_body<LeftProductBlock>(left_product_block),
};

}  // namespace

cudaError_t left_product(cudaStream_t stream, const LeftProductRank& rank, ProductResult result,
                         ProductPairs pairs, const ProductInputs& in, float* out, bool adds) {
  const bool rows_are_queries = result == ProductResult::o || result == ProductResult::dq_scaled;
  const bool scores_are_qk = result == ProductResult::o || result == ProductResult::dv;
  ProductCall call = call_of(rank, rows_are_queries, pairs);
  const Bf16 *of_queries = scores_are_qk ? in.q : in.d_o, *of_keys = scores_are_qk ? in.k : in.v;
  call.left = rows_are_queries ? of_queries : of_keys;
  call.middle = rows_are_queries ? of_keys : of_queries;
  call.right = result == ProductResult::o           ? in.v
               : result == ProductResult::dq_scaled ? in.k
               : result == ProductResult::dk_scaled ? in.q
                                                    : in.d_o;
  call.out = out;
  call.adds = adds;
  const bool decays = rank.is_gated() && pairs == ProductPairs::own_tiles;
  const DecayIndex index = !decays ? DecayIndex::none : scores_are_qk ? DecayIndex::inner : DecayIndex::outer;
  return enqueue_product(stream, call, scores_are_qk ? rank.d_k : rank.d_v,
                         scores_are_qk ? rank.d_v : rank.d_k, index);
}

const Bf16* scale_block_queries(cudaStream_t stream, const LeftProductRank& rank, Bf16* q_block,
                                const float* between) {
  if (!rank.is_gated()) return rank.in.q;
  with_gate(rank.gate, [&](auto kind) {
    left_product_block_queries_kernel<kind()>
        <<<walk_grid(rank), walk_threads, 0, stream>>>(rank, q_block, between);
  });
  cuda(cudaGetLastError());
  return q_block;
}

}  // namespace baton
